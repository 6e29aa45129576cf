"""namePrefix, nameSuffix and namespace of Kustomizations, and Kustomizations without a kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpufleet.cli.main import main
from gpufleet.findings.finding import Finding
from gpufleet.lint import Options, lint
from gpufleet.lint.pools import merge
from gpufleet.lint.stack import of_fleet

from tests.unit.config.samples import compile_data
from tests.unit.lint.fleets import host_pool, lint_pools, sections
from tests.unit.lint.told import GPU4, config_map, d

LOCAL = d("""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: users, namespace: lab}
    spec: {clusterQueue: shared}
""")
CLUSTER = d("""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {name: shared}
    spec:
      resourceGroups:
      - coveredResources: [nvidia.com/gpu]
        flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
""")
JOB = d("""
    apiVersion: batch/v1
    kind: Job
    metadata: {name: train, namespace: lab, labels: {kueue.x-k8s.io/queue-name: users}}
    spec: {template: {spec: {containers: [{name: c, image: "example/app:1"}]}}}
""")
VALUES = "devicePlugin: {config: {name: slices, default: any}}\n"
VALUES += "dcgmExporter: {env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'true'}]}\n"
#: The plugin with its ConfigMap mounted.
PLUGIN = d("""
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: plugin, namespace: gpu}
    spec:
      selector: {matchLabels: {name: plugin}}
      template:
        metadata: {labels: {name: plugin}}
        spec:
          tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
          containers:
          - name: c
            image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
            env: [{name: CONFIG_FILE, value: /config/any}]
            securityContext: {privileged: true}
            volumeMounts:
            - {name: config, mountPath: /config}
            - {name: sockets, mountPath: /var/lib/kubelet/device-plugins}
          volumes:
          - {name: config, configMap: {name: ts}}
          - {name: sockets, hostPath: {path: /var/lib/kubelet/device-plugins}}
""")


def found(kustomization: str, *texts: str, **more: str) -> list[Finding]:
    files = {f"f{i}.yaml": text for i, text in enumerate(texts)}
    listed = f"resources: [{', '.join(files)}]\n"
    given = [("kustomization.yaml", listed + kustomization), *files.items(), *more.items()]
    return list(lint(given, Options()).found)


def codes(kustomization: str, *texts: str) -> list[str]:
    return sorted({one.code for one in found(kustomization, *texts)})


@pytest.mark.parametrize("change", ["namePrefix: prod-\n", "nameSuffix: -v1\n", "namePrefix: a-\nnameSuffix: -b\n"])
@pytest.mark.parametrize(
    ("texts", "place", "name"),
    [
        ((LOCAL, CLUSTER), "spec.clusterQueue", "shared"),
        ((LOCAL, JOB), 'metadata.labels["kueue.x-k8s.io/queue-name"]', "users"),
    ],
)
def test_names_that_do_not_follow(change: str, texts: tuple[str, ...], place: str, name: str) -> None:
    parts = dict(line.split(": ") for line in change.splitlines())
    new = parts.get("namePrefix", "") + name + parts.get("nameSuffix", "")
    [wrong] = [one for one in found(change, *texts) if one.code == "GF682"]
    assert (wrong.path, wrong.value, wrong.closest) == (place, name, new)
    first, second = texts
    first = first.replace(f"clusterQueue: {name}", f"clusterQueue: {new}")
    assert codes(change, first, second.replace(f"queue-name: {name}", f"queue-name: {new}")) == []


def test_names_that_stay() -> None:
    assert codes("namespace: lab\n", LOCAL, CLUSTER, JOB) == []  # a namespace alone
    assert codes("namePrefix: prod-\n", LOCAL) == []  # the queue is none of the Kustomization's
    assert codes("namePrefix: prod-\nconfigurations: [names.yaml]\n", LOCAL, CLUSTER) == []  # rules of its own
    texts = [("kustomization.yaml", "resources: [a.yaml]\nnamePrefix: p-\n"), ("a.yaml", LOCAL), ("b.yaml", CLUSTER)]
    assert [one.code for one in lint(texts, Options()).found] == []  # not among its resources


def test_a_config_map_that_values_call_by_its_old_name() -> None:
    slices = config_map(GPU4, name="slices")
    assert codes("", slices, VALUES) == []
    [wrong] = found("namePrefix: prod-\n", slices, VALUES)
    assert (wrong.code, wrong.closest) == ("GF530", "prod-slices")
    generated = "namePrefix: prod-\ngeneratorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator:\n"
    generated += "- {name: slices, files: [any=any.txt.yaml]}\n"
    told = found(generated, VALUES, **{"any.txt.yaml": GPU4})
    assert [(one.code, one.closest) for one in told] == [("GF530", "prod-slices")]
    assert found(generated, VALUES.replace("slices", "prod-slices"), **{"any.txt.yaml": GPU4}) == []


def test_names_in_pods_follow() -> None:
    own = config_map(GPU4, name="ts", namespace="gpu")
    before = codes("", own, PLUGIN)
    assert "GF530" not in before and "GF531" not in before
    assert codes("namePrefix: prod-\n", own, PLUGIN) == before
    elsewhere = own.replace("namespace: gpu", "namespace: other")
    assert "GF531" in codes("", elsewhere, PLUGIN)
    assert codes("namespace: both\n", elsewhere, PLUGIN) == before


def test_a_base_and_an_overlay() -> None:
    """Each adds its own; a patch of the overlay finds the object under the name that the base's file has."""
    patch = "patches:\n- patch: |-\n    apiVersion: kueue.x-k8s.io/v1beta2\n    kind: LocalQueue\n"
    patch += "    metadata: {name: users}\n    spec: {clusterQueue: prod-base-shared}\n"
    files = [
        ("base/kustomization.yaml", "namePrefix: base-\nresources: [a.yaml, b.yaml]\n"),
        ("base/a.yaml", LOCAL), ("base/b.yaml", CLUSTER),
        ("prod/kustomization.yaml", "namePrefix: prod-\nresources: [../base]\n"),
    ]  # fmt: skip
    [wrong] = lint(files, Options()).found
    assert (wrong.code, wrong.closest) == ("GF682", "prod-base-shared")
    right = [*files[:3], ("prod/kustomization.yaml", files[3][1] + patch)]
    assert [one.code for one in lint(right, Options()).found] == []


def test_the_quota_of_the_namespace_that_a_kustomization_gives() -> None:
    team = {"name": "a", "namespace": "a", "pools": ["t4"], "quota": {"gpu": 2}}
    compiled = compile_data(sections(host_pool("t4", gpus=4), teams=[team]))
    assert compiled.fleet is not None
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n"
    pod += "    image: example/app:1\n    resources: {limits: {nvidia.com/gpu: 3}}\n"
    pools = of_fleet(compiled.fleet)
    assert lint_pools(pools, pod) == []
    options = Options(pools[0].node, pool=pools[0])
    files = [("kustomization.yaml", "namespace: a\nresources: [p.yaml]\n"), ("p.yaml", pod)]
    assert [one.code for one in merge([(options, lint(files, options))])] == ["GF629"]


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kustomization_needs_no_kind(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text("namePrefix: prod-\nresources: [a.yaml, b.yaml]\n")
    (tmp_path / "a.yaml").write_text(LOCAL)
    (tmp_path / "b.yaml").write_text(CLUSTER)
    assert main(["lint", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "GF682" in out and "GF502" not in out
