"""HAMi: what its release is told, value by value, and what its nodes then offer.

Expected values are written by hand from the chart's own values (Project-HAMi/HAMi 2.10.0, charts/hami/values.yaml).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from gpufleet.plan.compile import Plan

from tests.unit.config.samples import BASES, REMOVE, compile_base, told

ROOT = Path(__file__).parents[3]
USED = {"sharing.vgpu": {"strategy": "hami"}, "pools[0].sharing": "vgpu"}
#: What one tolerates for the taint sku=gpu:NoSchedule.
SKU = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
SPOT = {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
#: Values of the chart that gpufleet sets, and the type of the default in the chart.
CHART_VALUES: dict[str, type] = {
    "global.imagePullSecrets": list,
    "devicePlugin.deviceSplitCount": int,
    "devicePlugin.deviceMemoryScaling": float,
    "devicePlugin.nvidiaNodeSelector.gpu": str,
    "devicePlugin.tolerations": list,
    "devicePlugin.runtimeClassName": str,
    "devicePlugin.gpuOperatorToolkitReady.enabled": bool,
    "devicePlugin.image.registry": str,
    "devicePlugin.image.repository": str,
    "devicePlugin.monitor.image.registry": str,
    "devicePlugin.monitor.image.repository": str,
    "scheduler.admissionWebhook.manageNamespaceSelector": bool,
    "scheduler.extender.image.registry": str,
    "scheduler.extender.image.repository": str,
    "scheduler.kubeScheduler.image.registry": str,
    "scheduler.kubeScheduler.image.repository": str,
    "scheduler.patch.imageNew.registry": str,
    "scheduler.patch.imageNew.repository": str,
}


def plan_of(base: str, changes: dict[str, Any] | None = None) -> Plan:
    """The plan of a base whose first pool is under HAMi."""
    compiled = compile_base(base, {**USED, **(changes or {})})
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def release(plan: Plan) -> Any:
    """HAMi's release in a plan."""
    assert plan.artifact("hami") is not None
    return plan.artifact("hami")


