"""One row per way in which facts of a host contradict the stack."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from tests.unit.config.samples import put

#: A host of the base `existing-plugin` after the roles: one T4, driver and toolkit on the host.
FACT: dict[str, Any] = {
    "schema": 1,
    "settings": "0123456789ab",
    "gpus": [{"slot": "0000:17:00.0", "device": "1eb8", "model": "T4"}],
    "driver": {"owner": "host", "version": "580.126.09", "flavour": "open", "library": "580.126.09",
               "wanted": "580.126.09", "method": "cuda_repo"},
    "fabric": {"platform": "none", "version": None, "unit": None, "ready": None},
    "toolkit": {"version": "1.20.0"},
    "runtime": {"owner": "containerd", "handler": "nvidia", "default": False},
    "mig": {"layout": None, "applied": False, "modes": [None], "pending": [None]},
    "reboot_required": [],
    "healthy": True,
    "last_good": {"version": "580.126.09", "branch": 580, "flavour": "open"},
}  # fmt: skip
#: The same host where the operator brings driver and toolkit.
BARE: dict[str, Any] = {
    "driver": {"owner": "other", "version": "595.91.07", "flavour": "open", "library": None},
    "toolkit.version": None,
    "runtime": {"owner": "containerd", "handler": None, "default": False},
}
A100 = "A100-SXM4-80GB"


@dataclass(frozen=True)
class FactCase:
    """`stack` changes the base `existing-plugin`, `wrong` and `right` the fact of its host n1."""

    code: str
    wrong: dict[str, Any]
    right: dict[str, Any] = field(default_factory=dict)
    stack: dict[str, Any] = field(default_factory=dict)
    value: str | None = None
    allowed: tuple[str, ...] | None = None
    says: str = ""

    def __str__(self) -> str:
        return f"{self.code} {self.value}"


def fact(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """FACT with changes by path."""
    data = copy.deepcopy(FACT)
    for path, value in (changes or {}).items():
        put(data, path, copy.deepcopy(value))
    return data


def gpus(*models: str) -> dict[str, Any]:
    return {"gpus": [{"slot": f"0000:{i:02x}:00.0", "device": "0000", "model": m} for i, m in enumerate(models)]}


def cut(**spec: Any) -> dict[str, Any]:
    """The stack's pool of A100, under MIG where a profile is given."""
    changes: dict[str, Any] = {"pools[0].gpu": A100}
    if spec:
        changes |= {"sharing.cut": {"strategy": "mig", **spec}, "pools[0].sharing": "cut"}
    return changes


def mig(layout: str | None, *modes: str | None, applied: bool = True) -> dict[str, Any]:
    return {**gpus(A100), "mig": {"layout": layout, "applied": applied, "modes": list(modes)}}


def team(image: str, **more: Any) -> dict[str, Any]:
    return {"teams": [{"name": "x", "namespace": "x", "pools": ["t4"], "images": [image], **more}]}


OPERATOR = {"pools[0].driver": "operator", "stack.kind": "operator"}
NVSWITCH = {"platform": "hgx-a100-h100-h200", "unit": "nvidia-fabricmanager.service", "version": "580.126.09"}
TEN = {"driver.version": "570.26", "driver.library": "570.26"}

