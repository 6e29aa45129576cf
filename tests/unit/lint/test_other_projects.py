"""Texts that only look like ours: files of other tools, kinds of other API groups, values of other charts."""

import textwrap

import pytest

from tests.unit.lint.told import GPU4, codes, config_map, d, limits, pod, told

BUF = "version: v1\nname: buf.build/acme/weather\nbreaking:\n  use: [FILE]\nlint:\n  use: [DEFAULT]\n"
DEPENDABOT = "version: 2\nupdates:\n- package-ecosystem: gomod\n  directory: /\n"
PACKAGE = '{"name": "x", "version": "1.0.0", "private": true}'


@pytest.mark.parametrize("text", [BUF, DEPENDABOT, PACKAGE])
def test_files_with_a_version_of_their_own(text: str) -> None:
    assert codes(text) == ["GF502"]


@pytest.mark.parametrize(
    "text",
    [
        "version: v1\n",
        "version: v1\nmigStrategy: mixed\n",
        "version: v1\nrename_by_default: true\n",
        "version: v2\n",
        "version: v1\nresources: {gpus: []}\n",
    ],
)
def test_short_configurations_are_still_ours(text: str) -> None:
    assert "GF502" not in codes(text)


def test_config_maps_that_the_operator_makes_for_itself() -> None:
    clients = "version: v1\nsystemd-services: []\n"
    layouts = "version: v1\nmig-configs: {all-disabled: [{devices: all, mig-enabled: false}]}\n"
    assert told(config_map(clients, "clients.yaml"), config_map(layouts, "config.yaml", "other")) == []


@pytest.mark.parametrize(
    "values",
    [
        "operator: {replicas: 1}\nhubble: {relay: {enabled: true}}\nipam: {mode: kubernetes}\n",
        "replicaCount: 1\nconfig: {name: app}\nimage: {repository: nginx}\n",
        "config: {name: app}\nimage: {repository: example/app}\nresources: {}\n",
        "config: {name: app, map: {a: b}}\nimage: x\n",
        "resourceName: nvidia.com/gpu\nscheduler: {replicas: 1}\ndevicePlugin: {runtimeClassName: nvidia}\n",
    ],
)
def test_values_of_other_charts(values: str) -> None:
    assert codes(values) == ["GF502"]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ("operator: {runtimeClass: nvidia}\nnfdd: {enabled: true}\n", "GF550"),
        ("config: {name: ts}\ngdf: {enabled: true}\n", "GF550"),
        ("config: {name: ts}\nimage: {repository: nvcr.io/nvidia/k8s-device-plugin}\n", "GF554"),
        ("devicePlugin: {enabled: true, configs: {}}\n", "GF550"),
    ],
)
def test_short_values_of_ours(values: str, code: str) -> None:
    assert code in codes(values)


def test_kinds_of_the_same_name_in_other_groups() -> None:
    policy = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: []}\n"
    chart = "gfd: {enabled: true}\nconfig:\n  map:\n    a: |\n" + textwrap.indent(GPU4, "      ")
    assert codes(policy, chart) == []  # no second plugin
    assert codes(policy.replace("kyverno.io", "nvidia.com"), chart) == ["GF545"]
    container = "containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 0.5}}}]"
    volcano = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {tasks: [{template: {spec: {"
    )
    assert codes(volcano + container + "}}}]}\n") == ["GF604"]
    knative = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s}\nspec: {template: {spec: {"
    assert codes(knative + container + "}}}\n") == ["GF604"]


def test_a_template_is_told_once_of_a_file() -> None:
    assert [x.line for x in told("{{ if x }}\n---\na: {{ b }}\n---\n{{ end }}\n")] == [1]


@pytest.mark.parametrize("number", ['"${GPUS}"', '"<number>"', '"?*"', '"{{ gpus }}"'])
def test_placeholders_are_no_numbers(number: str) -> None:
    assert codes(pod(limits(number=number))) == []


def test_null_is_no_gpu() -> None:
    (found,) = told(pod(limits(number="null")))
    assert (found.code, found.reason) == ("GF604", "The API server takes null for 0: the container gets no GPU.")


ISVC = d("""
    apiVersion: serving.kserve.io/v1beta1
    kind: InferenceService
    metadata: {name: i}
    spec:
      predictor:
        tolerations: [{key: nvidia.com/gpu, operator: Exists}]
        model:
          args: [--gpu-memory-utilization=0.9]
          resources:
            limits:
              nvidia.com/gpu: 2
""")


def test_containers_outside_a_pod() -> None:
    (found,) = [x for x in told(ISVC, GPU4.replace("true", "false")) if x.code == "GF600"]
    assert (found.path, found.line) == ('spec.predictor.model.resources.limits["nvidia.com/gpu"]', 11)
    assert codes(ISVC) == []
    renamed = ISVC.replace("gpu: 2", "gpu.shared: 1")
    assert "GF610" not in codes(renamed)  # the predictor has the toleration
    (found,) = [x for x in told(renamed.replace("key: nvidia.com/gpu", "key: a")) if x.code == "GF610"]
    assert (found.path, found.line) == ("spec.predictor.tolerations", 6)
    argo = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {templates: [{name: m, container: {image: i, "
    assert codes(argo + "resources: {requests: {nvidia.com/gpu: 1}}}}]}\n") == ["GF605"]
    nim = "apiVersion: apps.nvidia.com/v1alpha1\nkind: NIMService\nspec: {resources: {limits: {"
    (found,) = told(nim + "nvidia.com/mig-1g.5gb: 1}}}\n")
    assert (found.code, found.path) == ("GF610", "spec.tolerations")


def test_limits_of_nodes_ask_for_nothing() -> None:
    assert codes("apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {limits: {nvidia.com/gpu: '1'}}\n") == []
    claim = "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nspec: {resources: {requests: {nvidia.com/gpu: '1'}}}\n"
    assert codes(claim) == []
    devices = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: gpu.nvidia.com}\n"
    )
    assert codes(devices) == []
