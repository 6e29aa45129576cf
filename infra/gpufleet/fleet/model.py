"""The fleet: a stack with every word decided once.

`gpufleet.fleet.resolve` makes it. Rules, artifacts, teams, status and lint read it and ask nothing again. What is
unknown is None, with its reason where somebody will want it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpufleet.catalog.container_runtime import OperatorCdi
from gpufleet.catalog.cuda import KnownDriver
from gpufleet.fleet.autoscaler import Autoscaling
from gpufleet.fleet.offer import NodePrediction
from gpufleet.fleet.profile import Profile
from gpufleet.methods.base import Method
from gpufleet.parts.hardware import Hardware
from gpufleet.parts.taints import Taint
from gpufleet.places.base import Nodes, Place
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import Pool


@dataclass(frozen=True)
class Cdi:
    """What an operator release does about CDI (device names that the container runtime resolves).

    `enabled` is the chart's cdi.enabled, `devices` whether its plugin hands out CDI devices, `nri` whether a plugin of
    the container runtime injects them instead of a changed configuration. `known` is what releases of its version do.
    """

    enabled: bool
    devices: bool
    nri: bool
    known: OperatorCdi


@dataclass(frozen=True)
class NodeRuntime:
    """How a GPU gets into a container on the nodes of one pool.

    `toolkit`: who brings NVIDIA's container toolkit (operator, host, image). `strategy`: how the plugin hands out GPUs
    (cdi, envvar). `hook` is the file on the node that CDI calls. `default` is the handler of pods that name no runtime
    class, `runtime_class` the class that pods must name to get a GPU.
    """

    toolkit: str
    strategy: str
    hook: str | None
    default: str
    runtime_class: str | None

    @property
    def host_cdi(self) -> bool:
        """Whether the container runtime of a prepared host has to resolve CDI devices."""
        return self.toolkit == "host" and self.strategy == "cdi"


@dataclass(frozen=True)
class Release:
    """What one GPU Operator release has once for all nodes.

    `driver` and `toolkit`: whether it installs them. `version` and `kernel_module_type` are those of its driver, None
    where the chart's default stands; of precompiled drivers `version` is the branch. `mig_strategy` reaches every
    plugin as an environment variable. `layouts` are the MIG instances of each GPU of the pools that its MIG manager
    cuts.
    """

    driver: bool
    toolkit: bool
    runtime_class: str
    cdi: Cdi
    version: str | None
    kernel_module_type: str | None
    mig_strategy: str
    layouts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class FleetPool:
    """One pool, resolved.

    `spec` is what the stack file says, `path` where (`pools[1]`); `owners` are the driver owners that exist on the
    cluster; `release` is that of the whole stack.
    `served`: whether the stack's GPU software runs there; `profile` is None where it does not. `layout`: MIG instances
    of each GPU, empty without MIG, None where that cannot be told. `runtime` is None where no GPU gets into a
    container. `labels` is what the stack puts on the nodes, or expects there where somebody else labels them;
    `derived` those of them that the software needs.
    """

    index: int
    spec: Pool
    place: Place[Any, Any]
    owners: tuple[str, ...]
    release: Release | None
    hardware: Hardware
    driver: KnownDriver | None
    served: bool
    method: Method
    profile: Profile | None
    layout: Mapping[str, int] | None
    taints: tuple[Taint, ...]
    nodes: Nodes
    runtime: NodeRuntime | None
    os: str | None
    derived: Mapping[str, str]
    labels: Mapping[str, str]
    offer: NodePrediction
    autoscaling: Autoscaling | None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def owner(self) -> str:
        """Who installs the driver."""
        return self.spec.driver

    @property
    def path(self) -> str:
        return f"pools[{self.index}]"

    @property
    def selector(self) -> Mapping[str, str]:
        return self.nodes.selector

    @property
    def runtime_class(self) -> str | None:
        """The class that pods must name to get a GPU; None where they need none."""
        return self.runtime.runtime_class if self.runtime else None

    @property
    def profile_name(self) -> str | None:
        return self.profile.name if self.profile else None


@dataclass(frozen=True)
class Fleet:
    """A stack, resolved. `release` is None on the standalone route."""

    stack: Stack
    place: Place[Any, Any]
    pools: tuple[FleetPool, ...]
    release: Release | None

    @cached_property
    def served(self) -> tuple[FleetPool, ...]:
        """The pools that the stack's GPU software runs on."""
        return tuple(pool for pool in self.pools if pool.served)

    @cached_property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles that pools use, by name, sorted; pools that name none use the one called `unshared`."""
        found = {pool.profile.name: pool.profile for pool in self.pools if pool.profile}
        return {name: found[name] for name in sorted(found)}

    @cached_property
    def by_name(self) -> Mapping[str, FleetPool]:
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def own_plugin(self) -> bool:
        """Whether a method brings its own device plugin; NVIDIA's stays away then: both would register one name."""
        return any(pool.method.own_plugin for pool in self.served)

    @cached_property
    def distribution(self) -> str:
        """The Kubernetes distribution, as the catalogue names it."""
        return self.place.distribution(self.stack)
