"""Options of every resource: provider, parents, paths, what goes with the cluster, what is protected, secrets."""

from __future__ import annotations

import re
import sys
import typing
from typing import Any

import pytest
from pulumi._types import input_type_types
from pulumi_azure_native import containerservice as aks

from tests.component.recording import KUBECONFIG, SIGNATURE, TOKEN, Recorded, in_clear, is_secret, run
from tests.component.stacks import AKS, EXISTING, TEXTS, recorded

AgentPoolArgs = sys.modules[aks.AgentPool.__module__].AgentPoolArgs  # not exported; importing it breaks lazy loading
ManagedClusterArgs = sys.modules[aks.ManagedCluster.__module__].ManagedClusterArgs
#: Arguments of the SDK by resource type; their keys are the engine's own (camelCase) names.
ARGUMENTS = {
    "azure-native:containerservice:AgentPool": AgentPoolArgs,
    "azure-native:containerservice:ManagedCluster": ManagedClusterArgs,
}


def arguments_in(hint: Any) -> Any:
    """The class of arguments in a type hint, looking through lists, unions and inputs."""
    if isinstance(hint, type) and hint.__name__.endswith("Args"):
        return hint
    return next((found for a in typing.get_args(hint) if (found := arguments_in(a)) is not None), None)


def property_exists(cls: Any, path: str) -> bool:
    """Whether a path such as `agentPoolProfiles[0].count` names a property of the SDK's arguments."""
    for part in path.split("."):
        name = re.sub(r"\[\d+\]$", "", part)
        types = input_type_types(cls) if cls is not None else {}
        if name not in types:
            return False
        cls = arguments_in(types[name])
    return True


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("count", True),
        ("gpuProfile.driver", True),
        ("gpu_profile.driver", False),
        ("gpuProfile.drivr", False),
        ("Count", False),
        ("osDiskSizeGB", True),
        ("osDiskSizeGb", False),
    ],
)
def test_the_check_of_paths_itself(path: str, exists: bool) -> None:
    assert property_exists(AgentPoolArgs, path) is exists


@pytest.mark.parametrize("name", TEXTS)
def test_option_paths_are_camel_case_names_of_the_sdk(name: str) -> None:
    """The SDK hands nested snake_case paths on as they are, and the engine matches nothing with them (AZ-13)."""
    for resource in recorded(name).resources:
        for path in (*resource.ignore_changes, *resource.replace_on_changes):
            assert "_" not in path, (resource.name, path)
            assert property_exists(ARGUMENTS[resource.type], path), (resource.name, path)


@pytest.mark.parametrize("name", AKS)
def test_only_counts_that_an_autoscaler_moves_are_ignored(name: str) -> None:
    seen = recorded(name)
    for pool in seen.of("AgentPool"):
        assert pool.ignore_changes == (("count",) if pool.inputs.get("enableAutoScaling") else ())
    cluster = seen.one("ManagedCluster")
    scaled = cluster.inputs["agentPoolProfiles"][0].get("enableAutoScaling")
    assert cluster.ignore_changes == (("agentPoolProfiles[0].count",) if scaled else ())


@pytest.mark.parametrize("name", TEXTS)
def test_every_kubernetes_object_has_the_explicit_provider(name: str) -> None:
    """Without it the object would go to whatever cluster the runner's kubeconfig points at."""
    seen = recorded(name)
    providers = [r for r in seen.resources if r.type == "pulumi:providers:kubernetes"]
    assert len(providers) == 1
    objects = [r for r in seen.resources if r.kubernetes]
    assert objects
    assert {r.provider for r in objects} == {f"{providers[0].urn}::/id/cluster"}
    assert not [r for r in seen.resources if r.custom and not r.kubernetes and r.provider]


@pytest.mark.parametrize("name", TEXTS)
def test_everything_has_a_parent(name: str) -> None:
    """Components hold what belongs together: custom resources are children of one, the existing provider aside."""
    seen = recorded(name)
    components = {r.urn: r.type for r in seen.resources if not r.custom}
    assert all(re.fullmatch(r"gpufleet:[a-z]+:[A-Z][A-Za-z]+", kind) for kind in components.values())
    for resource in seen.resources:
        if resource.custom and not (resource.type.startswith("pulumi:providers:") and name in EXISTING):
            assert resource.parent in components, resource.name
    assert set(seen.outputs) >= set(components), "register_outputs ends each component"


@pytest.mark.parametrize("name", TEXTS)
def test_logical_names_are_unique_per_type(name: str) -> None:
    names = [(r.type, r.name) for r in recorded(name).resources]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", AKS)
def test_all_in_the_cluster_goes_with_the_cluster(name: str) -> None:
    """A destroy after the cluster is gone would hang on objects that cannot be reached (AZ-35)."""
    seen = recorded(name)
    cluster = seen.one("ManagedCluster").urn
    for resource in seen.resources:
        inside = resource.kubernetes or resource.type.endswith((":AgentPool", ":MaintenanceConfiguration"))
        assert resource.deleted_with == (cluster if inside else ""), resource.name


