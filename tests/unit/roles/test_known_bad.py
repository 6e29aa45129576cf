"""Versions that are known to fail on a host: driver, GPU, kernel modules and kernel."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.hosts import preflight

from .hosts import gpus, host, probe


def said(reading: dict[str, Any], **variables: Any) -> list[tuple[str, str]]:
    """Code and version of what is known to fail."""
    found = preflight.findings(host(probe(**reading), **variables))
    return [(f.code, f.message.split(": ")[1].split()[1]) for f in found if f.code in ("GF716", "GF717")]


B200, B300 = {"hardware": {"gpus": gpus("2901", 8)}}, {"hardware": {"gpus": gpus("3182", 8)}}


@pytest.mark.parametrize(
    ("reading", "version", "code"),
    [
        (B200, "570.133.20", "GF717"),
        (B200, "580.105.08", "GF717"),
        (B200, "580.126.09", ""),
        ({"hardware": {"gpus": gpus("2335", 8)}}, "570.133.20", ""),  # H200
    ],
)
def test_rp_33_driver_and_gpu(reading: dict[str, Any], version: str, code: str) -> None:
    assert said(reading, gpu_driver_version=version) == ([(code, version)] if code else [])


@pytest.mark.parametrize(
    ("reading", "version", "kernel", "variables", "code"),
    [
        (B300, "595.71.05", "7.0.0-27-generic", {}, "GF717"),
        (B300, "595.71.05", "6.8.0-45-generic", {}, ""),
        (B300, "595.91.07", "7.0.0-27-generic", {}, ""),
        ({}, "580.119.02", "6.17.9-76061709-generic", {}, "GF717"),
        ({}, "580.119.02", "6.17.4-76061704-generic", {}, ""),
        ({}, "590.48.01", "6.19.10-061910-generic", {}, "GF717"),
        ({}, "590.48.01", "6.19.10-061910-generic", {"gpu_driver_method": "distro"}, ""),  # modules are built already
        ({}, "590.48.01", "6.19.10-061910-generic", {"gpu_driver_kmod": "precompiled"}, ""),
        ({}, "595.91.07", "6.19.10-061910-generic", {}, ""),
    ],
)
def test_driver_and_kernel(
    reading: dict[str, Any], version: str, kernel: str, variables: dict[str, Any], code: str
) -> None:
    seen = said({**reading, "kernel": {"release": kernel}}, gpu_driver_version=version, **variables)
    assert seen == ([(code, version)] if code else [])


def test_a_finding_names_the_thread_and_what_to_do() -> None:
    found = preflight.findings(host(probe(**B200), gpu_driver_version="570.133.20"))
    (item,) = [f for f in found if f.code == "GF717"]
    assert "NVIDIA/open-gpu-kernel-modules#971" in item.reason and "b200-570.133.20-hang" in item.reason
    assert item.remedy.startswith("Use a later version of branch 580 or 595")
    assert item.remedy.endswith("Or accept this code with a reason.")
