"""HAMi instead of NVIDIA's plugin: its own Helm release, and the label that binds its plugin to nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufleet.catalog import component, components_of
from gpufleet.images.images import mirrored
from gpufleet.plan.driver_owner import plugin_runtime_class
from gpufleet.plan.sharing import serves, spec_of
from gpufleet.plan.taints import pool_taints, tolerations
from gpufleet.routes.chart_values import set_value
from gpufleet.stackfile.model import AksStack, Stack, stack_pools
from gpufleet.stackfile.pools import Pool
from gpufleet.stackfile.sharing import Hami

RELEASE_NAME = "hami"
NAMESPACE = "hami-system"
#: The chart's node selector; without the label its plugin runs nowhere (case NV-22).
NODE_LABEL = {"gpu": "on"}
TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class HamiPlan:
    """The Helm release. `chart` is a name in `repository`, or a path when `repository` is None; timeout in seconds."""

    namespace: str
    release: str
    chart: str
    repository: str | None
    version: str
    timeout_seconds: int
    values: dict[str, Any]


def hami_labels(stack: Stack) -> dict[str, dict[str, str]]:
    """Per pool under HAMi, the label for its nodes."""
    return {p.name: dict(NODE_LABEL) for p in stack_pools(stack) if serves(p) and isinstance(spec_of(p, stack), Hami)}


def hami_plan(stack: Stack) -> HamiPlan | None:
    """None where no pool uses HAMi."""
    pools = [p for p in stack_pools(stack) if serves(p) and isinstance(spec_of(p, stack), Hami)]
    spec = spec_of(pools[0], stack) if pools else None
    if not isinstance(spec, Hami):
        return None
    known, chart = component("hami"), stack.stack.hami_chart
    return HamiPlan(
        namespace=NAMESPACE,
        release=RELEASE_NAME,
        chart=chart.path or known.chart or RELEASE_NAME,
        repository=None if chart.path else chart.repository or known.repository,
        version=known.version,
        timeout_seconds=TIMEOUT_SECONDS,
        values=_values(stack, spec, pools),
    )


def _values(stack: Stack, spec: Hami, pools: list[Pool]) -> dict[str, Any]:
    closure = tolerations({t for p in pools for t in pool_taints(p)})
    values: dict[str, Any] = {
        "devicePlugin": {
            "deviceSplitCount": spec.split_count,
            "deviceMemoryScaling": spec.memory_scaling,
            "nvidiaNodeSelector": dict(NODE_LABEL),
            "tolerations": [t.as_dict() for t in closure],
        },
    }
    runtime = plugin_runtime_class(pools)
    if runtime:
        values["devicePlugin"]["runtimeClassName"] = runtime
    if isinstance(stack, AksStack):
        # AKS's admissions enforcer would fight the chart over the namespace selector (Project-HAMi/HAMi chart values).
        values["scheduler"] = {"admissionWebhook": {"manageNamespaceSelector": False}}
    images = stack.stack.images
    if images.pull_secrets:
        values["global"] = {"imagePullSecrets": list(images.pull_secrets)}
    if images.registry:
        for row in components_of("hami"):
            own = mirrored(row.image.rpartition(":")[0] if row.image else str(row.image_path), images)
            registry, _, repository = own.rpartition("/")
            set_value(values, f"{row.section}.registry", registry)
            set_value(values, f"{row.section}.repository", repository)
    return values
