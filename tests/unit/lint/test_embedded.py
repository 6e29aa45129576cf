"""Chart values inside objects of Helm controllers, and pods inside custom resources."""

import json
import textwrap
from pathlib import Path

import pytest
from gpufleet.cli.main import main

from tests.unit.lint.told import GPU4, codes, d, one

BAD = GPU4.replace("timeSlicing", "time_slicing")


def values(config: str) -> str:
    return "config:\n  map:\n    default: |\n" + textwrap.indent(config, "      ") + "gfd: {enabled: true}\n"


FLUX = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\nspec:\n"
FLUX += "  chart: {spec: {chart: CHART}}\n  values:\n"
K3S = "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: r}\nspec:\n  chart: CHART\n  valuesContent: |\n"
ARGO = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: r}\nspec:\n  source:\n    chart: CHART\n"
ARGO_TEXT, ARGO_MAP = ARGO + "    helm:\n      values: |-\n", ARGO + "    helm:\n      valuesObject:\n"
ARGO_MANY = ARGO_TEXT.replace("  source:\n    chart", "  sources:\n  - path: charts/other\n  - chart")
HOLDERS = [(FLUX, 4), (K3S, 4), (ARGO_TEXT, 8), (ARGO_MAP, 8), (ARGO_MANY, 8)]


@pytest.mark.parametrize(("head", "indent"), HOLDERS)
def test_values_in_the_objects_of_helm_controllers(head: str, indent: int, tmp_path: Path) -> None:
    text = head.replace("CHART", "nvidia-device-plugin") + textwrap.indent(values(BAD), " " * indent)
    found = one("GF513", text)
    assert found.path.endswith(".config.map.default.sharing.time_slicing") and found.path.startswith("spec.")
    assert "time_slicing" in text.splitlines()[(found.line or 0) - 1]
    good = text.replace("time_slicing", "timeSlicing")
    assert codes(good) == []
    assert codes(text.replace("nvidia-device-plugin", "another")) == []  # the values of some other chart
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert main(["lint", "--fix", str(file)]) == 0
    assert file.read_text() == good


def test_the_charts_name_says_whose_values_they_are() -> None:
    text = FLUX.replace("CHART", "nvidia/gpu-operator") + "    driver: {enabled: false}\n    devicePlugn: {}\n"
    assert one("GF550", text).closest == "devicePlugin"
    assert one("GF550", text).path == "spec.values.devicePlugn"
    without = text.replace("  chart: {spec: {chart: nvidia/gpu-operator}}\n", "  chartRef: {name: x}\n")
    assert codes(without) == []  # nothing says which chart: only what is unmistakable is looked at
    sure = without.replace("devicePlugn", "migManager: {}\n    toolkit")
    assert codes(sure.replace("driver: {", "drivr: {")) == ["GF550"]


def test_values_that_are_no_yaml() -> None:
    text = ARGO_TEXT.replace("CHART", "gpu-operator") + "        driver:\n        \tenabled: false\n"
    assert one("GF501", text).line == 10
    other = K3S.replace("CHART", "gpu-operator").replace("|", '"a: [b: {"')
    assert one("GF501", other).line == 6


def test_values_in_quotes_are_all_on_their_line() -> None:
    text = K3S.replace("CHART", "nvidia-device-plugin").replace("|\n", json.dumps(values(BAD)) + "\n")
    assert (one("GF513", text).line, len(text.splitlines())) == (6, 6)
    assert one("GF550", text.replace("gfd:", "gdf:")).line == 6


RAY = d("""
    apiVersion: ray.io/v1
    kind: RayCluster
    metadata: {name: r}
    spec:
      headGroupSpec: {template: {spec: {containers: [{name: h, image: i, resources: {limits: {cpu: 1}}}]}}}
      workerGroupSpecs:
      - template:
          spec:
            containers:
            - name: w
              image: i
              resources: {limits: {nvidia.com/gpu: 0.5}}
""")


