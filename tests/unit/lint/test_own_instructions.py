"""What the plan tells teams is what lint accepts, and so is the Job that `gpufleet bench` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from gpufleet.cli.main import main
from gpufleet.compiled import compile_file
from gpufleet.fleet.model import Fleet
from gpufleet.lint.stack import of_fleet
from gpufleet.teams.teams import pool_access

from tests.unit.lint.fleets import errors, lint_pools

ROOT = Path(__file__).parents[3]
STACKS = sorted(
    p
    for p in [*(ROOT / "stacks").glob("Pulumi.*.yaml"), *(ROOT / "tests" / "golden" / "stacks").glob("*.yaml")]
    if "refused" not in p.name
)


def told_to_teams(fleet: Fleet, pool_name: str, resource: str) -> str:
    """A pod that does what the plan's line for a pool says."""
    access = pool_access(fleet.by_name[pool_name])
    spec = {
        "nodeSelector": access.node_selector,
        "tolerations": list(access.tolerations),
        "containers": [{"name": "c", "image": "example/train:1", "resources": {"limits": {resource: 1}}}],
        **({"runtimeClassName": access.runtime_class} if access.runtime_class else {}),
    }
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})


@pytest.mark.parametrize("path", STACKS, ids=lambda p: p.name)
def test_pods_that_do_as_the_plan_says(path: Path) -> None:
    fleet = compile_file(path).fleet
    assert fleet is not None
    pools = of_fleet(fleet)
    for pool in fleet.served:
        for resource in pool.method.resources:
            text = told_to_teams(fleet, pool.name, resource)
            assert errors(lint_pools(pools, text)) == [], (pool.name, text)


@pytest.mark.parametrize("path", STACKS, ids=lambda p: p.name)
def test_the_benchs_job(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = compile_file(path).fleet
    assert fleet is not None
    for pool in fleet.served:
        words = ["bench", "--job", "--stack-file", str(path), "--pool", pool.name]
        if main(words) == 0:
            assert errors(lint_pools(of_fleet(fleet), capsys.readouterr().out)) == [], pool.name
