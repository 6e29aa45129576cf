"""What the service does with a body: checks, defaults, cascades, state, nodes.

Error codes and messages follow what users report of the real one; each check names its source in `pools.py`,
in `clusters.py`, or beside the rule here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from twin.advertiser.kube import Kube, KubeError

from . import clusters, constraints, nodes, pools
from .errors import ArmError, FailedStateError
from .faults import raise_planned
from .store import State, Store
from .wipe import wipe

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
TENANT = "11111111-1111-1111-1111-111111111111"
API_VERSIONS = {"ResourceGroup": "2025-04-01", "VirtualNetwork": "2024-05-01", "Subnet": "2024-05-01",
                "ManagedCluster": "2025-09-01", "AgentPool": "2025-09-01", "MaintenanceConfiguration": "2025-09-01"}
TYPES = {"ResourceGroup": "Microsoft.Resources/resourceGroups", "VirtualNetwork": "Microsoft.Network/virtualNetworks",
         "Subnet": "Microsoft.Network/virtualNetworks/subnets",
         "ManagedCluster": "Microsoft.ContainerService/managedClusters",
         "AgentPool": "Microsoft.ContainerService/managedClusters/agentPools",
         "MaintenanceConfiguration": "Microsoft.ContainerService/managedClusters/maintenanceConfigurations"}
CHILDREN = ("Subnet", "AgentPool", "MaintenanceConfiguration")  # resources below another one
# properties which address a resource; they are no part of its body
PATH_PARAMETERS = {"ResourceGroup": ["resourceGroupName"],
                   "VirtualNetwork": ["resourceGroupName", "virtualNetworkName"],
                   "Subnet": ["resourceGroupName", "virtualNetworkName", "subnetName"],
                   "ManagedCluster": ["resourceGroupName", "resourceName"],
                   "AgentPool": ["resourceGroupName", "resourceName", "agentPoolName"],
                   "MaintenanceConfiguration": ["resourceGroupName", "resourceName", "configName"]}
NEW_POOL = ("A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed through managed "
            "cluster operations.")  # message form: pulumi/pulumi-azure-native#579


def arm_id(kind: str, props: dict[str, Any]) -> str:
    """The ARM id that the path parameters in `props` name."""
    names = [str(props[key]) for key in PATH_PARAMETERS[kind]]
    out = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{names[0]}"
    if kind == "ResourceGroup":
        return out
    provider, *segments = TYPES[kind].split("/")
    return out + f"/providers/{provider}" + "".join(f"/{s}/{n}" for s, n in zip(segments, names[1:], strict=True))


def parent_id(kind: str, ident: str) -> str | None:
    """The resource that has to exist before this one."""
    if kind == "ResourceGroup":
        return None
    return ident.rsplit("/", 2)[0] if kind in CHILDREN else ident.split("/providers/", maxsplit=1)[0]


class Service:
    """The subscription. `kube` answers a client of the cluster's API server, or None where there is none."""

    def __init__(self, store: Store, kube: Callable[[], Kube | None]) -> None:
        self.store = store
        self.kube = kube

    # --- reading

    def get(self, ident: str) -> dict[str, Any] | None:
        """The resource as a GET shows it, or None."""
        return view(self.store.read(), ident)

    def credentials(self, group: str, name: str, admin: bool, kubeconfig: str) -> dict[str, Any]:
        ident = arm_id("ManagedCluster", {"resourceGroupName": group, "resourceName": name})
        raise_planned("invoke", "ManagedCluster", name)
        cluster = self.get(ident)
        if cluster is None:
            raise _not_found(ident)
        if admin and cluster.get("disableLocalAccounts"):
            raise ArmError("BadRequest", "Getting static credential is not allowed because this cluster is set to "
                                         "disable local accounts.")  # AKS docs, manage-local-accounts
        return {"kubeconfigs": [{"name": "clusterAdmin" if admin else "clusterUser", "value": kubeconfig}]}

    # --- writing

    def put(self, kind: str, props: dict[str, Any], create: bool) -> dict[str, Any]:
        """Create or replace; the answer is the resource. Raises ArmError (FailedStateError: it exists, but failed)."""
        ident, name = arm_id(kind, props), str(props[PATH_PARAMETERS[kind][-1]])
        body = {key: value for key, value in props.items() if key not in PATH_PARAMETERS[kind] and value is not None}
        with self.store.change() as state:
            before = json.loads(json.dumps(_find(state, ident)))
            if create and before:
                raise ArmError("ResourceExists", f"cannot create already existing resource '{ident}'", status=409)
            if not create and not before:
                raise _not_found(ident)
            parent = parent_id(kind, ident)
            if parent and not _find(state, parent):
                raise _no_parent(kind, parent)
            for path, value, allowed in constraints.enum_failures(kind, body):
                raise ArmError("InvalidParameter", f"The value '{value}' of property '{path}' is invalid, allowed are: "
                                                   f"{', '.join(allowed)}.", f"properties.{path}")
            cluster_id, plan = self._apply(state, kind, name, ident, body, before)
            failure: FailedStateError | None = None
            try:
                raise_planned("create" if create else "update", kind, name)
            except FailedStateError as error:
                failure = error
            state["resources"][ident]["props"]["provisioningState"] = "Failed" if failure else "Succeeded"
        if failure:
            raise failure
        self._sync(cluster_id, plan, ident if create else None)
        answer = self.get(ident)
        assert answer is not None
        return answer

    def _apply(self, state: State, kind: str, name: str, ident: str, body: dict[str, Any],
               before: dict[str, Any] | None) -> tuple[str, list[tuple[dict[str, Any] | None, dict[str, Any]]]]:
        """Change the state; answers the cluster and its (pool before, pool after) pairs, for the nodes."""
        old = before["props"] if before else None
        if kind == "AgentPool":
            cluster_id = ident.rsplit("/", 2)[0]
            cluster = _find(state, cluster_id)["props"]  # type: ignore[index]
            pools.refuse_bad(name, body, cluster["location"], old)
            asked = body.get("orchestratorVersion")
            version = clusters.pool_version(name, asked, cluster["kubernetesVersion"], old)
            body = {**body, "orchestratorVersion": version}
            if old and body.get("enableAutoScaling") and "count" not in body:
                body = {**body, "count": min(max(old["count"], body["minCount"]), body["maxCount"])}
            new = pools.effective(name, body)
            _keep_one_system_pool(state, cluster_id, name, new)
            _write(state, ident, kind, name, new)
            return cluster_id, [(old, new)]
        if kind == "ManagedCluster":
            inline = {pool["name"]: pool for pool in body.pop("agentPoolProfiles", None) or []}
            clusters.refuse_bad(name, body, inline, old)
            version = body.get("kubernetesVersion") or (old or {}).get("kubernetesVersion") or clusters.MINORS[-2]
            plan = []
            for pool_name, profile in inline.items():
                pool_id = f"{ident}/agentPools/{pool_name}"
                pool_before = (_find(state, pool_id) or {}).get("props")
                if old and not pool_before:
                    raise ArmError("BadRequest", NEW_POOL, "agentPoolProfiles")
                pool_body = {key: value for key, value in profile.items() if key != "name" and value is not None}
                pools.refuse_bad(pool_name, pool_body, body["location"], pool_before)
                asked = pool_body.get("orchestratorVersion")
                pool_body["orchestratorVersion"] = clusters.pool_version(pool_name, asked, version, pool_before)
                new_pool = pools.effective(pool_name, pool_body)
                _write(state, pool_id, "AgentPool", pool_name, {**new_pool, "provisioningState": "Succeeded"})
                plan.append((pool_before, new_pool))
            group = ident.split("/")[4]
            extra = {"nodeResourceGroup": f"MC_{group}_{name}_{body['location']}", "dnsPrefix": name,
                     "fqdn": f"{body.get('dnsPrefix', name)}-12345678.hcp.{body['location']}.azmk8s.io",
                     "kubernetesVersion": version, "enableRBAC": True}
            new = {**extra, **body, "powerState": {"code": "Running"},
                   "autoUpgradeProfile": clusters.upgrade_profile(body)}
            new["currentKubernetesVersion"] = clusters.patch_version(new["kubernetesVersion"])
            _write(state, ident, kind, name, new)
            return ident, plan
        if kind == "MaintenanceConfiguration":
            clusters.refuse_bad_window(name, body)
        if kind in ("ResourceGroup", "VirtualNetwork") and not body.get("location"):
            raise ArmError("LocationRequired", f"The location property is required for {TYPES[kind]}.")
        _write(state, ident, kind, name, body)
        return "", []

    def _sync(self, cluster_id: str, plan: list[tuple[dict[str, Any] | None, dict[str, Any]]],
              created: str | None) -> None:
        cluster = (_find(self.store.read(), cluster_id) or {}).get("props", {})
        try:
            kube = self.kube() if plan else None
            if kube:
                for old, new in plan:
                    nodes.sync(kube, cluster_id, cluster, old, new)
        except KubeError as error:
            if created:
                with self.store.change() as state:
                    _drop(state, created)
            raise ArmError("InternalOperationError", f"The nodes could not be made: {error}", status=500) from error

    def delete(self, ident: str, force: bool = False) -> None:
        """Delete a resource and what lies below it; one that is gone already is no error.

        `force` stands for somebody who deletes behind the program's back: no planned failure, no last-pool rule.
        """
        with self.store.change() as state:
            found = _find(state, ident)
            if not found:
                return
            if not force:
                raise_planned("delete", found["kind"], found["name"])
                if found["kind"] == "AgentPool":
                    _keep_one_system_pool(state, ident.rsplit("/", 2)[0], found["name"], None)
            gone = _drop(state, ident)
            clusters = [record for record in state["resources"].values() if record["kind"] == "ManagedCluster"]
        names = [nodes.node_name(pool_id.rsplit("/", 2)[0], record["name"], index)
                 for pool_id, record in gone.items() if record["kind"] == "AgentPool"
                 for index in range(pools.node_count(record["props"]))]
        # another cluster of the subscription lives in the same API server: its objects are not to be touched
        ended = not clusters and any(record["kind"] == "ManagedCluster" for record in gone.values())
        if names or ended:
            try:
                kube = self.kube()
                if kube:
                    nodes.remove(kube, names)
                if kube and ended:
                    wipe(kube)
            except KubeError as error:
                message = f"The nodes could not be removed: {error}"
                raise ArmError("InternalOperationError", message, status=500) from error


