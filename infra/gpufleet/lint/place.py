"""Where a pod may run: the nodes of one pool of a stack, or the one node that the user described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gpufleet.device_plugin import NodeLayout
from gpufleet.lint.offers import Offers

if TYPE_CHECKING:
    from gpufleet.catalog.cuda import KnownDriver


#: Labels that feature discovery and the operator write. Without the operator neither of them runs.
DISCOVERED = "nvidia.com/"


class Taint(Protocol):
    """A taint of a node."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


@dataclass(frozen=True)
class Cards:
    """The GPUs of a node under HAMi: how many, MiB that each is offered as, and how many pods share each."""

    number: int
    memory_mib: int | None
    split: int


@dataclass(frozen=True)
class Labels:
    """The labels of a pool's nodes.

    `known` are those that the plan names. `decided` are keys that the stack sets on some pool: a pool without such a
    key has no node with it. The same holds for keys that begin with one of `prefixes`.
    """

    known: Mapping[str, str] = field(default_factory=dict)
    decided: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def has(self, key: str) -> bool | None:
        """Whether the nodes carry a label; None where nobody knows."""
        if key in self.known:
            return True
        return False if key in self.decided or key.startswith(self.prefixes or ("\n",)) else None


@dataclass(frozen=True)
class RuntimeClasses:
    """`needed` is the class that pods must name to get a GPU, None where they need none.

    `exist` are NVIDIA's classes in the cluster, None where there may be others. `added`: the webhook of the pool's
    software writes the class into pods that name none.
    """

    needed: str | None = None
    exist: frozenset[str] | None = None
    added: bool = False


@dataclass(frozen=True)
class Quota:
    """What a team may have at a time: the resource's name and how many."""

    team: str
    hard: Mapping[str, int]


@dataclass(frozen=True)
class PoolNode:
    """The nodes of a pool, as the plan has them.

    `node` is None where the hardware is not known, `offers` where nobody can tell what the nodes offer. `profile` is
    the key that the nodes' plugin reads, where a ConfigMap has several. `driver` and `env` are what is known of the
    driver, and the environment that the stack gives the plugin. `most_nodes` counts the autoscaler's maximum.
    `resources` and `values` are those of all pools of the stack: names of resources, and by label every value.
    `adds_tolerations`: the cluster's admission adds a toleration for the key of a requested resource.
    """

    name: str
    node: NodeLayout | None
    driver: KnownDriver | None
    taints: tuple[Taint, ...]
    env: dict[str, str] = field(default_factory=dict)
    offers: Offers | None = None
    profile: str | None = None
    resources: tuple[str, ...] = ()
    labels: Labels = Labels()
    selector: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    classes: RuntimeClasses = RuntimeClasses()
    most_nodes: int | None = None
    cards: Cards | None = None
    adds_tolerations: bool = True
    quotas: Mapping[str, Quota] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A pool with what its nodes offer under the configuration that counts; `pool` is None for a described node."""

    offers: Offers
    taints: tuple[Taint, ...] = ()
    pool: PoolNode | None = None
    gpus: int | None = None
    """The GPUs of a described node of which no configuration is given."""

    @property
    def labels(self) -> Labels:
        """The labels of the nodes. What a configuration of the user's own makes of feature discovery's is not known."""
        if self.pool is None:
            return Labels()
        if self.offers.planned:
            return self.pool.labels
        own = self.pool.labels
        return Labels(
            {k: v for k, v in own.known.items() if not k.startswith(DISCOVERED)},
            frozenset(k for k in own.decided if not k.startswith(DISCOVERED)),
            tuple(prefix for prefix in own.prefixes if prefix != DISCOVERED),
        )
