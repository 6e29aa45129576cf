"""The Job: its manifests, and its archive really run by a bare Python."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.bench.job import JobOptions, archive, manifests
from gpufleet.cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["bench", "--job", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_the_job_asks_for_one_gpu_and_no_privilege(capsys: pytest.CaptureFixture[str]) -> None:
    config, job = printed(
        capsys, "--namespace", "ml", "--node-selector", "gpufleet.dev/pool=t4", "--toleration", "sku=gpu",
        "--toleration", "nvidia.com/gpu", "--runtime-class", "nvidia", "--resource", "nvidia.com/gpu.shared",
        "--processes", "1,2", "--method", "timeSlicing,mps",
    )  # fmt: skip
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/gpu.shared": "1"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["nodeSelector"] == {"gpufleet.dev/pool": "t4"}
    assert pod["tolerations"] == [
        {"key": "sku", "operator": "Equal", "value": "gpu"},
        {"key": "nvidia.com/gpu", "operator": "Exists"},
    ]
    assert pod["runtimeClassName"] == "nvidia"
    assert container["resources"]["requests"]["cpu"] == "2", "a node of the smallest size has room for it"
    assert pod["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]
    assert config["metadata"]["namespace"] == job["metadata"]["namespace"] == "ml"
    words = container["command"]
    assert words[words.index("--processes") + 1] == "1,2" and words[words.index("--method") + 1] == "timeSlicing,mps"


STACK = """\
config:
  gpufleet:cluster: {kind: existing, name: dc, kubeconfig: {path: k}}
  gpufleet:pools:
    - name: a
      hosts: {h1: {}}
      gpu: T4
      gpusPerNode: 1
      taints: ["vendor.example/gpu=t4:NoExecute"]
      sharing: four
    - {name: b, nodeSelector: {rack: r7}, gpu: A30, gpusPerNode: 4, nvidiaDefaultRuntime: true}
    - {name: c, hosts: {h3: {}}, driver: none, gpu: T4, gpusPerNode: 1}
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing:
    four: {strategy: timeSlicing, replicas: 4, renameByDefault: true}
  gpufleet:acknowledge: {GF205: driver under test}
