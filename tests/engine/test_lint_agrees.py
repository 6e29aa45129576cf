"""`gpufleet lint --stack` has no error exactly where the real scheduler and the stand-in of the plugin run a pod.

Generated pods go to the API server one after the other. What the scheduler says is compared with the model of
`tests/unit/lint/cluster_model.py`, and lint with what that makes of the pod. So the model, which also judges hundreds
of fleets without a cluster, is held against the real thing here.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.compiled import compile_file
from gpufleet.findings.finding import Severity
from gpufleet.lint.stack import of_fleet
from kubernetes import client

from tests.engine.workloads import unschedulable
from tests.unit.lint.cluster_model import Cluster, cluster, runs, schedulable
from tests.unit.lint.fleets import lint_pools
from tests.unit.lint.generated import pod
from twin.engine import Twin, stack_file, write_stack

PODS = 40
POOLS = """\
    - {name: gold, hosts: {lint-a: {}, lint-b: {}}, gpu: T4, gpusPerNode: 2, labels: {tier: "1"}OWNER}
    - {name: silver, hosts: {lint-c: {}}, gpu: T4, gpusPerNode: 2, sharing: ts, labels: {tier: "2"}OWNER}
    - {name: h100, hosts: {lint-d: {}}, gpu: T4, gpusPerNode: 1, sharing: renamed, taints: ["team=ml:NoSchedule"]OWNER}
    - {name: many, hosts: {lint-e: {}}, gpu: T4, gpusPerNode: 1, sharing: many, taints: ["dedicated:NoExecute"]OWNER}
    - {name: own, hosts: {lint-f: {}}, gpu: T4, gpusPerNode: 4, taints: ["nvidia.com/gpu=present:NoSchedule"]OWNER}
"""
STACK = """\
config:
  gpufleet:cluster: {kind: existing, name: lint, site: lint, kubeconfig: {path: kubeconfig, context: twin}}
  gpufleet:pools:
POOLS
  gpufleet:stack: {kind: ROUTE}
  gpufleet:sharing:
    ts: {strategy: timeSlicing, replicas: 4}
    renamed: {strategy: timeSlicing, replicas: 2, renameByDefault: true}
    many: {strategy: timeSlicing, replicas: 3, failRequestsGreaterThanOne: false}
"""
NODES = {"lint-a": 2, "lint-b": 2, "lint-c": 2, "lint-d": 1, "lint-e": 1, "lint-f": 4}


@pytest.fixture
def machines(twin: Twin) -> Iterator[None]:
    for name, gpus in NODES.items():
        twin.add_node(name, gpus=gpus, model="T4")
    yield
    for name in NODES:
        twin.remove_node(name)


def outcome(twin: Twin, one: dict[str, Any]) -> str:
    """`refused` by the API server, `pending` for good, or the pool on whose node it runs."""
    name = one["metadata"]["name"]
    body = copy.deepcopy(one)
    body["spec"]["terminationGracePeriodSeconds"] = 0
    for container in (*body["spec"].get("initContainers", ()), *body["spec"]["containers"]):
        limits = container["resources"]["limits"]  # the client takes quantities as text
        container["resources"]["limits"] = {resource: str(number) for resource, number in limits.items()}
    try:
        twin.core.create_namespaced_pod("default", body)
    except client.ApiException as error:
        assert error.status in (403, 404, 422), error.body
        return "refused"

    def decided() -> str | None:
        found = twin.core.read_namespaced_pod(name, "default")
        if found.status.phase == "Running":
            return str(twin.core.read_node(found.spec.node_name).metadata.labels.get("gpufleet.dev/pool", "none"))
        return "pending" if unschedulable(twin, name) else None

    try:
        return twin.wait(decided, 30, f"{name} runs or is told that it fits nowhere") or ""
    finally:
        twin.core.delete_namespaced_pod(name, "default", grace_period_seconds=0)
        twin.wait(lambda: not _there(twin, name), 20, f"{name} is gone")


def _there(twin: Twin, name: str) -> bool:
    return any(p.metadata.name == name for p in twin.core.list_namespaced_pod("default").items)


@pytest.mark.parametrize("route", ["plugin", "operator"])
def test_lint_says_what_the_scheduler_does(twin: Twin, project: Path, machines: None, route: str) -> None:
    owner = ", driver: operator" if route == "operator" else ""
    text = STACK.replace("POOLS\n", POOLS.replace("OWNER", owner)).replace("ROUTE", route)
    write_stack(project, "lint", text)
    twin.pulumi(project, "lint", "up").require()
    status = twin.gpufleet(project, "status", "-s", "lint", "--wait", "60")
    assert status.rc == 0, status.stdout + status.stderr

    compiled = compile_file(stack_file(project, "lint"))
    assert compiled.plan is not None and compiled.fleet is not None
    here, pools = cluster(compiled.plan, compiled.fleet), of_fleet(compiled.fleet)
    data = {k.removeprefix("gpufleet:"): v for k, v in yaml.safe_load(text)["config"].items()}
    chance, seen = random.Random(624), {"runs": 0, "does not": 0}
    for i in range(PODS):
        one = pod(chance, data, f"lint-{i}")
        said = yaml.safe_dump(one)
        real = outcome(twin, one)
        assert real in expected(one, here), f"the cluster: {real}\n{said}"
        found = [(d.code, d.message) for d in lint_pools(pools, said) if d.severity is Severity.ERROR]
        wanted = runs(one, here)
        assert (not found) == wanted, f"the pod {'runs' if wanted else 'does not run'}; lint: {found}\n{said}"
        if not found:
            assert real not in ("refused", "pending")
        seen["runs" if wanted else "does not"] += 1
    print(f"{route}: {seen}")
    assert min(seen.values()) > 5
    twin.pulumi(project, "lint", "destroy").require()


def expected(one: dict[str, Any], here: Cluster) -> set[str]:
    """What the cluster may do with a pod, by the model."""
    name = one["spec"].get("runtimeClassName")
    if name is not None and name not in here.classes:
        return {"refused"}
    return {node.pool for node in schedulable(one, here)} or {"pending"}