def test_pods_in_custom_resources() -> None:
    found = one("GF604", RAY)
    where = 'spec.workerGroupSpecs[0].template.spec.containers[0].resources.limits["nvidia.com/gpu"]'
    assert (found.path, found.line) == (where, 12)
    listed = "apiVersion: v1\nkind: List\nitems:\n" + textwrap.indent(RAY, "  ").replace("  api", "- api", 1)
    assert one("GF604", listed).path == f"items[0].{where}"
    assert codes(RAY.replace("0.5", "1")) == []


def test_gpus_at_a_place_without_a_pod_are_not_passed_over_in_silence() -> None:
    text = "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{computeResources: "
    found = one("GF505", text + "{limits: {nvidia.com/gpu: 1}}}]}\n")
    assert "of the kind Task are not known" in found.message
    assert codes(text + "{limits: {cpu: 1}}}]}\n") == []
    definition = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {limits: {nvidia.com/gpu: 1}}\n"
    )
    assert codes(definition) == []


@pytest.mark.parametrize("name", ["gpu-operator", "nvidia-device-plugin"])
def test_values_of_a_chart_that_has_ours_as_a_dependency(name: str, tmp_path: Path) -> None:
    inner = values(BAD)
    if name == "gpu-operator":
        inner = "devicePlugin:\n  config:\n    create: true\n    name: ts\n    default: any\n    data:\n      any: |\n"
        inner += textwrap.indent(BAD, "        ") + "dcgmExporter: {enabled: false}\n"
    text = f"other: {{a: 1}}\n{name}:\n  enabled: true\n" + textwrap.indent(inner, "  ")
    found = one("GF513", text)
    assert found.path.startswith(f"{name}.")
    assert "time_slicing" in text.splitlines()[(found.line or 0) - 1]
    file = tmp_path / "values.yaml"
    file.write_text(text)
    assert main(["lint", "--fix", str(file)]) == 0
    assert codes(file.read_text()) == [] and file.read_text() == text.replace("time_slicing", "timeSlicing")


MORE = {
    "HelmChartProxy": "spec:\n  chartName: CHART\n  valuesTemplate: |\n    VALUES",
    "Kustomization": "helmCharts:\n- name: CHART\n  valuesInline:\n    VALUES",
    "ClusterProfile": "spec:\n  helmCharts:\n  - chartName: x/CHART\n    values: |\n      VALUES",
    "ApplicationSet": "spec:\n  template:\n    spec:\n      source:\n        chart: CHART\n        helm:\n"
    "          valuesObject:\n            VALUES",
    "Release": "spec:\n  forProvider:\n    chart: {name: CHART}\n    values:\n      VALUES",
    "ClusterConfig": "spec:\n  extensions:\n    helm:\n      charts:\n      - chartname: x/CHART\n        values: |\n"
    "          VALUES",
    "fleet.yaml": "helm:\n  chart: CHART\n  values:\n    VALUES",
    "helmfile.yaml": "releases:\n- name: other\n  chart: x/other\n  values: [a.yaml]\n- name: r\n  chart: x/CHART\n"
    "  values:\n  - common.yaml\n  - VALUES",
}


@pytest.mark.parametrize("kind", list(MORE))
def test_values_in_the_files_of_other_tools(kind: str) -> None:
    head = "" if "." in kind else f"apiVersion: x/v1\nkind: {kind}\nmetadata: {{name: r}}\n"
    text = head + MORE[kind].replace("VALUES", "devicePlugin: {config: {name: ts}}\n")
    found = one("GF533", text.replace("CHART", "gpu-operator"))
    assert "devicePlugin" in text.splitlines()[(found.line or 0) - 1] and found.path.endswith("devicePlugin.config")
    assert "GF533" not in codes(text.replace("CHART", "another"))


def test_values_that_a_controller_renders_first() -> None:
    text = "apiVersion: x/v1\nkind: HelmChartProxy\nspec:\n  chartName: gpu-operator\n  valuesTemplate: |\n"
    assert codes(text + "    {{ if .Cluster.x }}\n    driver: {enabled: false}\n    {{ end }}\n") == ["GF503"]