@pytest.mark.parametrize("name", EXISTING)
def test_a_cluster_of_others_takes_nothing_along(name: str) -> None:
    assert {r.deleted_with for r in recorded(name).resources} == {""}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_protected(name: str) -> None:
    """Clusters, their groups and namespaces, where the stack file or its environment says so; nothing else ever."""
    said = "protect: true" in TEXTS[name] or "environment: production" in TEXTS[name]
    wanted = {"ManagedCluster", "ResourceGroup", "Namespace"} if said else set()
    for resource in recorded(name).resources:
        assert resource.protect == (resource.type.rpartition(":")[2] in wanted), resource.name


def test_protection_is_seen_at_all() -> None:
    kinds = {r.type.rpartition(":")[2] for n in ("aks-mixed", "secret") for r in recorded(n).resources if r.protect}
    assert kinds == {"ManagedCluster", "ResourceGroup", "Namespace"}


@pytest.mark.parametrize("name", AKS)
def test_slow_resources_have_time(name: str) -> None:
    seen = recorded(name)
    for pool in seen.of("AgentPool"):
        assert pool.timeouts == {"create": "90m", "update": "90m", "delete": "60m"}
    assert seen.one("ManagedCluster").timeouts == {"create": "60m", "update": "90m", "delete": "60m"}


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_deleted_before_it_is_replaced(name: str) -> None:
    assert not any(r.delete_before_replace for r in recorded(name).resources)


def _provider(seen: Recorded) -> dict[str, Any]:
    return next(r.inputs for r in seen.resources if r.type == "pulumi:providers:kubernetes")


@pytest.mark.parametrize("name", TEXTS)
def test_the_provider_is_never_replaced_by_a_new_kubeconfig(name: str) -> None:
    """With an identifier that stays, a changed kubeconfig does not replace all that is deployed."""
    inputs = _provider(recorded(name))
    expected = {"local": "local", "idc": "idc-bj", "secret": "barn", "local-chart": "idc", "mps": "idc",
                "operator-login": "idc"}  # fmt: skip
    if name in EXISTING:
        assert inputs["clusterIdentifier"] == expected[name]
    else:
        assert inputs["clusterIdentifier"] == recorded(name).exports["clusterId"]
    assert inputs["enableServerSideApply"] in (True, "true")
    # ConfigMaps without `immutable` change in place: only those are without it that keep keys for a while.
    assert inputs["enableConfigMapMutable"] in (True, "true")
    assert inputs.get("context") == ("ctx" if name == "secret" else None)


@pytest.mark.parametrize("name", TEXTS)
def test_the_kubeconfig_is_secret_wherever_it_goes(name: str) -> None:
    seen = recorded(name)
    given = _provider(seen)["kubeconfig"]
    assert is_secret(given)
    assert given["value"] == KUBECONFIG
    holders = [o for o in (seen.exports, *seen.outputs.values()) if "kubeconfig" in o]
    assert len(holders) == (2 if name in AKS else 0)
    assert all(is_secret(o["kubeconfig"]) for o in holders)


@pytest.mark.parametrize("name", TEXTS)
def test_no_part_of_a_secret_is_in_clear_or_in_a_message(name: str) -> None:
    seen = recorded(name)
    clear = [in_clear(r.inputs) for r in seen.resources]
    clear += [in_clear(o) for o in (*seen.outputs.values(), seen.exports)]
    clear += [message for _, message in seen.messages]
    assert not [c for c in clear if TOKEN in c]
    assert any(SIGNATURE in str(r.inputs) for r in seen.resources)


def test_a_kubeconfig_that_cannot_be_used_is_named_and_not_shown() -> None:
    text = TEXTS["local-chart"].replace("path: idc.conf", "path: idc.conf, context: none")
    seen = run(text)
    assert seen.error is not None
    assert "idc.conf: it has no context none (there are: ctx)" in seen.error
    assert TOKEN not in str(seen)
    assert not seen.resources


def test_the_variable_that_names_another_kubeconfig() -> None:
    seen = run(TEXTS["local-chart"], environment={"GPUFLEET_KUBECONFIG": "/nowhere/k.conf"})
    assert seen.error is not None
    assert "/nowhere/k.conf: No such file or directory" in seen.error
    assert not seen.resources


@pytest.mark.parametrize("name", TEXTS)
def test_stack_outputs_say_what_nodes_offer(name: str) -> None:
    seen = recorded(name)
    pools = seen.exports["pools"]
    assert all({"eachNodeOffers", "sharing", "driver", "taints"} <= set(p) for p in pools.values())
    azure = {r.name for r in seen.of("AgentPool")}
    assert {p["azureName"] for p in pools.values() if "azureName" in p} == azure
