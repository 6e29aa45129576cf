"""Versions that are known to fail, found wherever they are written."""

from __future__ import annotations

import textwrap

import pytest

from tests.unit.lint.told import d, one, told

KNOWN = ("GF568", "GF569")


def said(*texts: str, **options: object) -> list[tuple[str, str]]:
    return [(f.code, f.path) for f in told(*texts, **options) if f.code in KNOWN]


SOCKET = "toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock}]}\n"
K3S = d("""
    apiVersion: helm.cattle.io/v1
    kind: HelmChart
    metadata: {name: gpu-operator, namespace: kube-system}
    spec:
      chart: gpu-operator
      version: VERSION
      targetNamespace: gpu-operator
      valuesContent: |-
    """)
FLUX = d("""
    apiVersion: helm.toolkit.fluxcd.io/v2
    kind: HelmRelease
    metadata: {name: gpu-operator}
    spec:
      chart:
        spec: {chart: gpu-operator, version: VERSION}
      values:
    """)
ARGO = d("""
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: gpu-operator}
    spec:
      sources:
      - chart: something-else
        targetRevision: v25.3.3
      - chart: gpu-operator
        targetRevision: VERSION
        helm:
          valuesObject:
    """)
HOLDERS = [(K3S, 4, "spec.version"), (FLUX, 4, "spec.chart.spec.version"), (ARGO, 8, "spec.sources[1].targetRevision")]


def holder(head: str, indent: int, version: str, values: str = SOCKET) -> str:
    return head.replace("VERSION", version) + textwrap.indent(values, " " * indent)


@pytest.mark.parametrize(("head", "indent", "path"), HOLDERS, ids=["k3s", "flux", "argo"])
def test_rp_31_the_version_of_the_chart(head: str, indent: int, path: str) -> None:
    bad = holder(head, indent, "v25.3.3")
    assert said(bad) == [("GF568", path)]
    found = one("GF568", bad)
    assert "VERSION" not in bad and "v25.3.3" in bad.splitlines()[(found.line or 0) - 1]
    assert found.remedy == "Use v25.3.4 or a later release."
    for good in ("v25.3.2", "v25.3.4", "v26.7.0"):
        assert said(holder(head, indent, good)) == []
    usual = SOCKET.replace("/run/k3s", "/run")
    for values in ("driver: {enabled: false}\n", usual, SOCKET.replace("{env", "{enabled: false, env")):
        assert said(holder(head, indent, "v25.3.3", values)) == []


def test_rp_31_values_without_a_version_say_nothing() -> None:
    assert said(SOCKET + "driver: {enabled: false}\nmigManager: {enabled: true}\n") == []


VALUES = d("""
    devicePlugin:
      version: v0.19.0
      config: {name: plugin-configs, default: plain}
    """)
MAP = d("""
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: plugin-configs, namespace: gpu-operator}
    data:
      plain: "version: v1"
      mps-10x: |-
        version: v1
        sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}
    """)


def test_rp_32_the_plugins_version_in_values() -> None:
    assert said(VALUES, MAP) == [("GF568", "devicePlugin.version")]
    assert said(VALUES.replace("v0.19.0", "v0.20.0"), MAP) == []
    assert said(VALUES) == []  # nothing says what the configurations are
    shared = MAP.replace("mps: {", "timeSlicing: {")
    assert said(VALUES, shared) == []
    alone = MAP.replace('  plain: "version: v1"\n', "")
    assert said(VALUES.replace("plain", "mps-10x"), alone) == []
    policy = "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: c}\nspec:\n"
    policy += textwrap.indent(VALUES, "  ")
    assert said(policy, MAP) == [("GF568", "spec.devicePlugin.version")]


def test_rp_32_the_operators_release_brings_it() -> None:
    values = VALUES.replace("  version: v0.19.0\n", "")
    assert said(holder(FLUX, 4, "v26.3.0", values), MAP) == [("GF568", "spec.chart.spec.version")]
    assert said(holder(FLUX, 4, "v26.7.0", values), MAP) == []
    other = VALUES.replace("v0.19.0", "v0.20.0")
    assert said(holder(FLUX, 4, "v26.3.0", other), MAP) == []


MANAGED = d("""
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: plugin, namespace: gpu-operator}
    spec:
      template:
        spec:
          containers:
          - name: plugin
            image: nvcr.io/nvidia/k8s-device-plugin:v0.19.1
            command: [nvidia-device-plugin]
            env: [{name: CONFIG_FILE, value: /config/config.yaml}, {name: MPS_ROOT, value: /run/nvidia/mps}]
            volumeMounts: [{name: config, mountPath: /config}]
          - name: manager
            image: nvcr.io/nvidia/k8s-device-plugin:v0.19.1
            command: [config-manager]
            env: [{name: CONFIG_FILE_SRCDIR, value: /available-configs}]
            volumeMounts:
            - {name: available, mountPath: /available-configs}
            - {name: config, mountPath: /config}
          volumes:
          - {name: config, emptyDir: {}}
          - {name: available, configMap: {name: plugin-configs}}
    """)


