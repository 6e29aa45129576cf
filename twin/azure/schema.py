"""Which properties a resource has, with their shapes and enums, read from the installed SDK.

The SDK's Args classes are generated from the same REST specification as the provider, so they say exactly
what the provider of that version knows. Read lazily: the network module alone takes half a second to import.
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Shape:
    """One property: a scalar with its Python type and allowed values, a list, a map or an object."""

    kind: str  # scalar | list | map | object
    scalar: type | None = None
    allowed: tuple[str, ...] = ()
    child: type | Any = None  # annotation of the element of a list or map, Args class of an object


@dataclass(frozen=True)
class Fields:
    shapes: dict[str, Any] = field(default_factory=dict)  # property -> annotation
    required: frozenset[str] = frozenset()


@cache
def resource_fields(kind: str) -> Fields:
    """Properties of a resource type of the stand-in, in protocol spelling."""
    import importlib

    where = {
        "ResourceGroup": ("resources", "ResourceGroupArgs"),
        "VirtualNetwork": ("network", "VirtualNetworkInitArgs"),
        "Subnet": ("network", "SubnetInitArgs"),
        "ManagedCluster": ("containerservice", "ManagedClusterArgs"),
        "AgentPool": ("containerservice", "AgentPoolArgs"),
        "MaintenanceConfiguration": ("containerservice", "MaintenanceConfigurationArgs"),
    }
    # The whole package, as programs import it: a submodule first would leave the SDK's lazy package half loaded.
    module, name = where[kind]
    return _fields(getattr(importlib.import_module(f"pulumi_azure_native.{module}"), name))


@cache
def _fields(cls: type) -> Fields:
    from pulumi import _types

    names = _types.input_type_py_to_pulumi_names(cls)
    needed = {key for key, parameter in inspect.signature(cls).parameters.items()
              if parameter.default is inspect.Parameter.empty}
    return Fields(dict(_types.input_type_types(cls)),
                  frozenset(pulumi for python, pulumi in names.items() if python in needed))


def shape(annotation: Any) -> Shape:
    """The shape behind an annotation such as Union[str, SomeEnum, Awaitable[...], Output[...]]."""
    if inspect.isclass(annotation):
        if issubclass(annotation, enum.Enum):
            return Shape("scalar", str, tuple(str(member.value) for member in annotation))
        return Shape("object", child=annotation) if _is_args(annotation) else Shape("scalar", annotation)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Sequence:
        return Shape("list", child=args[0])
    if origin is Mapping:
        return Shape("map", child=args[1])
    if origin is typing.Union:
        shapes = [shape(arg) for arg in args if inspect.isclass(arg) or typing.get_origin(arg) in (Sequence, Mapping)]
        shapes = [one for one in shapes if one.scalar is not type(None)]
        for one in shapes:
            if one.kind != "scalar" or one.allowed:
                return one
        if shapes:
            return shapes[0]
    return Shape("scalar", None)


def _is_args(cls: type) -> bool:
    from pulumi import _types

    return bool(_types.is_input_type(cls))


def object_fields(of: Shape) -> Fields:
    return _fields(of.child)