FACT_CASES = [
    FactCase("GF824", {**BARE, "driver.library": "580.126.09"}, BARE, OPERATOR, value="580.126.09"),
    FactCase("GF824", {**BARE, "driver.owner": "host"}, BARE, OPERATOR, value="595.91.07"),
    FactCase("GF825", {**BARE, "toolkit.version": "1.19.1"}, BARE, OPERATOR, value="1.19.1"),
    FactCase("GF826", {"driver": {"owner": "none", "version": None, "flavour": None, "library": None}}, value="none"),
    FactCase("GF827", {}, {"driver.version": "580.95.05", "driver.library": "580.95.05"},
             {"pools[0].driverVersion": "580.95.05"}, value="580.126.09", allowed=("580.95.05",)),
    FactCase("GF828", TEN, {}, {"pools[0].driverBranch": "580"}, value="570.26", allowed=("580",)),
    FactCase("GF829", mig("all-1g.10gb", "Enabled"), mig(None, "Disabled"), cut(), value="layout all-1g.10gb",
             allowed=("no MIG",)),
    FactCase("GF829", mig(None, "Enabled"), mig("all-disabled", "Disabled"), cut(), value="the mode is on"),
    FactCase("GF829", mig("all-1g.10gb", "Disabled", applied=False), mig("all-disabled", "Disabled"), cut(),
             value="layout all-1g.10gb"),
    FactCase("GF829", mig("all-2g.20gb", "Enabled"), mig("all-1g.10gb", "Enabled"), cut(profile="1g.10gb"),
             value="layout all-2g.20gb", allowed=("all-1g.10gb",)),
    FactCase("GF829", mig("all-1g.10gb", "Enabled", applied=False), mig("all-1g.10gb", "Enabled"),
             cut(profile="1g.10gb"), value="layout all-1g.10gb, not applied"),
    FactCase("GF829", mig("2x1g.10gb_1x3g.40gb", "Enabled"), mig("1x1g.10gb_2x2g.20gb", "Enabled"),
             cut(instances={"1g.10gb": 1, "2g.20gb": 2}, naming="mixed"), value="layout 2x1g.10gb_1x3g.40gb",
             allowed=("1x1g.10gb_2x2g.20gb",)),
    FactCase("GF830", {**BARE, "mig.layout": "all-1g.10gb", **gpus(A100)}, {**BARE, **gpus(A100)},
             {**OPERATOR, **cut(profile="1g.10gb")}, value="all-1g.10gb"),
    FactCase("GF831", {"toolkit.version": None}, value="none"),
    FactCase("GF832", {"runtime.handler": None}, value="none", allowed=("nvidia",)),
    FactCase("GF832", {"runtime.handler": "gpu"}, value="gpu"),
    FactCase("GF833", gpus("T4", "T4"), value="2", allowed=("1",)),
    FactCase("GF833", gpus(), gpus("T4", "T4"), {"pools[0].gpusPerNode": 2}, value="0"),
    FactCase("GF834", gpus("A10"), value="A10", allowed=("T4",)),
    FactCase("GF834", gpus("A100-PCIE-40GB"), gpus("A100-SXM4-80GB"), {"pools[0].gpu": "A100-80GB"},
             value="A100-PCIE-40GB"),
    FactCase("GF835", gpus("10de:ffff"), value="10de:ffff"),
    FactCase("GF836", {"fabric": {**NVSWITCH, "version": "580.95.05"}}, {"fabric": {**NVSWITCH, "ready": True}},
             value="580.95.05", allowed=("580.126.09",)),
    FactCase("GF836", {"fabric": {**NVSWITCH, "version": None}}, {"fabric": NVSWITCH}, value="none"),
    FactCase("GF845", {"fabric": {**NVSWITCH, "ready": False}}, {"fabric": {**NVSWITCH, "ready": True}},
             value="hgx-a100-h100-h200"),
    FactCase("GF837", {"reboot_required": ["MIG mode is pending on 1 GPUs"], "healthy": False},
             value="MIG mode is pending on 1 GPUs"),
    FactCase("GF838", {"healthy": False}),
    FactCase("GF839", {"runtime.default": False}, {"runtime.default": True}, {"pools[0].nvidiaDefaultRuntime": True},
             value="false", allowed=("true",)),
    FactCase("GF839", {"runtime.default": True}, value="true", allowed=("false",)),
    FactCase("GF840", {"driver.flavour": "open"}, {"driver.flavour": "proprietary"},
             {"pools[0].hostDriver": {"flavour": "proprietary"}}, value="open", allowed=("proprietary",)),
    FactCase("GF840", {**gpus("B200"), "driver.flavour": "proprietary"}, gpus("B200"), {"pools[0].gpu": "B200"},
             value="proprietary", allowed=("open",)),
    FactCase("GF841", {"driver.library": "580.178.04"}, value="580.126.09", says="580.178.04"),
    FactCase("GF842", {**gpus("B200"), **TEN}, gpus("B200"), {"pools[0].gpu": "B200"}, value="570.26",
             says="570.133.20"),
    FactCase("GF842", {**gpus("B200"), **TEN},
             {**gpus("B200"), "driver.version": "570.211.01", "driver.library": "570.211.01"},
             {"pools[0].gpu": "B200", "pools[0].driverBranch": "570"}, value="570.26"),
    FactCase("GF843", {"runtime.owner": "k3s"}, value="k3s", allowed=("containerd",)),
    FactCase("GF843", {"runtime.owner": "containerd"}, {"runtime.owner": "k3s"}, {"cluster.distribution": "k3s"},
             value="containerd", allowed=("k3s",)),
    FactCase("GF843", {"runtime.owner": ""}, {"runtime.owner": "crio"}, {"hosts.runtimeOwner": "crio"},
             value="unclear", allowed=("crio",)),
    FactCase("GF844", {**TEN, "driver.version": "535.309.01", "driver.library": "535.309.01"}, {},
             team("registry.example.com/train:cuda13.0"), value="535.309.01", says="13.0"),
]  # fmt: skip
