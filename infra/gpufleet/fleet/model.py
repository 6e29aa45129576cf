"""The fleet: a stack with every word decided once.

`gpufleet.fleet.resolve` makes it. Rules, artifacts, teams, status and lint read it and ask nothing again. What is
unknown is None, with its reason where somebody will want it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
class Release:
    """What one GPU Operator release has once for all nodes.

    `driver` and `toolkit`: whether it installs them. `version` and `kernel_module_type` are those of its driver, None
    where the chart's default stands. `mig_strategy` reaches every plugin as an environment variable. `layouts` are the
    MIG instances of each GPU of the pools that its MIG manager cuts.
    """

    driver: bool
    toolkit: bool
    runtime_class: str
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
    of each GPU, empty without MIG, None where that cannot be told. `runtime_class` is the one that pods need to get a
    GPU from NVIDIA's runtime, None where that is the default runtime. `labels` is what the stack puts on the nodes, or
    expects there where somebody else labels them; `derived` those of them that the software needs.
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
    runtime_class: str | None
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
