"""A place: one kind of cluster, and every answer about it that the rest of the product needs.

One folder per place: its models, its resources, its rules. A place is registered with `register`, and nothing else asks
of which kind a cluster or a pool is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from gpufleet.catalog.cuda import KnownDriver
from gpufleet.parts.hardware import Hardware
from gpufleet.parts.seen import Seen
from gpufleet.parts.taints import Taint
from gpufleet.stackfile.cluster import Autoscale, KubeconfigRef
from gpufleet.stackfile.kinds import Kind, add_kind, remove_kind
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import Pool

if TYPE_CHECKING:
    import pulumi

    from gpufleet.findings.finding import Finding
    from gpufleet.fleet.model import FleetPool
    from gpufleet.places.options import InCluster
    from gpufleet.plan.model import Plan

S = TypeVar("S", bound=Stack)
P = TypeVar("P", bound=Pool)


@dataclass(frozen=True)
class Nodes:
    """The nodes of a pool.

    `names` are known where the stack file lists them. `selector` are labels that pick exactly these nodes. `labelled`:
    whether the stack labels them; otherwise somebody else does. `count` is (lowest, highest), None where unknown.
    """

    names: tuple[str, ...]
    selector: Mapping[str, str]
    labelled: bool
    count: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """The cluster in the plan; a place adds what it needs to make or to reach it."""

    kind: str
    name: str
    version: str | None

    def title(self) -> str:
        """`AKS cluster vision-dev`."""
        raise NotImplementedError

    def lines(self) -> list[tuple[str, str]]:
        """(word, text) for the plan's details of the cluster; none where the stack makes no cluster."""
        return []

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PoolResource:
    """What the place makes for one pool: an agent pool of a cloud, or marks on nodes that exist."""

    def lines(self) -> list[tuple[str, str]]:
        """(word, text) for the plan's details of the pool."""
        return []

    def output(self) -> dict[str, Any]:
        """What the stack's output `pools` says of it."""
        return {}


def no_labels(ready: list[pulumi.Resource], read: pulumi.Input[Any]) -> list[pulumi.Resource]:
    """Nothing is labelled later."""
    return []


@dataclass(frozen=True)
class Made:
    """What a place has registered: how objects get into the cluster, what they wait for, and stack outputs.

    `seen` is what a look at the cluster found, None without a look. `label` registers what names keys of the software's
    ConfigMaps in labels of nodes. It is called after that software was registered, with what it waits for: resources,
    and an output of the software that is there when it is.
    """

    inside: InCluster
    before: list[pulumi.Resource]
    outputs: Mapping[str, Any]
    seen: Seen | None = None
    label: Callable[[list[pulumi.Resource], pulumi.Input[Any]], list[pulumi.Resource]] = no_labels


class Place(Generic[S, P]):
    """Base of all places."""

    #: What the stack file reads.
    kind: Kind
    #: Driver owners that exist here.
    owners: tuple[str, ...]
    #: Words for those owners that are the place's own.
    owner_words: ClassVar[Mapping[str, str]] = {}
    #: Owners under which the node image brings the container toolkit, so that an operator's toolkit would be a second.
    with_toolkit: tuple[str, ...] = ()
    #: Prefixes of labels, and of taints, that the owner of the nodes keeps for itself.
    reserved_labels: tuple[str, ...] = ()
    reserved_taints: tuple[str, ...] = ()
    #: Keys of taints under such a prefix that a pool may restate.
    restated_taints: tuple[str, ...] = ()
    #: Who that owner is.
    owner_of_nodes: str = ""
    #: The extra of the package that `deploy` needs.
    extra: str = ""

    def distribution(self, stack: S) -> str:
        """The Kubernetes distribution, as the catalogue names it."""
        raise NotImplementedError

    def owners_on(self, stack: S) -> tuple[str, ...]:
        """Driver owners that exist on the cluster of a stack."""
        return self.owners

    def hardware(self, pool: P) -> Hardware:
        """One node of a pool; what the catalogue does not know stays None."""
        raise NotImplementedError

    def nodes(self, pool: P) -> Nodes:
        """The nodes of a pool."""
        raise NotImplementedError

    def labels(self, pool: P) -> dict[str, str]:
        """Labels that every node of the pool carries, whoever runs there."""
        raise NotImplementedError

    def added_taints(self, pool: P) -> tuple[Taint, ...]:
        """Taints that the place itself puts on the nodes of a pool."""
        return ()

    def mig_restarts_nodes(self, stack: S) -> bool:
        """Whether a node has to restart before a changed MIG mode of its GPU takes effect."""
        return False

    def existing_runtime_class(self, stack: S) -> bool | None:
        """Whether the stack file says that the RuntimeClass of NVIDIA's runtime is there; None: it says nothing."""
        return None

    def default_runtime(self, pool: P) -> str:
        """The handler of pods without a runtime class (`runc`, `nvidia`), before any GPU software comes."""
        raise NotImplementedError

    def own_driver(self, pool: P, hardware: Hardware) -> KnownDriver | None:
        """The driver that the place itself installs, where `driver` names the place; None where it is not known."""
        return None

    def os(self, pool: P, stack: S) -> str | None:
        """The nodes' operating system as os-release names it (`ubuntu-24.04`), or None."""
        return None

    def autoscale(self, pool: P) -> Autoscale | None:
        """Bounds of the autoscaler; None for pools of fixed size."""
        return None

    def sets_time_slice(self, pool: P) -> bool:
        """Whether something on the nodes sets the length of a time slice."""
        return False

    def kubeconfig(self, stack: S) -> KubeconfigRef | None:
        """Where the stack file says that the kubeconfig is; None where the stack makes the cluster."""
        return None

    def cluster_plan(self, stack: S) -> ClusterPlan:
        """The cluster in the plan."""
        raise NotImplementedError

    def pool_resource(self, pool: FleetPool, stack: S) -> PoolResource | None:
        """What the place makes for one pool; None where it makes nothing."""
        return None

    def deploy(self, plan: Plan, root: Path, tell: Callable[[tuple[Finding, ...]], None]) -> Made:
        """Registers the cluster and its pools; `tell` prints what is found before anything is registered.

        Raises:
            pulumi.RunError: the cluster cannot be used; nothing was registered.
        """
        raise NotImplementedError


PLACES: dict[str, Place[Any, Any]] = {}


def register(place: Place[Any, Any]) -> None:
    """Makes a place known, to the stack file as well."""
    add_kind(place.kind)
    PLACES[place.kind.name] = place


def unregister(name: str) -> None:
    """Forgets a place; for tests that bring one of their own."""
    remove_kind(name)
    PLACES.pop(name, None)
