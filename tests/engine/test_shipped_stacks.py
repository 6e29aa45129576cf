"""Every stack that is shipped: preview, up, again without change, refresh without diff, status agrees, destroy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpufleet.compiled import compile_file
from kubernetes import client

from twin.engine import Twin, make_project

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "twin" / "chart" / "gpu-operator"
SHIPPED = ("local", "aks-dev", "aks-prod", "idc")


@pytest.fixture
def nodes(twin: Twin, stack: str) -> Iterator[None]:
    """The machines of a stack on an existing cluster; a cloud makes its own."""
    plan = compile_file(ROOT / "stacks" / f"Pulumi.{stack}.yaml").plan
    assert plan is not None
    names = [(n, p.gpus_per_node, p.gpu) for p in plan.pools for n in p.nodes]
    for name, gpus, model in names:
        twin.add_node(name, gpus=gpus or 0, model=model or "")
    yield
    for name, _, _ in names:
        twin.remove_node(name)


def leftovers(twin: Twin) -> dict[str, list[str]]:
    """What of ours is in the cluster."""
    ours = "app.kubernetes.io/managed-by=gpufleet"
    api = twin.client()
    core, apps, node = client.CoreV1Api(api), client.AppsV1Api(api), client.NodeV1Api(api)
    found = {
        "namespaces": [n.metadata.name for n in core.list_namespace(label_selector=ours).items],
        "daemonSets": [d.metadata.name for d in apps.list_daemon_set_for_all_namespaces().items],
        "configMaps": [c.metadata.name for c in core.list_config_map_for_all_namespaces(label_selector=ours).items],
        "runtimeClasses": [r.metadata.name for r in node.list_runtime_class().items],
        "labelled nodes": [n.metadata.name for n in core.list_node(label_selector="gpufleet.dev/pool").items],
        "tainted nodes": [
            n.metadata.name
            for n in core.list_node().items
            if any(not t.key.startswith("node.kubernetes.io/") for t in n.spec.taints or ())
        ],
    }
    return {kind: names for kind, names in found.items() if names}


@pytest.mark.parametrize("stack", SHIPPED)
def test_life_of_a_shipped_stack(twin: Twin, tmp_path: Path, stack: str, nodes: None) -> None:
    text = (ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text()
    project = make_project(tmp_path / "project", {stack: text})
    env = {"GPUFLEET_OPERATOR_CHART": str(CHART)}

    preview = twin.pulumi(project, stack, "preview", **env).require()
    assert "to create" in preview.stdout
    assert leftovers(twin) == {}, "a preview changes nothing"

    twin.pulumi(project, stack, "up", timeout=420, **env).require()
    status = twin.gpufleet(project, "status", "-s", stack, "--wait", "90", "--json")
    answer = json.loads(status.stdout)
    assert status.rc == 0, status.stdout
    assert answer["agrees"]
    assert answer["nodes"]
    assert all(n["observed"] == n["declared"] for n in answer["nodes"])

    twin.pulumi(project, stack, "up", "--expect-no-changes", **env).require()
    twin.pulumi(project, stack, "refresh", "--expect-no-changes", **env).require()

    if "environment: production" in text:
        # With its preview, as people run it: without one the engine forgets what would go with the cluster.
        refused = twin.pulumi(project, stack, "destroy", "--yes", **env)
        assert refused.rc != 0 and "protect" in refused.stdout + refused.stderr
        twin.pulumi(project, stack, "up", "--expect-no-changes", **env).require()
        file = project / "stacks" / f"Pulumi.{stack}.yaml"
        protected = "environment: production"
        file.write_text(file.read_text().replace(protected, f"{protected}\n    protect: false"))
        twin.pulumi(project, stack, "up", **env).require()
    twin.pulumi(project, stack, "destroy", timeout=420, **env).require()
    left = json.loads(twin.pulumi(project, stack, "stack", "export").require().stdout)
    assert left["deployment"].get("resources", []) == []
    twin.wait(lambda: leftovers(twin) == {}, 30, f"nothing is left of {stack}")
