"""What is registered for the rows RP-35 to RP-45 of the reports about AKS."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from gpufleet.places.aks.plan import Counted, count_to_send

from tests.component.recording import TOKEN, Recorded, is_secret, run

GROUP = "6d0c1e2f-0a3b-4c5d-8e9f-112233445566"
_SUBNET = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
#: The kubeconfig that AKS hands out for a cluster with Entra.
WITH_ENTRA = f"""\
apiVersion: v1
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
contexts: [{{name: ctx, context: {{cluster: c, user: u}}}}]
current-context: ctx
users:
  - name: u
    user:
      exec:
        apiVersion: client.authentication.k8s.io/v1beta1
        command: kubelogin
        args: [get-token, --environment, AzurePublicCloud, --server-id, {TOKEN}, --client-id, c1, --tenant-id, t1,
               --login, devicecode]
"""


def stack(cluster: str, pool: str = "", more: str = "") -> str:
    return f"""\
config:
  gpufleet:cluster: {{kind: aks, {cluster}}}
  gpufleet:pools: [{{name: t4, vmSize: Standard_NC4as_T4_v3{pool}}}]
  gpufleet:stack: {{kind: plugin}}
{more}"""


MADE = "name: lab, location: eastus"


def registered(text: str, **azure: Any) -> Recorded:
    seen = run(text, **azure)
    assert seen.error is None, (seen.error, seen.messages)
    return seen


def test_rp_35_pools_alone_in_a_cluster_that_exists() -> None:
    cluster = f"existing: {{name: corp-aks, resourceGroup: rg-corp}}, network: {{subnetId: {_SUBNET}}}"
    seen = registered(stack(cluster, ', autoscale: {min: 0, max: 4}, taints: ["sku=gpu:NoSchedule"]'))
    made = [r.type for r in seen.resources if r.type.startswith("azure-native:")]
    assert made == ["azure-native:containerservice:AgentPool"]
    pool = seen.one("AgentPool")
    assert (pool.inputs["resourceGroupName"], pool.inputs["resourceName"]) == ("rg-corp", "corp-aks")
    assert pool.inputs["vnetSubnetID"] == _SUBNET
    assert "orchestratorVersion" not in pool.inputs
    assert pool.deleted_with == "" and not pool.protect
    provider = next(r for r in seen.resources if r.type == "pulumi:providers:kubernetes")
    assert is_secret(provider.inputs["kubeconfig"])
    assert provider.inputs["clusterIdentifier"] == "/id/corp-aks"
    assert TOKEN not in str([r.inputs for r in seen.resources if r.type != "pulumi:providers:kubernetes"])
    daemon = seen.one("DaemonSet")
    assert pool.urn in daemon.dependencies or daemon.provider.startswith(provider.urn)


@pytest.mark.parametrize(("credentials", "call"), [("user", "User"), ("admin", "Admin")])
def test_rp_35_the_kubeconfig_comes_from_the_service(credentials: str, call: str) -> None:
    seen = registered(stack(f"existing: {{name: corp, resourceGroup: rg}}, credentials: {credentials}"))
    asked = [args for name, args in seen.calls if name == f"listManagedCluster{call}Credentials"]
    assert [(a["resourceGroupName"], a["resourceName"]) for a in asked] == [("rg", "corp")]


def test_rp_36_pools_have_the_version_of_the_cluster() -> None:
    seen = registered(stack(f'{MADE}, version: "1.36"'))
    assert seen.one("AgentPool").inputs["orchestratorVersion"] == "1.36"
    cluster = seen.one("ManagedCluster")
    assert cluster.inputs["agentPoolProfiles"][0]["orchestratorVersion"] == "1.36"
    assert cluster.urn in seen.one("AgentPool").dependencies, "the pools follow the control plane"


def test_rp_36_a_pool_may_stay_behind() -> None:
    seen = registered(stack(f'{MADE}, version: "1.37"', ', version: "1.36"'))
    assert seen.one("AgentPool").inputs["orchestratorVersion"] == "1.36"
    assert "orchestratorVersion" not in registered(stack(MADE)).one("AgentPool").inputs


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ("upgradeChannel: none", ("none", "None")),
        ("tier: Free", ("none", "None")),
        ("upgradeChannel: patch", ("patch", "NodeImage")),
        ("upgradeChannel: none, nodeOsUpgradeChannel: SecurityPatch", ("none", "SecurityPatch")),
        ("upgradeChannel: stable, nodeOsUpgradeChannel: None", ("stable", "None")),
    ],
)
def test_rp_38_both_channels_are_sent(keys: str, sent: tuple[str, str]) -> None:
    profile = registered(stack(f"{MADE}, {keys}")).one("ManagedCluster").inputs["autoUpgradeProfile"]
    assert (profile["upgradeChannel"], profile["nodeOSUpgradeChannel"]) == sent


def test_rp_38_windows() -> None:
    nodes = '{day: Sunday, start: "22:00", hours: 6, utcOffset: "+08:00", everyWeeks: 2}'
    keys = f"upgradeChannel: patch, maintenance: {{nodes: {nodes}, cluster: {{day: Saturday, start: \"22:30\"}}}}"
    seen = registered(stack(f"{MADE}, {keys}"))
    windows = {r.inputs["configName"]: r.inputs["maintenanceWindow"] for r in seen.of("MaintenanceConfiguration")}
    assert windows == {
        "aksManagedAutoUpgradeSchedule": {
            "schedule": {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}},
            "startTime": "22:30",
            "durationHours": 4,
            "utcOffset": "+00:00",
        },
        "aksManagedNodeOSUpgradeSchedule": {
            "schedule": {"weekly": {"dayOfWeek": "Sunday", "intervalWeeks": 2}},
            "startTime": "22:00",
            "durationHours": 6,
            "utcOffset": "+08:00",
        },
    }
    assert {r.deleted_with for r in seen.of("MaintenanceConfiguration")} == {seen.one("ManagedCluster").urn}
    assert not registered(stack(MADE)).of("MaintenanceConfiguration")


@pytest.mark.parametrize(
    ("keys", "protected"),
    [
        ("environment: production", True),
        ("environment: staging", True),
        ("environment: dev", False),
        ("environment: production, protect: false", False),
        ("environment: dev, protect: true", True),
        ("tier: Free", False),
    ],
)
def test_rp_39_protected_by_environment(keys: str, protected: bool) -> None:
    seen = registered(stack(f"{MADE}, {keys}"))
    assert (seen.one("ManagedCluster").protect, seen.one("ResourceGroup").protect) == (protected, protected)


#: (autoscale of the file, what Azure has, count sent, whether the recorded count stays)
COUNTS = [
    ((1, 6), None, 1, True),
    ((1, 6), (4, 1, 6), 1, True),  # moved by the autoscaler: left alone
    ((3, 6), (1, 1, 6), 3, False),  # the minimum was raised
    ((3, 6), (5, 1, 6), 5, False),
    ((1, 4), (6, 1, 6), 4, False),  # the maximum was lowered
    ((1, 8), (6, 1, 6), 6, False),
    ((0, 4), (2, None, None), 2, False),  # had a fixed size
    ((3, 4), (2, None, None), 3, False),
]


@pytest.mark.parametrize(("bounds", "there", "count", "recorded"), COUNTS)
def test_rp_42_a_count_within_the_bounds(
    bounds: tuple[int, int], there: tuple[int, int | None, int | None] | None, count: int, recorded: bool
) -> None:
    low, high = bounds
    has = Counted(*there) if there else None
    assert count_to_send(low, high, has) == (count, recorded)
    text = stack(MADE, f", autoscale: {{min: {low}, max: {high}}}")
    name = registered(text).one("AgentPool").name
    pool = {name: {"count": has.count, "enableAutoScaling": has.min_count is not None, "minCount": has.min_count,
                   "maxCount": has.max_count}} if has else {}  # fmt: skip
    sent = registered(text, pools=pool).one("AgentPool")
    assert sent.inputs["count"] == count
    assert sent.ignore_changes == (("count",) if recorded else ())


def test_rp_42_the_system_pool_too() -> None:
    text = stack(f"{MADE}, systemPool: {{autoscale: {{min: 3, max: 5}}}}")
    there = {"count": 1, "enableAutoScaling": True, "minCount": 1, "maxCount": 5}
    raised = registered(text, pools={"system": there}).one("ManagedCluster")
    assert raised.inputs["agentPoolProfiles"][0]["count"] == 3 and raised.ignore_changes == ()
    same = registered(text, pools={"system": {**there, "minCount": 3, "count": 4}}).one("ManagedCluster")
    assert same.ignore_changes == ("agentPoolProfiles[0].count",)


def test_rp_43_entra_is_sent() -> None:
    keys = f"entra: {{adminGroups: [{GROUP}], azureRbac: true}}, disableLocalAccounts: true"
    sent = registered(stack(f"{MADE}, {keys}"), kubeconfig=WITH_ENTRA).one("ManagedCluster").inputs
    assert sent["aadProfile"] == {"managed": True, "adminGroupObjectIDs": [GROUP], "enableAzureRBAC": True}
    assert sent["disableLocalAccounts"] is True
    plain = registered(stack(MADE)).one("ManagedCluster").inputs
    assert "aadProfile" not in plain and "disableLocalAccounts" not in plain


@pytest.mark.parametrize(
    ("login", "kept"),
    [
        ("azurecli", ["--server-id", TOKEN]),
        ("workloadidentity", ["--server-id", TOKEN]),
        ("msi", ["--server-id", TOKEN]),
        ("spn", ["--server-id", TOKEN, "--client-id", "c1", "--tenant-id", "t1", "--environment", "AzurePublicCloud"]),
    ],
)
def test_rp_43_kubelogin_signs_in_without_a_person(login: str, kept: list[str]) -> None:
    """AKS hands out devicecode, which waits for one (pulumi/pulumi-azure-native#2399)."""
    keys = f"entra: {{}}, disableLocalAccounts: true, login: {login}"
    seen = registered(stack(f"{MADE}, {keys}"), kubeconfig=WITH_ENTRA)
    assert [args.get("format") for name, args in seen.calls if name.startswith("listManagedClusterUser")] == ["exec"]
    provider = next(r for r in seen.resources if r.type == "pulumi:providers:kubernetes")
    text = provider.inputs["kubeconfig"]
    assert is_secret(text)
    [user] = yaml.safe_load(text["value"])["users"]
    assert user["user"]["exec"]["args"] == ["get-token", "--login", login, *kept]


def test_rp_45_a_kept_node_has_a_managed_disk() -> None:
    kept = registered(stack(MADE, ", autoscale: {min: 0, max: 4}, scaleDownMode: Deallocate")).one("AgentPool")
    assert kept.inputs["osDiskType"] == "Managed"
    assert "osDiskType" not in registered(stack(MADE)).one("AgentPool").inputs