def view(state: State, ident: str) -> dict[str, Any] | None:
    """What a GET answers: properties, name, type, id-like computed values.

    A cluster's agentPoolProfiles shows its System pools. The real service lists User pools there too; leaving
    them out keeps a refresh quiet for programs which, as they should, declare only the system pool inline.
    """
    found = _find(state, ident)
    if not found:
        return None
    kind, out = found["kind"], dict(found["props"])
    if kind == "ManagedCluster":
        out["agentPoolProfiles"] = [
            {**pool["props"], "provisioningState": "Succeeded"} for pool_id, pool in sorted(state["resources"].items())
            if pool_id.startswith(f"{ident}/agentPools/") and pool["props"]["mode"] == "System"]
        out["maxAgentPools"] = 100
    if kind == "AgentPool":
        out["typePropertiesType"] = out.pop("type", None)
        out["currentOrchestratorVersion"] = clusters.patch_version(out["orchestratorVersion"])
        out["nodeImageVersion"] = "AKSUbuntu-2404gen2containerd-202611.15.0"
        out["powerState"] = {"code": "Running"}
    out |= {"name": found["name"], "type": TYPES[kind], "azureApiVersion": API_VERSIONS[kind]}
    return out


def _keep_one_system_pool(state: State, cluster_id: str, name: str, new: dict[str, Any] | None) -> None:
    others = any(record["props"]["mode"] == "System" for ident, record in state["resources"].items()
                 if ident.startswith(f"{cluster_id}/agentPools/") and record["name"] != name)
    if not others and not (new and new["mode"] == "System"):
        raise ArmError("OperationNotAllowed", "There has to be at least one system node pool in the cluster.",
                       status=409)


