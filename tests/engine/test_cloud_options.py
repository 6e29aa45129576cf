"""Existing resource group and subnet, own network, chart sources, and what a team's group may do."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from twin.azure.service import Service
from twin.azure.store import Store
from twin.engine import Twin, write_stack

CHART = Path(__file__).resolve().parents[2] / "twin" / "chart" / "gpu-operator"
SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-net/providers/Microsoft.Network"
    "/virtualNetworks/hub/subnets/gpu"
)


def sections(**changes: object) -> str:
    base = {
        "cluster": {"kind": "aks", "name": "opt", "location": "eastus"},
        "pools": [{"name": "t4", "vmSize": "Standard_NC4as_T4_v3", "count": 1}],
        "stack": {"kind": "plugin", "namespace": "opt-gpu"},
    }
    return yaml.safe_dump({"config": {f"gpufleet:{k}": v for k, v in {**base, **changes}.items()}})


def azure(twin: Twin, project: Path) -> Service:
    return Service(Store(Path(twin.env(project)["TWIN_AZURE_STATE"])), lambda: None)


def resources(twin: Twin, project: Path) -> dict[str, dict[str, object]]:
    state = json.loads(Path(twin.env(project)["TWIN_AZURE_STATE"]).read_text())
    found = state.get("resources", state)
    return {k: v for k, v in found.items() if isinstance(v, dict)}


def test_existing_group_and_subnet(twin: Twin, project: Path) -> None:
    azure(twin, project).put("ResourceGroup", {"resourceGroupName": "rg-shared", "location": "eastus"}, True)
    cluster = {
        "kind": "aks",
        "name": "opt",
        "location": "eastus",
        "resourceGroup": {"name": "rg-shared", "existing": True},
        "network": {"subnetId": SUBNET},
    }
    write_stack(project, "opt", sections(cluster=cluster))
    twin.pulumi(project, "opt", "up").require()
    made = resources(twin, project)
    pools = [v for k, v in made.items() if k.lower().endswith(tuple("0123456789abcdef")) and "agentPools/t4" in k]
    assert pools, sorted(made)
    assert SUBNET in json.dumps(pools), "the pool is in the subnet that was named"
    exported = json.loads(twin.pulumi(project, "opt", "stack", "export").require().stdout)
    types = {r["type"] for r in exported["deployment"]["resources"]}
    assert "azure-native:resources:ResourceGroup" not in types
    twin.pulumi(project, "opt", "destroy").require()
    assert any("rg-shared" in k for k in resources(twin, project)), "somebody else's group stays"


def test_own_network(twin: Twin, project: Path) -> None:
    cluster = {"kind": "aks", "name": "opt", "location": "eastus"}
    network = {"vnetCidr": "10.40.0.0/16", "subnetCidr": "10.40.0.0/20"}
    write_stack(project, "opt", sections(cluster={**cluster, "network": network}))
    twin.pulumi(project, "opt", "up").require()
    made = resources(twin, project)
    assert any(k.endswith("/subnets/snet-opt") for k in made), sorted(made)
    twin.pulumi(project, "opt", "up", "--expect-no-changes").require()
    twin.pulumi(project, "opt", "destroy").require()


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A chart repository on loopback with the stand-in chart."""
    folder = tmp_path / "charts"
    folder.mkdir()
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    archive = folder / f"gpu-operator-{version}.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(CHART, arcname="gpu-operator")
    entry = {
        "apiVersion": "v2",
        "name": "gpu-operator",
        "version": version,
        "urls": [archive.name],
        "digest": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }
    (folder / "index.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "entries": {"gpu-operator": [entry]}}))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("source", ["path", "mirror"])
def test_chart_sources(twin: Twin, project: Path, mirror: str, source: str) -> None:
    chart = {"path": str(CHART)} if source == "path" else {"repository": mirror}
    pool = {"name": "t4", "vmSize": "Standard_NC4as_T4_v3", "count": 1, "driver": "operator"}
    stack = {"kind": "operator", "namespace": "opt-gpu", "chart": chart}
    write_stack(project, "opt", sections(pools=[pool], stack=stack))
    twin.pulumi(project, "opt", "up", timeout=420, GPUFLEET_OPERATOR_CHART="").require()
    status = twin.gpufleet(project, "status", "-s", "opt", "--wait", "90")
    assert status.rc == 0, status.stdout
    twin.pulumi(project, "opt", "destroy", timeout=420, GPUFLEET_OPERATOR_CHART="").require()


def test_a_teams_group_owns_its_namespace_and_no_other(twin: Twin, project: Path) -> None:
    team = {"name": "ml", "namespace": "opt-ml", "pools": ["t4"], "group": "ml-engineers", "quota": {"gpu": 2}}
    write_stack(project, "opt", sections(teams=[team]))
    twin.pulumi(project, "opt", "up").require()
    api = client.AuthorizationV1Api(twin.client())

    def may(namespace: str, verb: str, resource: str, group: str = "ml-engineers") -> bool:
        attributes = {"namespace": namespace, "verb": verb, "resource": resource}
        review = {"spec": {"user": "ada", "groups": [group], "resourceAttributes": attributes}}
        return bool(api.create_subject_access_review(review).status.allowed)

    assert may("opt-ml", "create", "pods")
    assert not may("opt-ml", "create", "pods", group="others")
    assert not may("opt-gpu", "get", "pods")
    assert not may("opt-ml", "delete", "resourcequotas"), "a team cannot lift its own quota"
    twin.pulumi(project, "opt", "destroy").require()
