"""What gpufleet itself deploys is linted with the rules of user input (case NV-50)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.compiled import compile_file
from gpufleet.lint import lint
from gpufleet.plan.model import Plan

from tests.unit.config.samples import compile_base

STACKS = sorted((Path(__file__).parents[3] / "stacks").glob("Pulumi.*.yaml"))
A100: dict[str, Any] = {"pools[0].gpu": "A100-SXM4-80GB", "pools[0].gpusPerNode": 4, "pools[0].sharing": "s"}
METHODS: list[dict[str, Any]] = [
    {"strategy": "none"},
    {"strategy": "timeSlicing", "replicas": 4},
    {"strategy": "timeSlicing", "replicas": 4, "renameByDefault": True},
    {"strategy": "mps", "replicas": 4},
    {"strategy": "mig", "profile": "1g.10gb"},
    {"strategy": "mig", "profile": "1g.10gb", "naming": "mixed", "replicas": 2},
    {"strategy": "mig", "instances": {"1g.10gb": 2, "3g.40gb": 1}, "replicas": 2, "renameByDefault": True},
]


def documents(plan: Plan) -> list[tuple[str, str]]:
    """ConfigMaps and Helm values of a plan, as files."""
    found: list[dict[str, Any]] = []

    def config_map(name: str, namespace: str, data: dict[str, str]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    if plan.plugin:
        for d in plan.plugin.daemon_sets:
            found.append(config_map(d.config_map.name, plan.plugin.namespace, d.config_map.data))
    if plan.operator:
        found.append(config_map(plan.operator.config_map.name, plan.operator.namespace, plan.operator.config_map.data))
        found.append(plan.operator.values)
    return [(f"{i}.yaml", yaml.safe_dump(x, sort_keys=False)) for i, x in enumerate(found)]


def check(plan: Plan) -> None:
    report = lint(documents(plan))
    assert [(d.code, d.path, d.message) for d in report.found] == []
    assert all(one.prediction.accepted for one in report.checked) and report.checked


@pytest.mark.parametrize("path", STACKS, ids=lambda p: p.name)
def test_shipped_stacks(path: Path) -> None:
    plan = compile_file(path).plan
    assert plan is not None
    check(plan)


@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator"])
@pytest.mark.parametrize("profile", METHODS, ids=str)
def test_every_method_on_both_routes(base: str, profile: dict[str, Any]) -> None:
    plan = compile_base(base, {**A100, "sharing.s": profile}).plan
    assert plan is not None
    check(plan)
