"""The whole stack file as one frozen model."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Union, cast

from pydantic import AfterValidator, Field, create_model

from gpufleet.stackfile.base import AsTuple, Model, matches, refuse
from gpufleet.stackfile.cluster import Cluster
from gpufleet.stackfile.kinds import KINDS, METHODS, on_change
from gpufleet.stackfile.pool import Pool
from gpufleet.stackfile.software import Route, Team

ProfileName = Annotated[
    str,
    matches(
        r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?",
        "Profile names become ConfigMap keys and label values: lower case letters, digits and '-', at most 30.",
        "Write a name such as `notebooks`.",
    ),
]


def _reason(text: str) -> str:
    if not text.strip():
        raise refuse("GF106", "An acknowledgement says why.", "Write the reason that a reviewer can judge.")
    return text


class Stack(Model):
    """What stacks on all kinds of clusters have in common; a kind narrows `cluster` and `pools`."""

    stack: Route = Field(
        description="The GPU software: NVIDIA's device plugin alone, or the GPU Operator.",
        examples=[{"kind": "operator"}],
    )
    sharing: dict[ProfileName, Model] = Field(
        default_factory=dict,
        description="Sharing profiles by name; pools refer to them.",
        examples=[{"notebooks": {"strategy": "timeSlicing", "replicas": 4}}],
    )
    teams: Annotated[tuple[Team, ...], AsTuple] = Field(
        default=(),
        description="Teams, each with a namespace and the pools that it uses.",
        examples=[[{"name": "vision", "namespace": "vision", "pools": ["t4"]}]],
    )
    acknowledge: dict[str, Annotated[str, Field(min_length=1), AfterValidator(_reason)]] = Field(
        default_factory=dict,
        description="Warnings that are accepted: the code, and a reason that a reviewer can judge.",
        examples=[{"GF420": "a dev pool, four nodes at most"}],
    )
    cluster: Cluster = Field(
        description="The cluster.", examples=[{"kind": "aks", "name": "vision-dev", "location": "eastus"}]
    )
    pools: Annotated[tuple[Pool, ...], AsTuple] = Field(
        min_length=1, description="The GPU pools.", examples=[[{"name": "t4", "vmSize": "Standard_NC4as_T4_v3"}]]
    )


@cache
def stack_model(kind: str) -> type[Stack]:
    """The model of stack files with `cluster.kind: <kind>`, with all methods that are known.

    Raises:
        KeyError: no such kind is registered.
    """
    base = KINDS[kind].stack
    methods: Any = Union[tuple(METHODS.values())]  # noqa: UP007
    profile: Any = Annotated[methods, Field(discriminator="strategy")]
    known = base.model_fields["sharing"]
    texts: Any = {"description": known.description, "examples": known.examples}
    sharing: Any = (dict[ProfileName, profile], Field(default_factory=dict, **texts))
    return cast("type[Stack]", create_model(base.__name__, __base__=base, __doc__=base.__doc__, sharing=sharing))


on_change(stack_model.cache_clear)