def values(base: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = release(plan_of(base, changes)).values
    return found


def flat(data: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Leaves by dotted path; lists are leaves."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return found


@pytest.mark.parametrize("base", BASES)
def test_the_release(base: str) -> None:
    """Always of one name, in a namespace of its own, at the version that the catalogue was checked against."""
    found = release(plan_of(base))
    assert (found.release, found.namespace) == ("hami", "hami-system")
    assert (found.chart, found.repository) == ("hami", "https://project-hami.github.io/HAMi/")
    assert found.version == "2.10.0"
    assert found.timeout_seconds == 900


@pytest.mark.parametrize("base", BASES)
def test_without_a_pool_under_it_there_is_none(base: str) -> None:
    compiled = compile_base(base)
    assert compiled.plan is not None
    assert compiled.plan.artifact("hami") is None
    assert "gpu" not in compiled.plan.pools[0].labels
    assert not [image for image in compiled.plan.images if "hami" in image]


def test_a_pool_that_is_not_served_brings_none() -> None:
    compiled = compile_base("aks-plugin", {"sharing.vgpu": {"strategy": "hami"}, "pools[0].driver": "none"})
    assert compiled.plan is not None, told(compiled)
    assert compiled.plan.artifact("hami") is None


@pytest.mark.parametrize(
    ("changes", "chart", "repository"),
    [
        ({"repository": "https://mirror.example.com/charts"}, "hami", "https://mirror.example.com/charts"),
        ({"path": "/charts/hami-2.10.0.tgz"}, "/charts/hami-2.10.0.tgz", None),
    ],
)
@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator"])
def test_a_chart_from_elsewhere(base: str, changes: dict[str, str], chart: str, repository: str | None) -> None:
    found = release(plan_of(base, {"stack.hamiChart": changes}))
    assert (found.chart, found.repository, found.version) == (chart, repository, "2.10.0")


@pytest.mark.parametrize("route", ["plugin", "operator"])
def test_all_values_on_an_existing_cluster(route: str) -> None:
    """Host by host nvidia is not the default runtime: HAMi's plugin names the class to see the GPUs."""
    assert values(f"existing-{route}", {"pools[0].taints": ["sku=gpu:NoSchedule"]}) == {
        "devicePlugin": {
            "deviceSplitCount": 10,
            "deviceMemoryScaling": 1.0,
            "nvidiaNodeSelector": {"gpu": "on"},
            "tolerations": [SKU],
            "runtimeClassName": "nvidia",
        }
    }


@pytest.mark.parametrize("route", ["plugin", "operator"])
def test_all_values_on_aks(route: str) -> None:
    """nvidia is the default runtime there, and AKS's admissions enforcer would fight over the namespace selector."""
    waits = {"gpuOperatorToolkitReady": {"enabled": True}}  # for the operator's toolkit
    assert values(f"aks-{route}", {"pools[0].taints": ["sku=gpu:NoSchedule"]}) == {
        "devicePlugin": {
            **(waits if route == "operator" else {}),
            "deviceSplitCount": 10,
            "deviceMemoryScaling": 1.0,
            "nvidiaNodeSelector": {"gpu": "on"},
            "tolerations": [SKU],
        },
        "scheduler": {"admissionWebhook": {"manageNamespaceSelector": False}},
    }


def test_the_profile_sets_how_a_gpu_is_split() -> None:
    split = {"sharing.vgpu": {"strategy": "hami", "splitCount": 5, "memoryScaling": 1.5}}
    plugin = values("existing-plugin", split)["devicePlugin"]
    assert (plugin["deviceSplitCount"], plugin["deviceMemoryScaling"]) == (5, 1.5)


def on_hosts(*default_runtime: bool) -> dict[str, Any]:
    """Pools under HAMi by whether nvidia is the default runtime of their hosts."""
    return {
        "pools": [
            {"name": f"p{i}", "hosts": {f"n{i}": {}}, "gpu": "T4", "gpusPerNode": 1, "sharing": "vgpu"}
            | {"nvidiaDefaultRuntime": default}
            for i, default in enumerate(default_runtime)
        ],
        "pools[0].sharing": "vgpu",
    }


@pytest.mark.parametrize("pools", [1, 2])
def test_the_runtime_class_follows_the_hosts(pools: int) -> None:
    """Its plugin sees no GPU without NVIDIA's runtime, by default or by name; one DaemonSet goes to all pools."""
    assert "runtimeClassName" not in values("existing-plugin", on_hosts(*[True] * pools))["devicePlugin"]
    assert values("existing-plugin", on_hosts(*[False] * pools))["devicePlugin"]["runtimeClassName"] == "nvidia"
    mixed = compile_base("existing-plugin", {**USED, **on_hosts(True, False)})
    assert told(mixed) == [("GF306", "pools[0].nvidiaDefaultRuntime")]


def test_the_plugin_tolerates_what_any_of_its_pools_carries() -> None:
    """Each taint once; those of spot nodes are AKS's own."""
    pool = {"name": "spot", "vmSize": "Standard_NC4as_T4_v3", "count": 1, "spot": True, "sharing": "vgpu"}
    changes = {"pools[0].taints": ["sku=gpu:NoSchedule"], "pools[1]": {**pool, "taints": ["sku=gpu:NoSchedule"]}}
    found = values("aks-plugin", changes)["devicePlugin"]["tolerations"]
    assert sorted(found, key=lambda t: t["key"]) == [SPOT, SKU]
    assert values("aks-plugin")["devicePlugin"]["tolerations"] == []


def test_images_from_the_stacks_own_registry() -> None:
    """Every part of the chart that runs, each under its own name."""
    changes = {
        "stack.images": {"registry": "mirror.example.com:5000/x", "pullSecrets": ["regcred", "second"]},
        "cluster.version": "1.36.2",
    }
    found = values("existing-plugin", changes)
    own = {"registry": "mirror.example.com:5000/x", "repository": "hami"}
    assert found["global"] == {"imagePullSecrets": ["regcred", "second"]}
    assert found["devicePlugin"]["image"] == own
    assert found["devicePlugin"]["monitor"] == {"image": own}
    assert found["scheduler"] == {
        "extender": {"image": own},
        "kubeScheduler": {"image": {**own, "repository": "kube-scheduler"}},
        "patch": {"imageNew": {**own, "repository": "kube-webhook-certgen"}},
    }
    aks = values("aks-plugin", changes)["scheduler"]
    assert aks == {**found["scheduler"], "admissionWebhook": {"manageNamespaceSelector": False}}


IMAGES = ("docker.io/liangjw/kube-webhook-certgen:v1.1.1", "docker.io/projecthami/hami:v2.10.0")
SCHEDULER = "registry.cn-hangzhou.aliyuncs.com/google_containers/kube-scheduler"


def test_images_for_a_mirror() -> None:
    """The scheduler's tag is the cluster's exact version: without it, it is said instead of guessed."""
    exact = plan_of("existing-plugin", {"cluster.version": "1.36.2"})
    assert exact.images == (*IMAGES, f"{SCHEDULER}:v1.36.2")
    assert exact.images_unknown == ()
    for changes in ({}, {"cluster.version": "1.36"}):
        minor = plan_of("existing-plugin", changes)
        assert minor.images == IMAGES
        assert minor.images_unknown == (
            f"image {SCHEDULER}: the tag is the exact version of the cluster, such as v1.36.2",
        )


EVERYTHING = {
    "stack.images": {"registry": "mirror.example.com", "pullSecrets": ["a"]},
    "cluster.version": "1.36.2",
    "pools[0].taints": ["sku=gpu:NoSchedule"],
}


def test_every_value_is_one_of_the_charts() -> None:
    """The chart has no schema: a value with a slip in its name would be ignored without a word."""
    seen: set[str] = set()
    for base in BASES:
        for path, value in flat(values(base, EVERYTHING)).items():
            assert isinstance(value, CHART_VALUES[path]), (base, path, value)
            seen.add(path)
    assert seen == set(CHART_VALUES), "each of them is set somewhere"
    schema = json.loads((ROOT / "twin/chart/hami/values.schema.json").read_text())
    for base in BASES:
        jsonschema.validate(values(base, EVERYTHING), schema)


@pytest.mark.parametrize("base", BASES)
def test_nodes_carry_the_label_that_binds_its_plugin(base: str) -> None:
    pool = plan_of(base).pools[0]
    assert pool.labels["gpu"] == "on"
    assert pool.node.labels["gpu"] == "on"


def test_labels_of_nodes_that_somebody_else_labels_are_not_invented() -> None:
    by_selector = {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"site": "barn", "gpu": "on"}}
    assert plan_of("existing-plugin", by_selector).pools[0].node.labels == {"site": "barn", "gpu": "on"}


@pytest.mark.parametrize("split", [2, 5, 10])
def test_each_gpu_is_offered_as_often_as_it_is_split(split: int) -> None:
    changes = {"sharing.vgpu": {"strategy": "hami", "splitCount": split}, "pools[0].gpusPerNode": 4}
    plan = plan_of("existing-plugin", changes)
    assert plan.pools[0].node.resources == {"nvidia.com/gpu": 4 * split}
    assert plan.pools[0].node.memory_per_pod_gib == round(15 / split, 2)
    assert plan.profiles[0].pods_per_device == split


@pytest.mark.parametrize("base", BASES)
def test_nvidias_plugin_stays_away(base: str) -> None:
    """Both register nvidia.com/gpu."""
    plan = plan_of(base)
    if plan.plugin is not None:
        assert plan.plugin.daemon_sets == ()
    else:
        assert plan.operator is not None
        assert plan.operator.values["devicePlugin"] == {"enabled": False}
        assert plan.operator.values["gfd"] == {"enabled": True}


@pytest.mark.parametrize(
    ("base", "runtime_class"),
    [("aks-plugin", None), ("aks-operator", None), ("existing-plugin", "nvidia"), ("existing-operator", "nvidia")],
)
def test_what_a_teams_pods_need(base: str, runtime_class: str | None) -> None:
    team = {"name": "ml", "namespace": "ml", "pools": ["t4"], "quota": {"gpu": 3}}
    (found,) = plan_of(base, {"teams": [team], "pools[0].taints": ["sku=gpu:NoSchedule"]}).teams
    assert found.quota == {"requests.nvidia.com/gpu": "3"}
    (pool,) = found.pools
    assert pool.resources == ("nvidia.com/gpu",)
    assert pool.node_selector == {"gpufleet.dev/pool": "t4"}
    assert pool.tolerations == (SKU,)
    assert pool.runtime_class == runtime_class
