"""What all configuration models share: frozen, strict, camelCase in YAML, unknown keys refused."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Model(BaseModel):
    """Base of every configuration model."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=False, defer_build=True
    )


def refuse(code: str, why: str, hint: str = "", **context: Any) -> PydanticCustomError:
    """An error of a validator that becomes the diagnostic `code`."""
    return PydanticCustomError(code, "{why}", {"why": why, "hint": hint, **context})


def matches(pattern: str, why: str, hint: str) -> AfterValidator:
    """A validator for text of a fixed form; compiled at its first use, since most commands use few of the forms."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
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
        "Shorten it or replace the other characters.",
    ),
]
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
        r"[0-9]{3}\.[0-9]{1,3}(\.[0-9]{1,3})?",
        "Driver versions look like 580.95.05.",
        'Write the full version in quotes: "580.95.05".',
    ),
]
