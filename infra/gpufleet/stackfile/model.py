"""The whole stack file as one frozen model."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from gpufleet.stackfile.base import AsTuple, Model, refuse
from gpufleet.stackfile.cluster import AksCluster, Cluster, ExistingCluster
from gpufleet.stackfile.hosts import Hosts
from gpufleet.stackfile.pools import AksPool, NodePool, Pool
from gpufleet.stackfile.sharing import ProfileName, SharingProfile
from gpufleet.stackfile.software import Route, Team


def _reason(text: str) -> str:
    if not text.strip():
        raise refuse("GF106", "An acknowledgement says why.", "Write the reason that a reviewer can judge.")
    return text


class _Stack(Model):
    stack: Route
    sharing: dict[ProfileName, SharingProfile] = Field(default_factory=dict)
    teams: Annotated[tuple[Team, ...], AsTuple] = ()
    acknowledge: dict[str, Annotated[str, Field(min_length=1), AfterValidator(_reason)]] = Field(default_factory=dict)


class AksStack(_Stack):
    """A stack that makes its own AKS cluster."""

    cluster: AksCluster
    pools: Annotated[tuple[AksPool, ...], AsTuple] = Field(min_length=1)


class ExistingStack(_Stack):
    """A stack on a cluster that exists."""

    cluster: ExistingCluster
    pools: Annotated[tuple[NodePool, ...], AsTuple] = Field(min_length=1)
    hosts: Hosts = Field(default_factory=lambda: Hosts.model_validate({}))


Stack = AksStack | ExistingStack
STACK_KINDS: dict[str, type[AksStack] | type[ExistingStack]] = {"aks": AksStack, "existing": ExistingStack}


def stack_pools(stack: Stack) -> tuple[Pool, ...]:
    """The pools of either kind of stack, in the order of the stack file."""
    return stack.pools


__all__ = ["STACK_KINDS", "AksStack", "Cluster", "ExistingStack", "Pool", "Stack", "stack_pools"]
