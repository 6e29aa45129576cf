"""A stand-in for the CUDA driver library, compiled once per test session, and small fake tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler: the stand-in for libcuda cannot be built")
    library = tmp_path_factory.mktemp("cuda") / "libcuda.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, HERE / "fake_libcuda.c"], check=True)
    return library


@pytest.fixture
def fake_gpu(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One fake GPU that all processes of the test share; no nvidia-smi."""
    monkeypatch.setenv("GPUFLEET_LIBCUDA", str(fake_library))
    monkeypatch.setenv("FAKE_GPU_LOCK", str(tmp_path / "gpu.lock"))
    monkeypatch.setenv("FAKE_GPU_NS", "20000")
    monkeypatch.setenv("GPUFLEET_NVIDIA_SMI", str(tmp_path / "absent"))
    return tmp_path


@pytest.fixture
def fake_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """nvidia-smi that keeps its settings in a folder and logs every call to ``calls``."""
    state = tmp_path / "smi"
    state.mkdir()
    values = {"slice": "Default", "mig": "Disabled", "instances": "", "apps": "", "used": "1000", "total": "80000"}
    for name, value in values.items():
        (state / name).write_text(value)
    (state / "calls").touch()
    monkeypatch.setenv("FAKE_SMI_STATE", str(state))
    monkeypatch.setenv("GPUFLEET_NVIDIA_SMI", str(HERE / "fake_nvidia_smi.py"))
    return state


@pytest.fixture
def fake_mps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """nvidia-cuda-mps-control that logs its environment and commands to ``mps.log``."""
    log = tmp_path / "mps.log"
    monkeypatch.setenv("FAKE_MPS_LOG", str(log))
    monkeypatch.setenv("GPUFLEET_MPS_CONTROL", str(HERE / "fake_mps_control.py"))
    return log
