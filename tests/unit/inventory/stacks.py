"""Stacks with hosts, for examples and for properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.config.samples import compile_data, stack_text
from tests.unit.plan.strategies import stacks

SHA = "0123456789abcdef" * 4
FULL: dict[str, Any] = {
    "cluster": {"kind": "existing", "name": "idc", "kubeconfig": {"path": "idc.conf", "context": "admin"}},
    "pools": [
        {
            "name": "a100-80", "gpu": "A100-SXM4-80GB", "gpusPerNode": 8, "driver": "host", "driverBranch": "580",
            "hosts": {"gpu02": {"address": "10.0.0.12"}, "gpu01": {"address": "gpu01.example.com"}},
            "os": "ubuntu-24.04", "sharing": "cut",
        },
        {
            "name": "mixed", "gpu": "H200", "gpusPerNode": 8, "hosts": {"gpu03": {"address": "fd00::3"}},
            "driverVersion": "580.126.09", "hostDriver": {"method": "runfile", "runfileSha256": SHA},
            "nvidiaDefaultRuntime": True, "sharing": "parts",
        },
        {
            "name": "t4", "gpu": "T4", "gpusPerNode": 4, "hosts": {"gpu04": {"address": "10.0.0.14"}},
            "sharing": "slices", "hostDriver": {"flavour": "proprietary"},
        },
        {
            "name": "ops", "gpu": "L40S", "gpusPerNode": 2, "hosts": {"gpu05": {"address": "10.0.0.15"}},
            "driver": "operator",
        },
        {"name": "spare", "gpu": "T4", "gpusPerNode": 1, "hosts": {"gpu06": None}, "driver": "none"},
        {
            "name": "others", "gpu": "T4", "gpusPerNode": 1,
            "nodeSelector": {"pool": "x", "nvidia.com/gpu.deploy.driver": "false",
                             "nvidia.com/gpu.deploy.container-toolkit": "false",
                             "nvidia.com/gpu.deploy.mig-manager": "false"},
        },
    ],
    "hosts": {
        "ssh": {"user": "ubuntu", "port": 2222},
        "rebootPolicy": "if_required",
        "mirror": {
            "cuda": {"url": "https://m.example.com/cuda/<directory>/<architecture directory>/",
                     "keyUrl": "https://m.example.com/cuda.asc", "keyFingerprints": ["EB693B3035CD5710"]},
            "toolkit": {"url": "https://m.example.com/toolkit", "suite": "stable", "components": ["main"]},
            "runfileUrl": "https://m.example.com/<version>/NVIDIA-Linux-<machine>-<version>.run",
            "allowedHosts": ["m.example.com", "debian.example.com"],
        },
    },
    "stack": {"kind": "operator", "values": {"cdi": {"enabled": False}}},
    "sharing": {
        "cut": {"strategy": "mig", "profile": "1g.10gb", "naming": "mixed"},
        "parts": {"strategy": "mig", "instances": {"3g.71gb": 1, "1g.18gb": 2}, "naming": "mixed"},
        "slices": {"strategy": "timeSlicing", "replicas": 4, "timeSlice": "long"},
    },
    "teams": [{"name": "x", "namespace": "x", "pools": ["t4"], "images": ["registry.example.com/a:cuda12.8"]}],
    "acknowledge": {"GF205": "spare hosts"},
}  # fmt: skip


def full_text() -> str:
    """FULL as the text of a stack file."""
    return stack_text(FULL)


@st.composite
def host_stacks(draw: st.DrawFn) -> dict[str, Any]:
    """Stacks on existing clusters without errors, with more or less said about hosts."""
    data = draw(stacks().filter(lambda d: d["cluster"]["kind"] == "existing"))
    numbers = iter(range(1, 100))
    systems: tuple[str, ...] = ("ubuntu-22.04", "ubuntu-24.04", "debian-12", "rocky-9", "kylin-V11")
    if any(pool["driver"] == "operator" for pool in data["pools"]):
        systems = systems[:1]  # one release serves one system
    for pool in data["pools"]:
        for name in pool.get("hosts", {}):
            pool["hosts"][name] = {"address": f"10.0.0.{next(numbers)}"}
        if pool.get("hosts") and pool["driver"] == "host" and draw(st.booleans()):
            pool["os"] = draw(st.sampled_from(systems))
            pool["hostDriver"] = {"flavour": draw(st.sampled_from(("open",)))}
    hosts: dict[str, Any] = {}
    if draw(st.booleans()):
        hosts["ssh"] = draw(st.sampled_from(({"user": "root"}, {"user": "ops"}, {"port": 2222}, {})))
    if draw(st.booleans()):
        hosts["runtimeOwner"] = draw(st.sampled_from(("auto", "containerd", "docker", "crio", "kubespray", "none")))
    if draw(st.booleans()):
        hosts["mirror"] = {"toolkit": {"url": "https://m.example.com/t", "components": draw(st.lists(st.just("main")))}}
    if draw(st.booleans()):
        hosts["rebootPolicy"] = draw(st.sampled_from(("never", "if_required", "reset_then_reboot")))
    data["hosts"] = hosts
    return data


__all__ = ["FULL", "compile_data", "full_text", "host_stacks"]
