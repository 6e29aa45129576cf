"""What is special about a rack, as answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gpufleet.catalog import gpu_model
from gpufleet.catalog.cuda import KnownDriver
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import FleetPool
from gpufleet.parts.hardware import Hardware, shown_memory
from gpufleet.parts.names import POOL_LABEL
from gpufleet.parts.taints import Taint
from gpufleet.places.base import ClusterPlan, Made, Nodes, Place, PoolResource
from gpufleet.stackfile.kinds import Kind
from gpufleet.stackfile.repair import UNREAD

from tests.made_up.rack.model import RackStack, Shelf

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan

TOP_SHELF = 9
GF299 = rule(
    "GF299",
    Severity.ERROR,
    title="There is no shelf {value}.",
    reason="A rack has nine shelves.",
    remedy="Use a lower one.",
    source="tests",
)


@check("rack pool", GF299)
def shelves(pool: FleetPool) -> Iterator[Finding]:
    """A shelf above the top one."""
    assert isinstance(pool.spec, Shelf)
    if pool.spec.shelf > TOP_SHELF:
        yield GF299.at(f"{pool.path}.shelf", value=pool.spec.shelf)


@dataclass(frozen=True, kw_only=True)
class RackPlan(ClusterPlan):
    """The rack in the plan."""

    door: str

    def title(self) -> str:
        return f"rack {self.name}"


@dataclass(frozen=True, kw_only=True)
class ShelfPlan(PoolResource):
    """One shelf in the plan."""

    shelf: int

    def lines(self) -> list[tuple[str, str]]:
        return [("shelf", str(self.shelf))]

    def output(self) -> dict[str, int]:
        return {"shelf": self.shelf}


class RackPlace(Place[RackStack, Shelf]):
    """Racks bring driver 580.95.05 and NVIDIA's runtime as the default one."""

    kind = Kind(
        "rack",
        RackStack,
        marks=frozenset({"shelf"}),
        stand_ins={
            "cluster": {"name": UNREAD, "door": UNREAD},
            "pools": {"name": UNREAD, "gpu": UNREAD, "shelf": 1, "nodes": 1},
        },
    )
    owners = ("rack", "none")
    owner_words: ClassVar[dict[str, str]] = {"rack": "the rack brings it"}
    owner_of_nodes = "the rack"

    def distribution(self, stack: RackStack) -> str:
        return "kubeadm"

    def hardware(self, pool: Shelf) -> Hardware:
        model = gpu_model(pool.gpu)
        return Hardware(2, model, shown_memory(model, None))

    def nodes(self, pool: Shelf) -> Nodes:
        return Nodes((), {POOL_LABEL: pool.name}, labelled=True, count=(pool.nodes, pool.nodes))

    def labels(self, pool: Shelf) -> dict[str, str]:
        return {**pool.labels, POOL_LABEL: pool.name}

    def added_taints(self, pool: Shelf) -> tuple[Taint, ...]:
        return (Taint("rack.example.com/shelf", str(pool.shelf), "NoSchedule"),)

    def default_runtime(self, pool: Shelf) -> str:
        return True

    def own_driver(self, pool: Shelf, hardware: Hardware) -> KnownDriver:
        return KnownDriver.exact("580.95.05")

    def cluster_plan(self, stack: RackStack) -> RackPlan:
        return RackPlan(kind="rack", name=stack.cluster.name, version=None, door=stack.cluster.door)

    def pool_resource(self, pool: FleetPool, stack: RackStack) -> ShelfPlan:
        assert isinstance(pool.spec, Shelf)
        return ShelfPlan(shelf=pool.spec.shelf)

    def deploy(self, plan: Plan, root: Path, tell: Callable[[tuple[Finding, ...]], None]) -> Made:
        from tests.made_up.rack.resources import deploy

        return deploy(plan)
