"""The plan: all that will be. `plan` prints it, `up` deploys it, `status` looks for it in the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpufleet.fleet.autoscaler import Autoscaling
from gpufleet.fleet.model import NodeRuntime
from gpufleet.fleet.offer import NodePrediction
from gpufleet.fleet.profile import Profile
from gpufleet.parts.artifact import Artifact
from gpufleet.places.base import ClusterPlan, PoolResource
from gpufleet.routes.operator import OperatorPlan
from gpufleet.routes.plugin import PluginPlan
from gpufleet.teams.teams import TeamPlan

#: 2: cluster and pools hold every input of their resources; software that a method brings is there only if installed.
PLAN_VERSION = 2
#: Keys of the plan that are there whether or not the route is taken.
_ROUTES = ("plugin", "operator")


@dataclass(frozen=True)
class PoolPlan:
    """One pool.

    `driver` says in words who installs the driver. `nodes` are host names, or empty where the cloud or a selector
    decides; `selector` are labels that pick exactly the pool's nodes; `node_count` (low, high). `resource` is what the
    place makes for the pool.
    """

    name: str
    driver_owner: str
    driver: str
    gpu: str | None
    gpus_per_node: int | None
    nodes: tuple[str, ...]
    selector: Mapping[str, str]
    node_count: tuple[int, int] | None
    profile: str | None
    runtime: NodeRuntime | None
    taints: tuple[str, ...]
    labels: Mapping[str, str]
    node: NodePrediction
    autoscaling: Autoscaling | None
    resource: PoolResource | None


@dataclass(frozen=True)
class Plan:
    """One stack. `software` is in the order of installation."""

    stack: str
    cluster: ClusterPlan
    route: str
    pools: tuple[PoolPlan, ...]
    profiles: tuple[Profile, ...]
    software: tuple[Artifact, ...]
    teams: tuple[TeamPlan, ...]
    images: tuple[str, ...]
    images_unknown: tuple[str, ...]
    warnings: tuple[dict[str, Any], ...] = ()

    @property
    def plugin(self) -> PluginPlan | None:
        """The standalone route, or None."""
        return next((a for a in self.software if isinstance(a, PluginPlan)), None)

    @property
    def operator(self) -> OperatorPlan | None:
        """The operator route, or None."""
        return next((a for a in self.software if isinstance(a, OperatorPlan)), None)

    @property
    def labels_last(self) -> bool:
        """Whether labels of nodes name what the software brings, so that they change after it."""
        return any(artifact.before_labels for artifact in self.software)

    def artifact(self, name: str) -> Artifact | None:
        """The software of a name: a route, or a method that brings its own."""
        return next((a for a in self.software if a.id == name), None)

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form. Each artifact has its own key: the route's, and those of methods that bring software."""
        return {
            "version": PLAN_VERSION,
            "stack": self.stack,
            "cluster": self.cluster.as_dict(),
            "route": self.route,
            "pools": [asdict(pool) for pool in self.pools],
            "profiles": [asdict(profile) for profile in self.profiles],
            **dict.fromkeys(_ROUTES),
            **{artifact.id: artifact.as_dict() for artifact in self.software},
            "teams": [asdict(team) for team in self.teams],
            "images": list(self.images),
            "images_unknown": list(self.images_unknown),
            "warnings": list(self.warnings),
        }

    def as_json(self) -> str:
        """One JSON document, the same bytes for the same input."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)
