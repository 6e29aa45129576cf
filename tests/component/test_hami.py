"""What `up` installs for HAMi, by hand: release, values, namespace, labels of nodes, and what stays away."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.component.recording import Recorded, Resource, run

STACKS = Path(__file__).parents[1] / "golden" / "stacks"
NAMES = ["aks-plugin-hami", "aks-operator-hami", "existing-plugin-hami", "existing-operator-hami"]
AKS, EXISTING = NAMES[:2], NAMES[2:]
PLUGIN, OPERATOR = NAMES[::2], NAMES[1::2]
#: From the profile and the taint of those stacks.
SPLIT = {
    "deviceSplitCount": 5,
    "deviceMemoryScaling": 1.5,
    "nvidiaNodeSelector": {"gpu": "on"},
    "tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
}


def text(name: str) -> str:
    return (STACKS / f"{name}.yaml").read_text()


@cache
def recorded(name: str) -> Recorded:
    """What the program registers for a stack."""
    seen = run(text(name), name)
    assert seen.error is None, seen.error
    return seen


def release(seen: Recorded) -> Resource:
    """HAMi's release: the only one on the plugin route, one of two on the operator's."""
    found = [r for r in seen.of("Release") if r.inputs["name"] == "hami"]
    assert len(found) == 1, [r.name for r in seen.of("Release")]
    return found[0]


def namespace(seen: Recorded) -> Resource:
    (found,) = [r for r in seen.of("Namespace") if r.inputs["metadata"]["name"] == "hami-system"]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_release(name: str) -> None:
    sent = release(recorded(name))
    assert sent.type == "kubernetes:helm.sh/v3:Release"
    for key, value in {
        "name": "hami",
        "namespace": "hami-system",
        "chart": "hami",
        "version": "2.10.0",
        "repositoryOpts": {"repo": "https://project-hami.github.io/HAMi/"},
        "atomic": True,
        "cleanupOnFail": True,
        "timeout": 900,
    }.items():
        assert sent.inputs[key] == value, key
    assert not {"skipAwait", "disableWebhooks"} & set(sent.inputs), "its hooks make the webhook's certificate"


@pytest.mark.parametrize("name", NAMES)
def test_its_values(name: str) -> None:
    expected: dict[str, Any] = {"devicePlugin": dict(SPLIT)}
    if name == "aks-operator-hami":  # the operator installs driver and toolkit; HAMi's plugin starts after them
        expected["devicePlugin"]["gpuOperatorToolkitReady"] = {"enabled": True}
    if name in AKS:
        expected["scheduler"] = {"admissionWebhook": {"manageNamespaceSelector": False}}
    else:
        expected["devicePlugin"]["runtimeClassName"] = "nvidia"
    assert release(recorded(name)).inputs["values"] == expected


@pytest.mark.parametrize("name", NAMES)
def test_its_namespace_takes_privileged_pods(name: str) -> None:
    sent = namespace(recorded(name))
    assert sent.inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert sent.urn in release(recorded(name)).dependencies


@pytest.mark.parametrize("name", NAMES)
def test_it_comes_after_the_nodes_and_the_routes_software(name: str) -> None:
    """Those bring the runtime class, and under the operator the driver."""
    seen = recorded(name)
    kinds = ("AgentPool", "NodePatch", "RuntimeClass")
    before = {r.urn for kind in kinds for r in seen.of(kind)}
    before |= {r.urn for r in seen.of("Release") if r.inputs["name"] == "gpu-operator"}
    assert before
    assert before <= release(seen).dependencies


@pytest.mark.parametrize("name", NAMES)
def test_every_node_carries_the_label_that_binds_its_plugin(name: str) -> None:
    seen = recorded(name)
    pools = [r.inputs["nodeLabels"] for r in seen.of("AgentPool")]
    nodes = list(seen.node_labels().values())
    assert len(pools) == (1 if name in AKS else 0)
    assert len(nodes) == (2 if name in EXISTING else 0)
    assert {labels["gpu"] for labels in (*pools, *nodes)} == {"on"}


@pytest.mark.parametrize("name", PLUGIN)
def test_nvidias_plugin_is_not_deployed(name: str) -> None:
    seen = recorded(name)
    assert seen.of("DaemonSet") == []
    assert seen.of("ConfigMap") == []
    assert len(seen.of("Release")) == 1


@pytest.mark.parametrize("name", OPERATOR)
def test_the_operators_plugin_is_off_and_its_discovery_on(name: str) -> None:
    seen = recorded(name)
    assert len(seen.of("Release")) == 2
    (sent,) = [r.inputs["values"] for r in seen.of("Release") if r.inputs["name"] == "gpu-operator"]
    assert sent["devicePlugin"] == {"enabled": False}
    assert sent["gfd"] == {"enabled": True}
    assert sent["migManager"] == {"enabled": False}


def test_the_runtime_class_exists_where_its_pods_name_it() -> None:
    """On the plugin route gpufleet makes it; the operator brings its own."""
    found = recorded("existing-plugin-hami").of("RuntimeClass")
    assert [(r.inputs["metadata"]["name"], r.inputs["handler"]) for r in found] == [("nvidia", "nvidia")]
    for name in ("aks-plugin-hami", *OPERATOR):
        assert recorded(name).of("RuntimeClass") == []
    (operator,) = [r for r in recorded("existing-operator-hami").of("Release") if r.inputs["name"] == "gpu-operator"]
    assert operator.inputs["values"]["operator"]["runtimeClass"] == "nvidia"


@pytest.mark.parametrize("name", NAMES)
def test_what_the_stack_output_says(name: str) -> None:
    (pool,) = recorded(name).exports["pools"].values()
    gpus = 1 if name in AKS else 2
    assert pool["eachNodeOffers"] == {"nvidia.com/gpu": 5 * gpus}
    assert pool["sharing"] == "vgpu"


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_with_a_cluster_of_our_own_and_to_no_other(name: str) -> None:
    seen = recorded(name)
    cluster = seen.one("ManagedCluster").urn if name in AKS else ""
    (provider,) = [r for r in seen.resources if r.type == "pulumi:providers:kubernetes"]
    for sent in (release(seen), namespace(seen)):
        assert sent.deleted_with == cluster
        assert sent.provider.startswith(f"{provider.urn}::")


def test_a_chart_that_stands_in_for_the_stack_files() -> None:
    """For runners that cannot reach the chart; the operator's own chart stays what it is."""
    seen = run(text("existing-operator-hami"), environment={"GPUFLEET_HAMI_CHART": "/charts/hami"})
    sent = release(seen).inputs
    assert sent["chart"] == "/charts/hami"
    assert not {"version", "repositoryOpts"} & set(sent)
    (operator,) = [r.inputs for r in seen.of("Release") if r.inputs["name"] == "gpu-operator"]
    assert operator["chart"] == "gpu-operator"


def test_chart_and_images_from_mirrors() -> None:
    sent = release(recorded("existing-plugin-hami-mirror")).inputs
    assert sent["repositoryOpts"] == {"repo": "https://mirror.example.com/charts"}
    assert (sent["chart"], sent["version"]) == ("hami", "2.10.0")
    own = {"registry": "mirror.example.com/hami", "repository": "hami"}
    values = sent["values"]
    assert values["global"] == {"imagePullSecrets": ["regcred"]}
    assert values["devicePlugin"]["image"] == own
    assert values["devicePlugin"]["monitor"] == {"image": own}
    assert values["scheduler"] == {
        "extender": {"image": own},
        "kubeScheduler": {"image": {**own, "repository": "kube-scheduler"}},
        "patch": {"imageNew": {**own, "repository": "kube-webhook-certgen"}},
    }


def test_with_errors_no_release_is_registered() -> None:
    seen = run(text("existing-plugin-hami-refused"))
    assert seen.resources == []
    assert seen.error is not None and "2 errors" in seen.error
