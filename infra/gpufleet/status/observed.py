"""What was seen of a cluster: the parts that the plan speaks about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpufleet.parts.device_requests import GpuPod


@dataclass(frozen=True)
class Condition:
    """A condition of a node, as the API shows it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    def words(self) -> str:
        """Reason and message, without what is empty."""
        return ": ".join(part for part in (self.reason, self.message.strip()) if part)


@dataclass(frozen=True)
class ObservedNode:
    """One node. `allocatable` and `capacity` hold nvidia.com/* resources only; taints are (key, value, effect).

    `capacity` is what the plugin has registered, `allocatable` what of it is healthy.
    """

    name: str
    ready: bool
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: dict[str, int]
    capacity: dict[str, int] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    cordoned: bool = False


@dataclass(frozen=True)
class OperandPod:
    """A pod of the GPU software on a node, whoever made it; `operand` is a row of the catalogue.

    `trouble` is why it is not ready, in the kubelet's words. `waits`: nothing has failed in it, it waits for something.
    `init` is the init container in which it is.
    """

    name: str
    namespace: str
    node: str
    ready: bool
    operand: str = "plugin"
    config_maps: tuple[str, ...] = ()
    trouble: str | None = None
    waits: bool = False
    init: str | None = None


@dataclass(frozen=True)
class Policy:
    """The operator's ClusterPolicy: its state, and why it is not ready."""

    name: str
    state: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Observed:
    """The parts of a cluster that the plan speaks about.

    `config_maps` are those of sharing texts, (namespace, name) -> keys; None where the user may not list them.
    `holders` are pods that hold devices. `policies` is None where there are none, or the user may not list them.
    """

    nodes: dict[str, ObservedNode] = field(default_factory=dict)
    pods: tuple[OperandPod, ...] = ()
    config_maps: Mapping[tuple[str, str], frozenset[str]] | None = None
    holders: tuple[GpuPod, ...] = ()
    policies: tuple[Policy, ...] | None = None
