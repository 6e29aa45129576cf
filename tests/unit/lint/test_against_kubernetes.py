"""For generated fleets and workloads lint has no error exactly where the pods run, by Kubernetes' own rules."""

from __future__ import annotations

import random
from typing import Any

import yaml
from gpufleet.findings.finding import Severity
from gpufleet.lint.stack import of_fleet

from tests.unit.config.samples import compile_data
from tests.unit.lint.cluster_model import cluster, runs
from tests.unit.lint.fleets import lint_pools
from tests.unit.lint.generated import fleet, pod

FLEETS, PODS = 60, 14


def deployment(template: dict[str, Any], replicas: int) -> str:
    inner = {"metadata": {"labels": {"app": "a"}}, "spec": template["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": inner}
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})


def test_lint_and_the_scheduler_agree_on_generated_fleets() -> None:
    chance = random.Random(20261203)
    compared = {True: 0, False: 0}
    fleets = 0
    while fleets < FLEETS:
        data = fleet(chance)
        compiled = compile_data(data)
        if compiled.plan is None or compiled.fleet is None:
            continue
        fleets += 1
        here, pools = cluster(compiled.plan, compiled.fleet), of_fleet(compiled.fleet)
        for _ in range(PODS):
            one, replicas = pod(chance, data), chance.choice((1, 1, 1, 2, 5, 9, 20))
            text = yaml.safe_dump(one) if replicas == 1 else deployment(one, replicas)
            wanted = runs(one, here, replicas)
            found = [d for d in lint_pools(pools, text) if d.severity is Severity.ERROR]
            assert (not found) == wanted, (
                f"the pod {'runs' if wanted else 'does not run'}; lint: {[(d.code, d.message) for d in found]}\n"
                f"{yaml.safe_dump(data)}\n{text}\n{here}"
            )
            compared[wanted] += 1
    print(f"{fleets} fleets, {compared[True]} workloads that run, {compared[False]} that do not")
    assert min(compared.values()) > 150  # the generator makes both
