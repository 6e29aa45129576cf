"""What all configuration models share: frozen, strict, camelCase in YAML, unknown keys refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Model(BaseModel):
    """Base of every configuration model."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=False, defer_build=True
    )
    #: Keys for which a bare word in the map's place is meant.
    bare: ClassVar[tuple[str, ...]] = ()
    #: Keys that an example needs beside those without a default: one of several that exclude each other.
    shown: ClassVar[tuple[str, ...]] = ()


def refuse(code: str, why: str, hint: str = "", **context: Any) -> PydanticCustomError:
    """An error of a validator that becomes a finding of the rule `code`."""
    return PydanticCustomError(code, "{because}", {"because": why, "hint": hint, **context})


def matches(pattern: str, why: str, hint: str) -> AfterValidator:
    r"""A validator for text of a fixed form; compiled at its first use, since most commands use few of the forms.

    `\w` and `\d` are those of ASCII.
    """

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise refuse("GF106", why, hint)
        return value

    return AfterValidator(check)


def _list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


#: YAML lists become tuples, so that models stay immutable.
AsTuple = BeforeValidator(_list_to_tuple)

DnsLabel = Annotated[
    str,
    Field(max_length=63),
    matches(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
        "Kubernetes names are DNS labels: lower case letters, digits and '-', at most 63 characters.",
        "Write a name such as `team-a`.",
    ),
]
NodeName = Annotated[
    str,
    Field(max_length=253),
    matches(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        "Node names are DNS names in lower case.",
        "Write the name that `kubectl get nodes` shows.",
    ),
]
LabelKey = Annotated[
    str,
    matches(
        r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
        "Label keys are an optional DNS prefix and a name of at most 63 characters.",
        "Write `name` or `example.com/name`.",
    ),
]
LabelValue = Annotated[
    str,
    matches(
        r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?",
        "Label values are letters, digits, '-', '_' and '.', at most 63 characters.",
        "Write letters, digits, '-', '_' and '.', at most 63, such as `team-a`.",
    ),
]
TagName = Annotated[
    str,
    Field(max_length=512),
    matches(
        r"[^<>%&\\?/]+",
        "Names of Azure tags have no '<', '>', '%', '&', '\\', '?' or '/', and are not empty.",
        "Replace these characters.",
    ),
]


def _tags(value: dict[str, str]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for name in value:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise refuse("GF110", "To Azure, upper and lower case are the same.", "Keep one.", keys=f"{other}, {name}")
    return value


#: Azure's limits (Azure documentation: tag-resources): 50 tags per resource, names of 512 and values of 256 characters.
Tags = Annotated[dict[TagName, Annotated[str, Field(max_length=256)]], Field(max_length=50), AfterValidator(_tags)]
KubernetesVersion = Annotated[
    str,
    matches(
        r"1\.[0-9]{1,3}(\.[0-9]{1,3})?",
        "Kubernetes versions look like 1.36 or 1.36.2.",
        'Write it in quotes: "1.36".',
    ),
]
DriverBranch = Annotated[
    str,
    matches(r"[0-9]{3}", "Driver branches are three digits.", 'Write it in quotes: "580".'),
]
DriverVersion = Annotated[
    str,
    matches(
        r"[0-9]{3}\.[0-9]{2,3}(\.[0-9]{2})?",
        "Driver versions look like 580.95.05: three digits, two or three, and mostly two more.",
        'Write the full version in quotes: "580.95.05".',
    ),
]
