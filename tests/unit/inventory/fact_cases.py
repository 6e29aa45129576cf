"""One row per way in which facts of a host contradict the stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpufleet.findings.registry import find

from tests.unit.inventory.host_fact import BARE
from tests.unit.rules.examples import as_changes, as_facts

A100 = "A100-SXM4-80GB"


@dataclass(frozen=True)
class FactCase:
    """`stack` changes the base `existing-plugin`, `wrong` and `right` the fact of its host n1; without `wrong` they are
    the examples of the rule."""

    code: str
    wrong: dict[str, Any] | None = None
    right: dict[str, Any] = field(default_factory=dict)
    stack: dict[str, Any] = field(default_factory=dict)
    value: str | None = None
    allowed: tuple[str, ...] | None = None
    says: str = ""

    def __post_init__(self) -> None:
        if self.wrong is None:
            rule = find(self.code)
            (base, stack), (same, also) = as_changes(rule.wrong), as_changes(rule.right)
            assert (base, stack) == (same, also), "both examples are of one stack"
            kind = {"stack.kind": "operator"} if base.endswith("operator") else {}
            object.__setattr__(self, "stack", {**stack, **kind})
            object.__setattr__(self, "wrong", as_facts(rule.wrong)["n1"])
            object.__setattr__(self, "right", as_facts(rule.right)["n1"])

    def __str__(self) -> str:
        return f"{self.code} {self.value}"


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
    FactCase("GF824", value="580.126.09"),
    FactCase("GF824", {**BARE, "driver.owner": "host"}, BARE, OPERATOR, value="595.91.07"),
    FactCase("GF825", value="1.19.1"),
    FactCase("GF826", value="none"),
    FactCase("GF827", value="580.126.09", allowed=("580.95.05",)),
    FactCase("GF828", value="570.26", allowed=("580",)),
    FactCase("GF829", mig("all-1g.10gb", "Enabled"), mig(None, "Disabled"), cut(), value="layout all-1g.10gb",
             allowed=("no MIG",)),
    FactCase("GF829", mig(None, "Enabled"), mig("all-disabled", "Disabled"), cut(), value="the mode is on"),
    FactCase("GF829", mig("all-1g.10gb", "Disabled", applied=False), mig("all-disabled", "Disabled"), cut(),
             value="layout all-1g.10gb"),
    FactCase("GF829", value="layout all-2g.20gb", allowed=("all-1g.10gb",)),
    FactCase("GF829", mig("all-1g.10gb", "Enabled", applied=False), mig("all-1g.10gb", "Enabled"),
             cut(profile="1g.10gb"), value="layout all-1g.10gb, not applied"),
    FactCase("GF829", mig("2x1g.10gb_1x3g.40gb", "Enabled"), mig("1x1g.10gb_2x2g.20gb", "Enabled"),
             cut(instances={"1g.10gb": 1, "2g.20gb": 2}, naming="mixed"), value="layout 2x1g.10gb_1x3g.40gb",
             allowed=("1x1g.10gb_2x2g.20gb",)),
    FactCase("GF830", value="all-1g.10gb"),
    FactCase("GF831", value="none"),
    FactCase("GF832", value="none", allowed=("nvidia",)),
    FactCase("GF832", {"runtime.handler": "gpu"}, value="gpu"),
    FactCase("GF833", value="2", allowed=("1",)),
    FactCase("GF833", gpus(), gpus("T4", "T4"), {"pools[0].gpusPerNode": 2}, value="0"),
    FactCase("GF834", value="A10", allowed=("T4",)),
    FactCase("GF834", gpus("A100-PCIE-40GB"), gpus("A100-SXM4-80GB"), {"pools[0].gpu": "A100-80GB"},
             value="A100-PCIE-40GB"),
    FactCase("GF835", value="10de:ffff"),
    FactCase("GF836", value="580.95.05", allowed=("580.126.09",)),
    FactCase("GF836", {"fabric": {**NVSWITCH, "version": None}}, {"fabric": NVSWITCH}, value="none"),
    FactCase("GF845", value="hgx-a100-h100-h200"),
    FactCase("GF837", value="MIG mode is pending on 1 GPUs"),
    FactCase("GF838"),
    FactCase("GF839", value="false", allowed=("true",)),
    FactCase("GF839", {"runtime.default": True}, value="true", allowed=("false",)),
    FactCase("GF840", value="open", allowed=("proprietary",)),
    FactCase("GF840", {**gpus("B200"), "driver.flavour": "proprietary"}, gpus("B200"), {"pools[0].gpu": "B200"},
             value="proprietary", allowed=("open",)),
    FactCase("GF841", value="580.126.09", says="580.178.04"),
    FactCase("GF842", value="570.26",
             says="570.133.20"),
    FactCase("GF842", {**gpus("B200"), **TEN},
             {**gpus("B200"), "driver.version": "570.211.01", "driver.library": "570.211.01"},
             {"pools[0].gpu": "B200", "pools[0].driverBranch": "570"}, value="570.26"),
    FactCase("GF843", value="k3s", allowed=("containerd",)),
    FactCase("GF843", {"runtime.owner": "containerd"}, {"runtime.owner": "k3s"}, {"cluster.distribution": "k3s"},
             value="containerd", allowed=("k3s",)),
    FactCase("GF843", {"runtime.owner": ""}, {"runtime.owner": "crio"}, {"hosts.runtimeOwner": "crio"},
             value="unclear", allowed=("crio",)),
    FactCase("GF844", value="535.309.01", says="13.0"),
]  # fmt: skip