def _find(state: State, ident: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = state["resources"].get(ident)
    return found


def _write(state: State, ident: str, kind: str, name: str, props: dict[str, Any]) -> None:
    state["resources"][ident] = {"kind": kind, "name": name, "props": props}


def _drop(state: State, ident: str) -> dict[str, Any]:
    gone = {key: state["resources"][key] for key in list(state["resources"])
            if key == ident or key.startswith(ident + "/")}
    for key in gone:
        del state["resources"][key]
    return gone


def _not_found(ident: str) -> ArmError:
    _, _, _, group, _, what = ident.strip("/").split("/", 5) if "/providers/" in ident else ["", "", "", "", "", ident]
    message = f"The Resource '{what}' under resource group '{group}' was not found."
    return ArmError("ResourceNotFound", message, status=404)


def _no_parent(kind: str, parent: str) -> ArmError:
    if kind in CHILDREN:
        message = (f"Failed to perform 'write' on resource(s) of type '{TYPES[kind]}', because the parent resource "
                   f"'{parent.partition('/providers/')[2]}' could not be found.")
        return ArmError("ParentResourceNotFound", message, status=404)
    group = parent.rpartition("/")[2]
    return ArmError("ResourceGroupNotFound", f"Resource group '{group}' could not be found.", status=404)