def test_parameters_beside_values_and_over_them() -> None:
    argo = ARGO_TEXT.replace("CHART", "gpu-operator") + "        devicePlugin: {config: {name: ts, default: any}}\n"
    argo += "      parameters:\n      - {name: 'NAME', value: 'VALUE'}\n"

    def given(name: str, value: str) -> list[str]:
        return codes(argo.replace("NAME", name).replace("VALUE", value))

    assert given("driver.enabled", "false") == []
    assert given("devicePlugin.config.default", "") == ["GF533", "GF552"]
    assert given("driver.useOpenKernelModules", "true") == ["GF551"]
    assert given("dcgmExporter.env[0].name", "A") == []
    assert given("node\\.selector", "x") == ["GF550"]
    only = (
        ARGO.replace("CHART", "gpu-operator") + "    helm:\n      parameters:\n      - name: devicePlugin.config.name\n"
    )
    found = one("GF533", only + "        value: ts\n")
    assert (found.path, found.line) == ("spec.source.helm.values.devicePlugin.config", 10)
    k3s = "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nspec:\n  chart: gpu-operator\n  set:\n"
    assert codes(k3s + "    devicePlugin.config.name: ts\n") == ["GF533"]
    assert codes(k3s + "    devicePlugin.config.name: ts\n    devicePlugin.enabled: 'false'\n") == []
    text = argo.replace("NAME", "devicePlugin.enabled").replace("VALUE", "false").replace(", default: any", "")
    assert codes(text) == []  # false, no text
    assert codes(text.replace("'false'}", "'false', forceString: true}")) == ["GF533", "GF575"]


DYNAMO = d("""
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata: {name: g}
    spec:
      services:
        Frontend:
          replicas: 1
        decode:
          replicas: 1
          resources:
            limits:
              gpu: "2"
          extraPodSpec:
            nodeSelector: {pool: gpu}
            mainContainer:
              image: nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.0
              args: [--mem-fraction-static, "0.75"]
""")


def test_services_of_dynamo() -> None:
    """They write `gpu` for nvidia.com/gpu."""
    assert codes(DYNAMO) == []
    found = one("GF601", DYNAMO, GPU4)
    assert (found.path, found.line) == ("spec.services.decode.resources.limits.gpu", 12)
    typed = DYNAMO.replace('gpu: "2"', 'gpu: "1"\n          gpuType: nvidia.com/gpus')
    assert one("GF602", typed).path == "spec.services.decode.resources.limits.gpu"
    later = DYNAMO.replace("v1alpha1", "v1beta1")  # there the services hold pod templates
    assert "GF601" not in codes(later, GPU4)


QUEUE_OF_ANOTHER = "apiVersion: scheduling.example.com/v1\nkind: Queue\nmetadata: {name: q}\nspec: {SPEC}\n"


@pytest.mark.parametrize(
    ("spec", "noted"),
    [
        ("resources: {limits: {nvidia.com/gpu: 4}}", False),  # read as a container
        ("quota: {nvidia.com/gpu: 4}", True),
        ('quota: {nvidia.com/gpu: "4"}', True),
        ("resources: [nvidia.com/gpu]", True),
        ("metric: {name: nvidia.com/gpu}", True),
        ("quota: {volcano.sh/vgpu-number: 4}", True),
        ("device: {class: gpu.nvidia.com}", True),
        ("tolerations: [{key: nvidia.com/gpu, operator: Exists}]", False),
        ('nodeSelector: {nvidia.com/gpu.present: "true"}', False),
        ('nodeLabels: {nvidia.com/gpu: "true"}', False),
        ("quota: {amd.com/gpu: 4}", False),
    ],
)
def test_objects_that_say_something_about_gpus_are_named(spec: str, noted: bool) -> None:
    assert ("GF505" in codes(QUEUE_OF_ANOTHER.replace("SPEC", spec))) is noted


def test_what_lint_knows_is_not_named() -> None:
    limit_range = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\n"
    assert codes(limit_range + "spec: {limits: [{type: Container, max: {nvidia.com/gpu: 1}}]}\n") == ["GF505"]
    assert codes(limit_range + "spec: {limits: [{type: Container, max: {cpu: 1}}]}\n") == []
    cluster = "apiVersion: nvidia.com/v1alpha1\nkind: GPUCluster\nmetadata: {name: gpu-cluster}\nspec: {}\n"
    assert "device plugin" in one("GF505", cluster).reason
