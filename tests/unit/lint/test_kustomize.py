"""Kustomizations: generators are ConfigMaps, patches change what they point at."""

import textwrap
from pathlib import Path

import pytest
from gpufleet.cli.main import main
from gpufleet.findings.finding import Finding
from gpufleet.lint import Options, lint

from tests.unit.lint.told import GPU4, d, limits, pod

HEAD = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
KEEP = "generatorOptions: {disableNameSuffixHash: true}\n"
VALUES = "devicePlugin: {config: {name: slices, default: any}}\n"
VALUES += "dcgmExporter: {env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'true'}]}\n"


def told(**files: str) -> list[Finding]:
    """Files by name; `__` stands for a slash, and each ends in .yaml."""
    texts = [(name.replace("__", "/") + ".yaml", text) for name, text in files.items()]
    return list(lint(texts, Options()).found)


def codes(**files: str) -> list[str]:
    return sorted({x.code for x in told(**files)})


def one(code: str, **files: str) -> Finding:
    found = [x for x in told(**files) if x.code == code]
    assert len(found) == 1, [(x.code, x.path, x.reason) for x in told(**files)]
    return found[0]


def literals(config: str, more: str = "") -> str:
    text = textwrap.indent("any=" + config, "      ")
    return HEAD + f"configMapGenerator:\n- name: slices\n{more}  literals:\n  - |-\n" + text


def test_literals_are_a_config_map_rp_29() -> None:
    text = HEAD + d("""
        namespace: gpu-operator
        configMapGenerator:
          - name: slices
            literals:
              - |-
                any=version: v1
                sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replica: 4}]}}
    """)
    found = one("GF513", kustomization=text)
    assert (found.closest, found.line) == ("replicas", 9)
    assert "replica: 4" in text.splitlines()[8]
    assert codes(kustomization=literals(GPU4)) == []
    assert codes(kustomization=HEAD + "configMapGenerator: [{name: a, literals: ['a=\"b\"', 'c']}]\n") == []


def test_quotes_around_a_literal() -> None:
    text = HEAD + "configMapGenerator:\n- name: a\n  literals:\n"
    assert codes(kustomization=text + "  - 'any=\"version: v2\"'\n") == ["GF510"]
    assert codes(kustomization=text + "  - 'any=\"version: v1\"'\n") == []


def test_a_patch_is_no_object_of_its_own() -> None:
    """Alone it would be a second DaemonSet of the plugin."""
    daemon_set = d("""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          selector: {matchLabels: {app: plugin}}
          template:
            metadata: {labels: {app: plugin}}
            spec:
              priorityClassName: system-node-critical
              nodeSelector: {gpu: "true"}
              containers:
              - {name: plugin, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}
    """)
    alone = codes(ds=daemon_set)
    text = HEAD + "resources: [ds.yaml]\npatches: [{path: patch.yaml}]\n"
    assert codes(kustomization=text, ds=daemon_set, patch=daemon_set) == alone
    assert codes(ds=daemon_set, patch=daemon_set) != alone


def test_a_file_needs_no_kind() -> None:
    text = literals(GPU4.replace("replicas", "replica")).removeprefix(HEAD)
    assert "GF513" in codes(kustomization=text)
    assert "GF513" not in codes(other=text)


def test_names_and_keys_of_generated_maps() -> None:
    keep = KEEP + literals(GPU4).removeprefix(HEAD)
    assert codes(kustomization=HEAD + keep, values=VALUES) == []
    assert (
        one("GF532", kustomization=HEAD + keep, values=VALUES.replace("default: any", "default: anny")).closest == "any"
    )
    assert one("GF530", kustomization=HEAD + keep, values=VALUES.replace("slices", "slice")).closest == "slices"
    merged = HEAD + KEEP + literals(GPU4, "  behavior: merge\n").removeprefix(HEAD)
    assert codes(kustomization=merged, values=VALUES.replace("any", "base")) == []  # a key of what it is merged into


def test_generators_that_merge() -> None:
    base = HEAD + KEEP + literals(GPU4).removeprefix(HEAD)
    more = HEAD + "resources: [../base]\n" + literals(GPU4, "  behavior: merge\n").removeprefix(HEAD)
    more = more.replace("any=", "other=")
    files = {"base__kustomization": base, "top__kustomization": more}
    for key in ("any", "other"):
        assert codes(**files, values=VALUES.replace("any", key)) == []
    assert one("GF532", **files, values=VALUES.replace("any", "x")).allowed == ("any", "other")
    wrong = {**files, "top__kustomization": more.replace("replicas", "replica")}
    assert one("GF513", **wrong).file == "top/kustomization.yaml"


