"""AKS as it is used: upgrades in order, a raised minimum, pools in a cluster that exists, sign-in with Entra."""

from __future__ import annotations

import json
from pathlib import Path

from tests.engine.test_cloud_options import azure, sections
from twin.engine import Twin, write_stack

GROUP = "6d0c1e2f-0a3b-4c5d-8e9f-112233445566"
MADE = {"kind": "aks", "name": "opt", "location": "eastus"}
T4 = {"name": "t4", "vmSize": "Standard_NC4as_T4_v3"}


def changes(twin: Twin, project: Path, since: int) -> list[tuple[str, str]]:
    lines = Path(twin.env(project)["TWIN_AZURE_LOG"]).read_text().splitlines()[since:]
    seen = [json.loads(line) for line in lines]
    return [(e["op"], e["type"]) for e in seen if e["op"] in ("create", "update", "delete")]


def logged(twin: Twin, project: Path) -> int:
    return len(Path(twin.env(project)["TWIN_AZURE_LOG"]).read_text().splitlines())


def test_rp_36_38_39_43_45_an_upgrade_in_order(twin: Twin, project: Path) -> None:
    """Control plane first, pools after it; channels, windows and sign-in are sent, and a second run changes nothing."""
    keys = {
        "environment": "dev",
        "entra": {"adminGroups": [GROUP]},
        "disableLocalAccounts": True,
        "maintenance": {"nodes": {"day": "Sunday", "start": "22:00"}},
        "nodeOsUpgradeChannel": "NodeImage",
    }
    kept = {**T4, "scaleDownMode": "Deallocate", "autoscale": {"min": 1, "max": 2}}
    write_stack(project, "opt", sections(cluster={**MADE, **keys, "version": "1.36"}, pools=[kept]))
    twin.pulumi(project, "opt", "up").require()
    twin.pulumi(project, "opt", "up", "--expect-no-changes").require()
    twin.pulumi(project, "opt", "refresh", "--expect-no-changes").require()
    before = logged(twin, project)
    write_stack(project, "opt", sections(cluster={**MADE, **keys, "version": "1.37"}, pools=[kept]))
    twin.pulumi(project, "opt", "up").require()
    assert changes(twin, project, before) == [("update", "ManagedCluster"), ("update", "AgentPool")]
    made = azure(twin, project).store.read()["resources"].values()
    assert {r["props"]["orchestratorVersion"] for r in made if r["kind"] == "AgentPool"} == {"1.37"}
    [cluster] = [r["props"] for r in made if r["kind"] == "ManagedCluster"]
    assert cluster["autoUpgradeProfile"] == {"upgradeChannel": "none", "nodeOSUpgradeChannel": "NodeImage"}
    assert cluster["aadProfile"]["adminGroupObjectIDs"] == [GROUP]
    assert [r["name"] for r in made if r["kind"] == "MaintenanceConfiguration"] == ["aksManagedNodeOSUpgradeSchedule"]
    twin.pulumi(project, "opt", "destroy").require()


def test_rp_42_a_minimum_is_raised(twin: Twin, project: Path) -> None:
    """A count that the autoscaler moved stays; with another minimum, one within the bounds is sent."""

    def stack(low: int, high: int) -> None:
        pool = {**T4, "autoscale": {"min": low, "max": high}}
        system = {"autoscale": {"min": low, "max": high}}
        write_stack(project, "opt", sections(cluster={**MADE, "systemPool": system}, pools=[pool]))

    def counts() -> set[int]:
        made = azure(twin, project).store.read()["resources"].values()
        return {r["props"]["count"] for r in made if r["kind"] == "AgentPool"}

    stack(1, 6)
    twin.pulumi(project, "opt", "up").require()
    stack(3, 6)
    twin.pulumi(project, "opt", "up").require()
    assert counts() == {3}
    with azure(twin, project).store.change() as state:
        for record in state["resources"].values():
            if record["kind"] == "AgentPool":
                record["props"]["count"] = 5
    twin.pulumi(project, "opt", "up", "--expect-no-changes").require()
    stack(2, 8)
    twin.pulumi(project, "opt", "up").require()
    assert counts() == {5}
    twin.pulumi(project, "opt", "destroy").require()


def test_rp_35_pools_in_a_cluster_of_somebody_else(twin: Twin, project: Path) -> None:
    service = azure(twin, project)
    service.put("ResourceGroup", {"resourceGroupName": "rg-corp", "location": "eastus"}, True)
    system = [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}]
    body = {"resourceGroupName": "rg-corp", "resourceName": "corp", "location": "eastus", "dnsPrefix": "corp"}
    body |= {"identity": {"type": "SystemAssigned"}, "kubernetesVersion": "1.36", "agentPoolProfiles": system}
    service.put("ManagedCluster", body, True)
    cluster = {"kind": "aks", "existing": {"name": "corp", "resourceGroup": "rg-corp"}}
    write_stack(project, "opt", sections(cluster=cluster, pools=[{**T4, "count": 1}]))
    twin.pulumi(project, "opt", "up").require()
    assert twin.gpufleet(project, "status", "-s", "opt", "--wait", "60").rc == 0
    twin.pulumi(project, "opt", "up", "--expect-no-changes").require()
    exported = json.loads(twin.pulumi(project, "opt", "stack", "export").require().stdout)
    types = [r["type"] for r in exported["deployment"]["resources"] if r["type"].startswith("azure-native:")]
    assert types == ["azure-native:containerservice:AgentPool"]
    twin.pulumi(project, "opt", "destroy").require()
    left = service.store.read()["resources"].values()
    assert sorted(r["name"] for r in left) == ["corp", "rg-corp", "system"], "the cluster stays as it was"
