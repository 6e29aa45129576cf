"""Warnings of the plan where a stack goes against measurements or against what its cluster is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpufleet.compiled import compile_file
from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import find

from tests.unit.config.samples import compile_base, the_one, told

STACKS = sorted((Path(__file__).parents[3] / "stacks").glob("Pulumi.*.yaml"))


def share(strategy: str = "timeSlicing", environment: str | None = None, **fields: Any) -> dict[str, Any]:
    """The first pool, an A100, shares in this way."""
    changes: dict[str, Any] = {"sharing.own": {"strategy": strategy, **fields}, "pools[0].sharing": "own"}
    changes["pools[0].gpu"] = "A100-SXM4-80GB"
    return {**changes, "cluster.environment": environment} if environment else changes


def said(changes: dict[str, Any], base: str = "existing-plugin") -> list[tuple[str, str]]:
    return told(compile_base(base, changes))


@pytest.mark.parametrize("strategy", ["timeSlicing", "mps"])
def test_training_with_more_than_two_pods(strategy: str) -> None:
    assert said(share(strategy, replicas=3, workload="training")) == [("GF900", "pools[0].sharing")]
    assert said(share(strategy, replicas=2, workload="training")) == []
    for workload in ("inference", "notebooks", "batch"):
        assert said(share(strategy, replicas=3, workload=workload)) == []
    assert said(share(strategy, replicas=3)) == []


def test_training_on_a_mig_instance_that_is_shared() -> None:
    def cut(**more: Any) -> dict[str, Any]:
        return share("mig", profile="3g.40gb", workload="training", **more)

    assert said(cut(replicas=3)) == [("GF900", "pools[0].sharing")]
    assert said(cut(replicas=2)) == [] and said(cut()) == []  # an instance of its own
    found = the_one(compile_base("existing-plugin", cut(replicas=3)), "GF900")
    assert "Nothing was measured" in found.reason


def test_the_warning_argues_with_the_measurement_and_its_conditions() -> None:
    found = the_one(compile_base("existing-plugin", share(replicas=4, workload="training")), "GF900")
    assert found.severity is Severity.WARNING and found.value == "own"
    assert found.message == "4 training pods share one GPU under timeSlicing."
    assert "% of a GPU of its own for each of 4 such pods (H200, driver " in found.reason


@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator"])
def test_production_with_time_slicing(base: str) -> None:
    assert said(share(replicas=2, environment="production"), base) == [("GF901", "pools[0].sharing")]
    assert said(share("mig", profile="1g.10gb", replicas=2, environment="production"), base) == [
        ("GF901", "pools[0].sharing")
    ]
    for strategy in ({"strategy": "mps", "replicas": 2}, {"strategy": "mig", "profile": "1g.10gb"}):
        assert said(share(**strategy, environment="production"), base) == []
    assert said(share("none", environment="production"), base) == []
    for environment in ("staging", "dev"):
        assert said(share(replicas=2, environment=environment), base) == []
    assert said(share(replicas=2), base) == []


def test_both_cluster_kinds_state_their_environment() -> None:
    shared = {"sharing.own": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "own"}
    assert said({**shared, "cluster.environment": "production"}, "aks-plugin") == [("GF901", "pools[0].sharing")]
    assert said({"cluster.environment": "prod"}, "aks-plugin") == [("GF103", "cluster.environment")]


def test_a_pool_that_no_software_serves_shares_nothing() -> None:
    changes = {"pools[0].driver": "none", "cluster.environment": "production"}
    assert ("GF901", "pools[0].sharing") not in said(changes, "aks-plugin")


def test_memory_over_commitment_is_said_once() -> None:
    changes = share(replicas=8, memoryPerPodGib=20, workload="inference")
    assert said(changes) == [("GF302", "pools[0].sharing")]


def test_a_reason_accepts_the_warning() -> None:
    changes = {**share(replicas=2, environment="production"), "acknowledge": {"GF901": "one team, memory is bounded"}}
    compiled = compile_base("existing-plugin", changes)
    assert the_one(compiled, "GF901").acknowledged == "one team, memory is bounded"
    assert compiled.plan is not None


@pytest.mark.parametrize("path", STACKS, ids=lambda p: p.name)
def test_shipped_stacks_leave_no_warning_without_an_answer(path: Path) -> None:
    open_ = [d.code for d in compile_file(path).found if d.severity is not Severity.NOTE and d.acknowledged is None]
    assert open_ == []


def test_the_codes_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "rules" / "advice.md").read_text(encoding="utf-8")
    for code in ("GF900", "GF901"):
        assert find(code).severity is Severity.WARNING and f"## {code}\n\nWarning: " in page
