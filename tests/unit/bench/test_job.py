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

from infra.bench.job import JobOptions, archive, manifests
from infra.cli.main import main


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
    assert container["resources"]["limits"] == {"nvidia.com/gpu.shared": 1}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["nodeSelector"] == {"gpufleet.dev/pool": "t4"}
    assert pod["tolerations"] == [
        {"key": "sku", "operator": "Equal", "value": "gpu"},
        {"key": "nvidia.com/gpu", "operator": "Exists"},
    ]
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]
    assert config["metadata"]["namespace"] == job["metadata"]["namespace"] == "ml"
    words = container["command"]
    assert words[words.index("--processes") + 1] == "1,2" and words[words.index("--method") + 1] == "timeSlicing,mps"


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