def test_rp_32_a_daemon_set_with_a_config_manager() -> None:
    images = [f"spec.template.spec.containers[{n}].image" for n in (0, 1)]
    assert said(MANAGED, MAP) == [("GF568", image) for image in images]
    assert said(MANAGED.replace("v0.19.1", "v0.20.0"), MAP) == []
    one_file = MANAGED.replace("- {name: config, emptyDir: {}}", "- {name: config, configMap: {name: plugin-configs}}")
    alone = one_file.partition("      - name: manager")[0] + one_file[one_file.index("      volumes:") :]
    alone = alone.replace("/config/config.yaml", "/config/mps-10x")
    assert "config-manager" not in alone and said(alone, MAP) == []  # no label chooses


def test_rp_32_the_plugins_chart() -> None:
    values = d("""
        config:
          map:
            plain: |
              version: v1
            mps: |
              version: v1
              sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}
          default: plain
        gfd: {enabled: true}
        """)
    chart = FLUX.replace("gpu-operator, version", "nvidia-device-plugin, version")
    assert said(holder(chart, 4, "0.19.2", values)) == [("GF568", "spec.chart.spec.version")]
    assert said(holder(chart, 4, "0.20.0", values)) == []
    tagged = values + "image: {tag: v0.19.3}\n"
    assert said(tagged) == [("GF568", "image.tag")]


EXPORTER = d("""
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: dcgm-exporter, namespace: gpu}
    spec:
      template:
        spec:
          containers:
          - name: exporter
            image: nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.0-ubuntu22.04
            env: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]
    """)
ALERT = d("""
    apiVersion: monitoring.coreos.com/v1
    kind: PrometheusRule
    metadata: {name: gpu}
    spec:
      groups:
      - name: gpu
        rules: [{alert: Xid, expr: DCGM_FI_DEV_XID_ERRORS > 0}]
    """)


def test_the_exporter() -> None:
    image = "spec.template.spec.containers[0].image"
    assert said(EXPORTER) == [("GF569", image)]
    assert said(EXPORTER.replace('"true"', '"false"')) == []
    assert said(EXPORTER.replace("4.4.2-4.7.0", "4.6.0-4.8.3")) == []
    newer = EXPORTER.replace("4.4.2-4.7.0", "4.5.3-4.8.2")
    assert said(newer) == [] and said(newer, ALERT) == [("GF569", image)]
    values = 'dcgmExporter: {version: 4.5.3-4.8.2-distroless}\nmigManager: {enabled: true}\ntoolkit: {enabled: true}\n'
    assert said(values, ALERT) == [("GF569", "dcgmExporter.version")]


def test_a_toolkit_that_reads_the_file() -> None:
    values = "toolkit: {version: v1.19.1, env: [{name: RUNTIME_CONFIG_SOURCE, value: file}]}\nmigManager: {}\n"
    assert said(values + "driver: {enabled: false}\n") == [("GF569", "toolkit.version")]
    assert said(values.replace("value: file", "value: command") + "driver: {enabled: false}\n") == []
    assert said(values.replace("1.19.1", "1.20.0") + "driver: {enabled: false}\n") == []


DRIVER = "driver: {version: 570.133.20}\nmigManager: {enabled: true}\ntoolkit: {enabled: true}\n"
DOMAIN = "apiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata: {name: d}\nspec: {numNodes: 2}\n"


def test_rp_33_the_driver_on_a_gpu() -> None:
    assert said(DRIVER, gpus="8xB200") == [("GF569", "driver.version")]
    assert said(DRIVER) == [] == said(DRIVER, gpus="8xH200")
    assert said(DRIVER.replace("570.133.20", "580.126.09"), gpus="8xB200") == []
    assert said(DRIVER.replace("{version", "{enabled: false, version"), gpus="8xB200") == []
    config = "version: v1\nflags: {migStrategy: none}\n"
    assert said(config, gpus="8xB200", driver="570.133.20") == [("GF569", "")]
    assert said(config, gpus="8xB200", driver="580.126.09") == []


def test_compute_domains_need_a_driver() -> None:
    old = DRIVER.replace("570.133.20", "550.163.01")
    assert said(old, DOMAIN) == [("GF568", "driver.version")]
    assert said(old) == []
    assert said(DOMAIN, driver="550.144.6") == [("GF568", "kind")]
    assert said(DOMAIN, driver="580.126.09") == [] == said(DOMAIN)


def test_a_chart_of_k0s() -> None:
    text = d("""
        apiVersion: k0s.k0sproject.io/v1beta1
        kind: ClusterConfig
        metadata: {name: k0s}
        spec:
          extensions:
            helm:
              charts:
              - {name: gpu-operator, chartname: nvidia/gpu-operator, version: v24.9.2}
        """)
    assert said(text) == [("GF569", "spec.extensions.helm.charts[0].version")]
    assert said(text.replace("v24.9.2", "v26.7.0")) == []
    assert said(holder(K3S, 4, "v24.9.2", "driver: {enabled: false}\n")) == []


def test_what_is_no_version_says_nothing() -> None:
    for version in ("latest", "v25.x", '""', "$VERSION"):
        assert said(holder(FLUX, 4, version)) == []
