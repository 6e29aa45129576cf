"""Components, distributions, labels and taints."""

import re

import pytest
from gpufleet.catalog import (
    component,
    components,
    components_of,
    distribution,
    distributions,
    labels,
    reserved_label_prefixes,
    taints,
)
from gpufleet.catalog.charts import chart_table


@pytest.mark.parametrize(
    ("name", "version", "image"),
    [("k8s-device-plugin", "v0.20.0", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"),
     ("gpu-operator", "v26.7.0", "nvcr.io/nvidia/gpu-operator:v26.7.0"),
     ("operator-toolkit", "v1.20.0", None),
     ("mig-manager", "v0.15.0", None),
     ("dcgm-exporter", "4.6.0-4.8.3-distroless", None),
     ("node-feature-discovery", "0.19.0", None),
     ("operator-driver", "595.91.07", None), ("hami", "2.10.0", None)],
)  # fmt: skip
def test_versions_and_images(name: str, version: str, image: str | None) -> None:
    row = component(name)
    assert (row.version, row.image) == (version, image)


def test_images_are_tagged_with_their_version() -> None:
    for row in components().values():
        if row.image is not None:
            assert re.fullmatch(r"(nvcr\.io|registry\.k8s\.io|docker\.io)/[a-z0-9/-]+:[\w.-]+", row.image), row.image
            assert row.image.rpartition(":")[2].removeprefix("v") == row.version.removeprefix("v")


def test_what_the_operator_brings() -> None:
    known = chart_table("gpu-operator", "v26.7.0")
    assert known is not None
    running = {row.name for row in components_of("gpu-operator") if all(known.default(v) for v in row.runs_with)}
    assert running == {
        "operator-validator", "operator-driver", "driver-manager", "operator-toolkit", "operator-device-plugin",
        "operator-gfd", "dcgm-exporter", "mig-manager", "node-feature-discovery",
    }  # fmt: skip
    assert {row.part_of for row in components().values()} <= {None, *components()}
    for row in components_of("gpu-operator"):
        assert row.value and known.has(row.value) and all(known.has(v) for v in row.runs_with), row.name
        if row.section not in ("validator", "nodeStatusExporter", "node-feature-discovery.image"):
            assert known.default(row.value) == row.version, f"{row.name}: two tables, one version"


def test_charts_have_a_repository() -> None:
    charts = {row.name: row.chart for row in components().values() if row.chart and row.part_of is None}
    assert charts == {
        "k8s-device-plugin-chart": "nvidia-device-plugin", "gpu-operator": "gpu-operator", "hami": "hami",
    }  # fmt: skip
    assert all((component(name).repository or "").startswith("https://") for name in charts)


def test_an_unknown_component_is_an_error_of_ours() -> None:
    with pytest.raises(KeyError):
        component("gpu-operatr")


@pytest.mark.parametrize(
    ("name", "socket", "runtime_class", "detects", "owner"),
    [("kubeadm", "/run/containerd/containerd.sock", None, False, "toolkit"),
     ("aks", "/run/containerd/containerd.sock", "nvidia-container-runtime", False, "distribution"),
     ("k3s", "/run/k3s/containerd/containerd.sock", None, True, "distribution"),
     ("rke2", "/run/k3s/containerd/containerd.sock", None, True, "distribution"),
     ("microk8s", "/var/snap/microk8s/common/run/containerd.sock", None, False, "distribution")],
)  # fmt: skip
def test_distribution_facts(name: str, socket: str, runtime_class: str | None, detects: bool, owner: str) -> None:
    row = distribution(name)
    assert row is not None
    found = (row.containerd_socket, row.runtime_class, row.detects_runtime, row.config_owner)
    assert found == (socket, runtime_class, detects, owner)
    assert row.operator_toolkit_env.get("CONTAINERD_SOCKET", socket) == socket


def test_aks_toolkit_reads_the_file() -> None:
    row = distribution("aks")
    assert row is not None
    assert row.operator_toolkit_env["RUNTIME_CONFIG_SOURCE"] == "file"
    assert distribution("kind") is None
    assert len(distributions()) == 5


def test_label_and_taint_names() -> None:
    spot, found = taints()["aks-spot"], {name: (row.key, row.value) for name, row in labels().items()}
    assert (spot.key, spot.value, spot.effect) == ("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule")
    assert found["aks-priority-spot"] == ("kubernetes.azure.com/priority", "spot")
    assert found["aks-accelerator"] == ("kubernetes.azure.com/accelerator", "nvidia")
    assert found["plugin-config"] == ("nvidia.com/device-plugin.config", None)
    assert reserved_label_prefixes() == ("kubernetes.azure.com/", "kubernetes.io/")


def test_no_chart_tolerates_spot_or_sku_by_default() -> None:
    assert taints()["aks-spot"].tolerated_by == ()
    assert not set(taints()["aks-gpu-page"].tolerated_by) & set(components())
    assert set(taints()["nvidia"].tolerated_by) <= set(components())
