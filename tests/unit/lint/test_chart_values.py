"""Values of charts against the tables of their releases."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml
from gpufleet.catalog.charts import ChartValue, chart_tables, charts
from gpufleet.findings.finding import Severity
from gpufleet.lint.recognise import FORCED
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.lint.told import codes, d, one, told

DRA = d("""
    nvidiaDriverRoot: /run/nvidia/driver
    gpuResourcesEnabledOverride: true
    resources: {gpus: {enabled: true}, computeDomains: {enabled: false}}
    featureGates: {TimeSlicingSettings: true}
    kubeletPlugin: {tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}
""")
HAMI = "devicePlugin: {deviceSplitCount: 5, runtimeClassName: nvidia}\n"
NFD = "worker: {config: {sources: {pci: {deviceClassWhitelist: ['03']}}}}\nmaster: {config: {extraLabelNs: [a.b]}}\n"


def errors(*texts: str) -> list[str]:
    return [x.code for x in told(*texts) if x.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("text", "chart"),
    [
        (DRA, "dra-driver-nvidia-gpu"),
        ("nvidiaDriverRoot: /\nkubeletPlugin: {nodeSelector: {a: b}}\n", "dra-driver-nvidia-gpu"),
        ("resources: {gpus: {enabled: false}}\nimagePullSecrets: [{name: a}]\n", "dra-driver-nvidia-gpu"),
        ("resources: {computeDomains: {imex: {mode: driverManaged}}, gpus: {enabled: false}}\n",
         "dra-driver-nvidia-gpu"),
        (HAMI, "hami"),
        ("resourceName: nvidia.com/gpu\nresourceMem: nvidia.com/gpumem\n", "hami"),
        ("scheduler: {defaultSchedulerPolicy: {nodeSchedulerPolicy: spread}}\n", "hami"),
        (NFD, "node-feature-discovery"),
        ("topologyUpdater: {enable: true}\n", "node-feature-discovery"),
    ],
)  # fmt: skip
def test_values_are_recognised_by_keys_of_their_own(text: str, chart: str) -> None:
    """RP-25: no error, and a note names the chart; keys of other charts are not asked for."""
    assert codes(text) == ["GF576"]
    found = one("GF576", text)
    assert (found.value, found.severity) == (chart, Severity.NOTE)


def test_a_guess_on_the_chart_ends_in_no_error() -> None:
    """RP-25: a key that the chart lacks may say that it is another chart."""
    foreign = "ourApplication: {enabled: true, driver: {x: y}}\n"
    for text in (DRA, HAMI, NFD, "dcgmExporter: {enabled: true}\nmigManager: {enabled: [true]}\n"):
        assert errors(text + foreign) == []
        assert one("GF573", text + foreign).path == "ourApplication"


def test_a_slip_of_the_pen_is_an_error_where_nothing_else_is_strange() -> None:
    """RP-14 in lint."""
    text = "driver: {usePrecompield: true, rdma: {enable: true}}\ndcgmExporter: {enabled: true}\n"
    found = [x for x in told(text) if x.code == "GF550"]
    assert [(x.path, x.closest) for x in found] == [
        ("driver.usePrecompield", "usePrecompiled"),
        ("driver.rdma.enable", "enabled"),
    ]
    assert one("GF550", DRA.replace("kubeletPlugin: {tol", "kubeletPlugin: {metric: {}, tol")).closest == "metrics"
    assert one("GF550", HAMI.replace("runtimeClassName", "runtimeClasName")).closest == "runtimeClassName"
    assert one("GF550", NFD.replace("master: {", "master: {replicas: 1, ")).path == "master.replicas"


HOLDER = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\nspec:\n"
HOLDER += "  chart: {spec: {chart: x/CHART, version: 'RELEASE'}}\n  values:\n"


def release(chart: str, values: str, version: str = "") -> str:
    return HOLDER.replace("CHART", chart).replace("RELEASE", version) + textwrap.indent(values, "    ")


@pytest.mark.parametrize(
    ("chart", "values", "near"),
    [
        ("gpu-operator", "toolkit: {envs: []}\n", "env"),
        ("nvidia-device-plugin", "runtimeClasName: nvidia\n", "runtimeClassName"),
        ("node-feature-discovery", "worker: {toleration: []}\n", "tolerations"),
        ("hami", "scheduler: {replica: 1}\n", "replicas"),
        ("dra-driver-nvidia-gpu", "resources: {gpus: {enable: false}}\ngpuResourcesEnabledOverride: true\n", "enabled"),
        ("nvidia-dra-driver-gpu", "resources: {gpus: {enable: false}}\ngpuResourcesEnabledOverride: true\n", "enabled"),
    ],
)
def test_every_chart_is_checked_where_an_object_names_it(chart: str, values: str, near: str) -> None:
    assert one("GF550", release(chart, values)).closest == near
    assert "GF550" not in codes(release("another", values))
    foreign = one("GF550", release(chart, values.replace(values.partition(":")[0], "ourOwn", 1)))
    assert foreign.path == "spec.values.ourOwn", "it is no guess here"


def test_the_release_decides_which_keys_there_are() -> None:
    dra, old = "draDriver: {version: v1}\ngpuCluster: {deployCR: false}\n", "operator: {initContainer: {image: a}}\n"
    assert codes(release("gpu-operator", dra, "v26.3.3")) == ["GF550"]
    assert codes(release("gpu-operator", dra, "26.7.0")) == ["GF580"]
    assert codes(release("gpu-operator", old, "v26.3.2")) == []
    assert codes(release("gpu-operator", old, "v26.7.0")) == ["GF550"]
    for unknown in ("", "26.x", ">=26.3.0"):
        assert codes(release("gpu-operator", old, unknown)) == []
    assert codes(release("gpu-operator", "whatever: {a: 1}\ndriver: {x: 1}\n", "v25.10.1")) == ["GF577"]
    assert codes(release("gpu-operator", "driver: true\n", "v25.10.1")) == ["GF574", "GF577"]
    argo = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source:\n    chart: gpu-operator\n"
    argo += "    targetRevision: v26.7.0\n    helm:\n      valuesObject: {operator: {initContainer: {}}}\n"
    assert codes(argo) == ["GF550"]


def test_values_of_older_releases() -> None:
    assert one("GF579", "operator: {defaultRuntime: containerd}\nmigManager: {}\n").path == "operator.defaultRuntime"
    assert one("GF579", HAMI + "imagePullSecrets: []\n").path == "imagePullSecrets"
    assert codes(NFD + "enableNodeFeatureApi: true\n") == ["GF576", "GF579"]
    assert "GF579" not in codes("driver: {useOpenKernelModules: true}\nmigManager: {}\n"), "GF551 tells more"


MANY = "migManager: {enabled: true}\ntoolkit: {enabled: true}\n"


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        ("driver: true\n", "GF574", "driver"),
        ("driver: {imagePullSecrets: [{name: a}]}\n", "GF574", "driver.imagePullSecrets[0]"),
        ("driver: {env: [{name: A, value: true}]}\n", "GF574", "driver.env[0].value"),
        ("driver: {env: {A: b}}\n", "GF574", "driver.env"),
        ("daemonsets: {updateStrategy: Rolling}\n", "GF574", "daemonsets.updateStrategy"),
        ("node-feature-discovery: {imagePullSecrets: [a]}\n", "GF574", "node-feature-discovery.imagePullSecrets[0]"),
        ("dcgmExporter: {enabled: 'false'}\n", "GF575", "dcgmExporter.enabled"),
        ("driver: {startupProbe: {periodSeconds: '10'}}\n", "GF575", "driver.startupProbe.periodSeconds"),
    ],
)
def test_shapes_and_types(text: str, code: str, path: str) -> None:
    assert codes(MANY + text) == [code]
    assert one(code, MANY + text).path == path


@pytest.mark.parametrize(
    "text",
    [
        "driver: {version: 580, upgradePolicy: {maxUnavailable: 1}}\n",
        "driver: {env: [{name: A, value: 'true'}], resources: {limits: {cpu: 1}}}\n",
        "dcgmExporter: {imagePullSecrets: [a], args: [-f], hpcJobMapping: {enabled: true}}\n",
        "operator: {affinity: {nodeAffinity: {}}, tolerations: [{operator: Exists}], labels: {a: b}}\n",
        "node-feature-discovery: {worker: {extraEnvs: [{name: A, valueFrom: {fieldRef: {}}}]}, global: {}}\n",
        "global: {imagePullSecrets: [{name: a}]}\nextraObjects: [{kind: Secret}]\n",
        "mig: {strategy: mixed}\n",
    ],
)
def test_right_values_of_the_operator(text: str) -> None:
    assert codes(MANY + text) == []


@pytest.mark.parametrize(
    ("values", "path"),
    [
        (MANY + "gpuCluster: {deployCR: true}\n", "gpuCluster.deployCR"),
        (MANY + "gpuCluster: {deployCR: true}\nclusterPolicy: {deployCR: false}\ndriver: {nvidiaDriverCRD: "
         "{enabled: false}}\n", "driver.nvidiaDriverCRD.enabled"),
        (MANY + "cdi: {enabled: false, nriPluginEnabled: true}\n", "cdi.nriPluginEnabled"),
        (MANY.replace("toolkit: {enabled: true}", "toolkit: {enabled: false}") + "cdi: {nriPluginEnabled: true}\n",
         "cdi.nriPluginEnabled"),
        (MANY + "driver: {usePrecompiled: true}\ngds: {enabled: true}\n", "gds.enabled"),
        ("namespace: x\ngfd: {enabled: true}\nmigStrategy: none\n", "namespace"),
        (DRA.replace("Override: true", "Override: false"), "gpuResourcesEnabledOverride"),
        (DRA + "nvidiaCtkPath: /usr/bin/nvidia-ctk\n", "nvidiaCtkPath"),
        (DRA.replace("computeDomains: {enabled: false}", "computeDomains: {imex: {mode: hostManaged}}"),
         "resources.computeDomains.imex.mode"),
    ],
)  # fmt: skip
def test_what_the_chart_refuses(values: str, path: str) -> None:
    assert path in [x.path for x in told(values) if x.code == "GF578"]


def test_a_default_may_stand_in_another_file_but_not_in_another_object() -> None:
    assert "GF578" not in codes("kubeletPlugin: {}\nnvidiaDriverRoot: /\n")
    assert one("GF578", release("dra-driver-nvidia-gpu", "kubeletPlugin: {}\n")).path.startswith("spec.values")


def test_shapes_of_an_older_release() -> None:
    """HAMi up to 2.6 named images by a text; imagePullPolicy beside it was of these releases."""
    text = "scheduler: {extender: {image: projecthami/hami}}\n"
    assert codes(HAMI + text) == ["GF576"] and codes(release("hami", HAMI + text)) == ["GF574"]
    old = HAMI + "scheduler: {extender: {image: projecthami/hami, imagePullPolicy: Always}}\n"
    assert codes(old) == ["GF576", "GF579"]
    assert codes("nfd: {enableNodeFeatureApi: true}\ngfd: {enabled: true}\nmigStrategy: none\n") == ["GF579"]


def test_values_with_which_nothing_runs() -> None:
    assert one("GF580", MANY + "clusterPolicy: {deployCR: false}\n").path == "clusterPolicy.deployCR"
    assert one("GF580", MANY + "vgpuManager: {enabled: true}\n").path == "vgpuManager.enabled"
    assert one("GF580", MANY + "gds: {enabled: true}\ndriver: {enabled: false}\n").path == "gds.enabled"
    assert codes(MANY + "gds: {enabled: true}\nvgpuManager: {enabled: true}\nsandboxWorkloads: {enabled: true}\n") == []


def test_values_of_a_chart_that_is_not_known_get_a_note() -> None:
    for text in ("controller: {replicas: 2}\nwebhook: {enabled: true}\n", "image: {repository: x, tag: '1'}\n"):
        assert codes(text) == ["GF502"]


def defaults(parts: Any) -> dict[str, Any]:
    """The values that `helm show values` would print, as far as the table has defaults."""
    inner = {k: p.default if isinstance(p, ChartValue) else defaults(p) for k, p in parts.items()}
    return {k: v for k, v in inner.items() if v is not None}


FORCE = dict(zip(charts(), ("operator-values", "chart-values", "nfd-values", "hami-values", "dra-values"), strict=True))


@pytest.mark.parametrize("chart", charts())
def test_every_default_of_every_chart_is_right(chart: str) -> None:
    for known in chart_tables(chart):
        text = yaml.safe_dump(defaults(known.parts))
        found = {x.code for x in told(text, kind=FORCED[FORCE[chart]])}
        assert found <= {"GF551", "GF554", "GF557", "GF578", "GF580"}, chart
        assert ("GF578" in found) == (chart == "dra-driver-nvidia-gpu"), "it refuses its own default"


KEYS = sorted({key for chart in charts() for path in chart_tables(chart)[0].paths for key in path.split(".")})
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.text(max_size=2)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=4), st.sampled_from([None, *FORCE.values()]))
def test_no_values_end_in_an_internal_error(values: dict[str, Any], force: str | None) -> None:
    text = yaml.safe_dump(values)
    told(text, kind=FORCED[force] if force else None)
    told(release("gpu-operator", text))