"""


def test_a_stacks_pool_says_how_to_get_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dc.yaml"
    file.write_text(STACK)
    pods = {}
    for pool in ("a", "b"):
        _, job = printed(capsys, "--stack-file", str(file), "--pool", pool)
        pods[pool] = job["spec"]["template"]["spec"]
    limits = {name: pod["containers"][0]["resources"]["limits"] for name, pod in pods.items()}
    assert limits == {"a": {"nvidia.com/gpu.shared": "1"}, "b": {"nvidia.com/gpu": "1"}}
    assert pods["a"]["nodeSelector"] == {"gpufleet.dev/pool": "a"} and pods["b"]["nodeSelector"] == {"rack": "r7"}
    assert pods["a"]["tolerations"] == [
        {"key": "vendor.example/gpu", "operator": "Equal", "value": "t4", "effect": "NoExecute"}
    ]
    assert "tolerations" not in pods["b"]
    assert pods["a"]["runtimeClassName"] == "nvidia" and "runtimeClassName" not in pods["b"]


def test_own_options_come_on_top_of_the_stacks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dc.yaml"
    file.write_text(STACK)
    _, job = printed(
        capsys, "--stack-file", str(file), "--pool", "a", "--resource", "example.com/gpu", "--runtime-class", "mine",
        "--node-selector", "zone=1", "--toleration", "night",
    )  # fmt: skip
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"example.com/gpu": "1"}
    assert pod["nodeSelector"] == {"gpufleet.dev/pool": "a", "zone": "1"} and pod["runtimeClassName"] == "mine"
    assert [t["key"] for t in pod["tolerations"]] == ["vendor.example/gpu", "night"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "several pools; --pool takes one of a, b"),
        (["--pool", "x"], "serves no pool x; it serves a, b"),
        (["--pool", "c"], "serves no pool c"),
        (["--stack-file", "none.yaml"], "cannot read none.yaml"),
        (["--stack-file", "", "--stack", "nowhere"], "no stack nowhere"),
    ],
)
def test_pools_that_cannot_be(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], said: str) -> None:
    file = tmp_path / "Pulumi.dc.yaml"
    file.write_text(STACK)
    given = words if "--stack-file" in words else ["--stack-file", str(file), *words]
    given = given[2:] if "" in given else given
    assert main(["bench", "--job", *given]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and said in errors


def test_a_pool_without_a_stack_and_a_stack_with_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "--job", "--pool", "a"]) == 2
    assert "--pool needs --stack" in capsys.readouterr().err
    file = tmp_path / "Pulumi.dc.yaml"
    file.write_text(STACK.replace("replicas: 4", "replicas: 0"))
    assert main(["bench", "--job", "--stack-file", str(file), "--pool", "a"]) == 2
    assert "has errors; see gpufleet plan" in capsys.readouterr().err


def test_yaml_without_anchors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--job"]) == 0
    assert "&id" not in capsys.readouterr().out


def test_the_users_command_comes_last(capsys: pytest.CaptureFixture[str]) -> None:
    _, job = printed(capsys, "--workload", "command", "--step-pattern", "^step", "--", "python", "-u", "train.py")
    words = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert words[-4:] == ["--", "python", "-u", "train.py"]
    assert words[words.index("--step-pattern") + 1] == "^step"


def test_what_has_no_place_in_a_job_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--allow-settings", "--plot", "x.png", "--output", "y", "--node-selector", "bad"]
    assert main(["bench", "--job", *words]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    for text in ("--allow-settings", "--plot", "--output", "'bad'"):
        assert text in errors


def test_the_archive_is_small_and_always_the_same() -> None:
    with zipfile.ZipFile(io.BytesIO(archive())) as bundle:
        assert {info.date_time for info in bundle.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert bundle.namelist() == sorted(bundle.namelist())
    assert len(archive()) < 200_000  # a ConfigMap holds 1 MiB
    names = {m["metadata"]["name"] for m in manifests(JobOptions(), []) if m["kind"] == "ConfigMap"}
    assert names == {m["metadata"]["name"] for m in manifests(JobOptions(), ["--fresh"]) if m["kind"] == "ConfigMap"}


def test_a_bare_python_runs_the_archive_with_the_jobs_words(
    capsys: pytest.CaptureFixture[str], fake_gpu: Path, tmp_path: Path
) -> None:
    config, job = printed(
        capsys, "--workload", "training", "--processes", "1,2", "--repetitions", "1", "--window", "0.2",
        "--backend", "driver",
    )  # fmt: skip
    bundle = tmp_path / "bench.pyz"
    bundle.write_bytes(base64.b64decode(config["binaryData"]["bench.pyz"]))
    words = job["spec"]["template"]["spec"]["containers"][0]["command"][2:]
    assert words[0] == "/bench/bench.pyz"
    # -S: no site packages, so nothing of this checkout
    done = subprocess.run(
        [sys.executable, "-S", str(bundle), *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(row["n"] for row in rows if row["kind"] == "point") == [1, 2]
    assert "training driver timeSlicing" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "X_Y"),
        ("--name", "n" * 55),
        ("--namespace", "Bad NS"),
        ("--namespace", "a.b"),
        ("--resource", "bad"),
        ("--resource", "nvidia.com/"),
        ("--runtime-class", "no class"),
        ("--image", "a b"),
        ("--deadline", "0"),
        ("--node-selector", "a"),
        ("--node-selector", "a=b c"),
        ("--toleration", ""),
        ("--toleration", "a b"),
        ("--toleration", "sku=g!"),
        ("--time-limit", "0"),
        ("--mig", "1g.5gb"),
    ],
)
def test_manifests_that_the_api_server_would_refuse(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--job", *words]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and errors.startswith(f"gpufleet bench: {words[0]}") and errors.count("\n") == 1


def test_names_and_keys_that_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--name",
        "b" * 54,
        "--resource",
        "nvidia.com/mig-1g.5gb",
        "--node-selector",
        "a.b/c_D=",
        "--deadline",
        "1",
    ]
    _, job = printed(capsys, *words, "--toleration", "sku=gpu", "--toleration", "nvidia.com/gpu")
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"a.b/c_D": ""}
    assert [t["key"] for t in pod["tolerations"]] == ["sku", "nvidia.com/gpu"]