def test_the_hash_in_the_name() -> None:
    found = one("GF681", kustomization=literals(GPU4), values=VALUES)
    assert found.message.endswith("values.yaml calls the ConfigMap without it.")
    own = literals(GPU4, "  options: {disableNameSuffixHash: true}\n")
    assert codes(kustomization=own, values=VALUES) == []
    assert "GF681" not in codes(kustomization=literals(GPU4), values=VALUES.replace("slices", "other"))


def test_files_are_a_config_map() -> None:
    text = HEAD + KEEP + "configMapGenerator: [{name: slices, files: [any=conf/gpu.yaml]}]\n"
    bad = GPU4.replace("replicas", "replica")
    found = one("GF513", gpu__kustomization=text, gpu__conf__gpu=bad)
    assert (found.file, found.line) == ("gpu/conf/gpu.yaml", 7)
    assert codes(gpu__kustomization=text, gpu__conf__gpu=GPU4, values=VALUES) == []
    assert one("GF532", kustomization=text, conf__gpu=GPU4, values=VALUES.replace("any", "x")).allowed == ("any",)
    assert one("GF680", gpu__kustomization=text).reason == "The file conf/gpu.yaml is not among what was given."
    assert codes(kustomization=HEAD + "configMapGenerator: [{name: app, files: [app.properties]}]\n") == []


DEPLOYMENT = pod(limits(), kind="Deployment")
RESOURCES = HEAD + "resources: [deploy.yaml]\n"


def test_a_merged_patch_rp_29() -> None:
    patch = pod(limits(number=0.5), kind="Deployment")
    text = RESOURCES + "patches:\n- path: patch.yaml\n"
    found = one("GF604", kustomization=text, deploy=DEPLOYMENT, patch=patch)
    assert (found.file, found.value) == ("patch.yaml", "0.5")
    assert codes(kustomization=text, deploy=DEPLOYMENT, patch=DEPLOYMENT) == codes(deploy=DEPLOYMENT)
    # A patch adds to the list of containers; what it does not name stays.
    other = patch.replace("name: c\n", "name: other\n").replace("0.5", "1")
    unread = DEPLOYMENT.replace("gpu: 1", "gpu: 0.5")
    assert one("GF604", kustomization=text, deploy=unread, patch=other).file == "deploy.yaml"
    # What a patch puts right is right.
    wrong = DEPLOYMENT.replace("gpu: 1", "gpu: 0.5")
    assert "GF604" not in codes(kustomization=text, deploy=wrong, patch=DEPLOYMENT)
    old = RESOURCES + "patchesStrategicMerge: [patch.yaml]\n"
    assert "GF604" in codes(kustomization=old, deploy=DEPLOYMENT, patch=patch)
    inline = RESOURCES + "patches:\n- target: {kind: Deployment}\n  patch: |\n" + textwrap.indent(patch, "    ")
    assert one("GF604", kustomization=inline, deploy=DEPLOYMENT).file == "kustomization.yaml"


OPERATIONS = """\
- op: replace
  path: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu
  value: 0.5
"""


def test_operations_rp_29() -> None:
    text = RESOURCES + "patches:\n- path: ops.yaml\n  target: {kind: Deployment, name: p}\n"
    found = one("GF604", kustomization=text, deploy=DEPLOYMENT, ops=OPERATIONS)
    assert (found.file, found.line) == ("ops.yaml", 3)
    inline = RESOURCES + "patchesJson6902:\n- target: {kind: Deployment, name: p}\n  patch: |\n"
    assert "GF604" in codes(kustomization=inline + textwrap.indent(OPERATIONS, "    "), deploy=DEPLOYMENT)
    removed = OPERATIONS.replace("replace", "remove").replace("  value: 0.5\n", "")
    wrong = DEPLOYMENT.replace("gpu: 1", "gpu: 0.5")
    assert "GF604" not in codes(kustomization=text, deploy=wrong, ops=removed)


@pytest.mark.parametrize(
    ("patch", "target", "why"),
    [
        (OPERATIONS, "{kind: Deployment, name: q}", "What it changes is not among what was given."),
        (OPERATIONS, "{kind: Deployment, labelSelector: a=b}", "What it changes is not among what was given."),
        (OPERATIONS.replace("limits", "requests"), "{kind: Deployment}", "The object has no such place."),
        (OPERATIONS.replace("replace", "move"), "{kind: Deployment}", "Lint does not follow the operation move."),
        (OPERATIONS.replace("gpu", "x").replace("nvidia.com~1", ""), "{kind: Service}", None),
    ],
)
def test_patches_that_are_not_followed_are_named(patch: str, target: str, why: str | None) -> None:
    text = RESOURCES + f"patches:\n- target: {target}\n  patch: |\n" + textwrap.indent(patch, "    ")
    found = [x.reason for x in told(kustomization=text, deploy=DEPLOYMENT) if x.code == "GF680"]
    assert found == ([why] if why else [])


def test_directives_are_named() -> None:
    patch = "kind: Deployment\nmetadata: {name: p}\nspec: {template: {$patch: delete, note: gpu}}\n"
    text = RESOURCES + "patches:\n- patch: |\n" + textwrap.indent(patch, "    ")
    assert "directives" in one("GF680", kustomization=text, deploy=DEPLOYMENT).reason
    more = RESOURCES + "replacements: [{source: {kind: ConfigMap, name: gpu}}]\n"
    assert "replacements" in one("GF680", kustomization=more, deploy=DEPLOYMENT).message


def test_overlays() -> None:
    base = HEAD + "resources: [deploy.yaml]\n"
    overlay = HEAD + "resources: [../base]\npatches:\n- target: {kind: Deployment}\n  patch: |\n"
    overlay += textwrap.indent(OPERATIONS, "    ")
    files = {"base__kustomization": base, "base__deploy": DEPLOYMENT}
    assert one("GF604", **files, a__kustomization=overlay).value == "0.5"
    # Two overlays make two objects of one name, which never are in one cluster.
    found = told(**files, a__kustomization=overlay, b__kustomization=overlay.replace("0.5", "1.5"))
    assert [x.reason for x in found if x.code == "GF680"] == [
        "Another Kustomization changes the same object. Lint each of them alone."
    ]
    on_top = HEAD + "resources: [../a]\npatches:\n- target: {kind: Deployment}\n  patch: |\n"
    on_top += textwrap.indent(OPERATIONS.replace("0.5", "1"), "    ")
    assert "GF604" not in codes(**files, a__kustomization=overlay, b__kustomization=on_top)


def test_components() -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    component += "patches:\n- target: {kind: Deployment}\n  patch: |\n" + textwrap.indent(OPERATIONS, "    ")
    top = HEAD + "resources: [deploy.yaml]\ncomponents: [half]\n"
    assert one("GF604", kustomization=top, deploy=DEPLOYMENT, half__kustomization=component).value == "0.5"
    assert codes(deploy=DEPLOYMENT, half__kustomization=component) == [*codes(deploy=DEPLOYMENT), "GF680"]


def test_a_patch_of_a_configuration() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: slices}\ndata:\n  any: |\n" + textwrap.indent(
        GPU4, "    "
    )
    patch = config.replace("replicas: 4", "replicas: 010")
    text = HEAD + "resources: [cm.yaml]\npatches: [{path: patch.yaml}]\n"
    found = one("GF523", kustomization=text, cm=config, patch=patch)
    assert (found.file, found.line) == ("patch.yaml", 12)


def test_other_kinds_called_kustomization() -> None:
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: {path: ./x}\n"
    assert codes(kustomization=flux) == []
    patched = flux.replace(
        "path: ./x", "path: ./x, patches: [{target: {kind: DaemonSet, name: gpu-feature}, patch: x}]"
    )
    assert one("GF680", kustomization=patched).path == "spec.patches[0]"
    assert codes(kustomization=patched.replace("gpu-feature", "web")) == []


def test_fix_reaches_files_of_generators(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(HEAD + "configMapGenerator: [{name: slices, files: [any=gpu.yaml]}]\n")
    (tmp_path / "gpu.yaml").write_text(GPU4.replace("replicas", "replica"))
    assert main(["lint", "--fix", str(tmp_path)]) == 0
    assert (tmp_path / "gpu.yaml").read_text() == GPU4
    text = literals(GPU4.replace("replicas", "replica"))
    (tmp_path / "kustomization.yaml").write_text(text)
    main(["lint", "--fix", str(tmp_path)])
    assert (tmp_path / "kustomization.yaml").read_text() == text  # its first line is no YAML of its own: left alone
