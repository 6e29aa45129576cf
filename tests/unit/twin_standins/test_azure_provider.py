"""The provider protocol in front of the service: what the engine gets to see."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2
from pulumi.runtime.proto import provider_pb2 as proto

from tests.unit.twin_standins.bodies import CLUSTER, GROUP, POOL
from twin.azure import wire
from twin.azure.provider import Provider

URN = "urn:pulumi:dev::p::azure-native:{}::{}"
KINDS = {"ResourceGroup": "resources:ResourceGroup", "ManagedCluster": "containerservice:ManagedCluster",
         "AgentPool": "containerservice:AgentPool"}


class AbortError(Exception):
    pass


class Context:
    trailing: Any = ()

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise AbortError(details)

    def set_trailing_metadata(self, pairs: Any) -> None:
        self.trailing = pairs


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Provider:
    monkeypatch.setenv("TWIN_AZURE_STATE", str(tmp_path / "azure.json"))
    monkeypatch.setenv("TWIN_AZURE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("TWIN_AZURE_CONTROL", str(tmp_path / "control.json"))
    monkeypatch.delenv("TWIN_KUBECONFIG", raising=False)
    return Provider()


def urn(kind: str, name: str = "x") -> str:
    return URN.format(KINDS[kind], name)


def check(provider: Provider, kind: str, props: dict[str, Any], name: str = "x", olds: dict[str, Any] | None = None,
          ) -> tuple[dict[str, Any], list[str]]:
    answer = provider.Check(proto.CheckRequest(urn=urn(kind, name), news=wire.encode(props), randomSeed=b"abcd",
                                               olds=wire.encode(olds or {})), Context())
    return wire.decode(answer.inputs)[0], [failure.reason for failure in answer.failures]


def create(provider: Provider, kind: str, props: dict[str, Any], preview: bool = False) -> Any:
    request = proto.CreateRequest(urn=urn(kind), properties=wire.encode(props), preview=preview)
    return provider.Create(request, Context())


def diff(provider: Provider, kind: str, old: dict[str, Any], new: dict[str, Any]) -> Any:
    request = proto.DiffRequest(urn=urn(kind), old_inputs=wire.encode(old), news=wire.encode(new))
    return provider.Diff(request, Context())


@pytest.mark.parametrize(("kind", "changes", "reason"), [
    ("AgentPool", {"agentPoolName": "My-Pool"}, "does not match expression"),
    ("AgentPool", {"resourceName": None}, "missing required property 'resourceName'"),
    ("AgentPool", {"gpuProfile": {"drivr": "None"}}, "unknown property 'gpuProfile.drivr' of AgentPool, did you mean "
                                                     "'gpuProfile.driver'"),
    ("AgentPool", {"nodeTaint": []}, "did you mean 'nodeTaints'"),
    ("AgentPool", {"count": "1"}, "'count' should be of type int, got str"),
    ("AgentPool", {"nodeLabels": {"a": 1}}, "'nodeLabels.a' should be of type str"),
    ("AgentPool", {"upgradeSettings": {"drainTimeoutInMinutes": 0}}, "range of 1 to 1440"),
    ("ManagedCluster", {"agentPoolProfiles": [{"name": "System"}]}, "'agentPoolProfiles[0].name' does not match"),
])
def test_check_refuses(provider: Provider, kind: str, changes: dict[str, Any], reason: str) -> None:
    props = {**{"AgentPool": POOL, "ManagedCluster": CLUSTER}[kind], **changes}
    _, reasons = check(provider, kind, {key: value for key, value in props.items() if value is not None})
    assert [one for one in reasons if reason in one], reasons


def test_check_reports_all_at_once_and_leaves_enums_to_the_service(provider: Provider) -> None:
    _, reasons = check(provider, "AgentPool", {**POOL, "agentPoolName": "A", "vmsize": "x", "osType": "linux"})
    assert len(reasons) == 2


def test_names_that_the_provider_gives(provider: Provider) -> None:
    pool = {key: value for key, value in POOL.items() if key != "agentPoolName"}
    assert check(provider, "AgentPool", pool, "t4")[0]["agentPoolName"] == "t4"
    group, _ = check(provider, "ResourceGroup", {"location": "eastus"}, "group")
    assert group["resourceGroupName"] == "group61626364"
    again, _ = check(provider, "ResourceGroup", {"location": "eastus"}, "group", {"resourceGroupName": "group00000000"})
    assert again["resourceGroupName"] == "group00000000"


def test_diff_replaces_what_the_real_provider_replaces_and_nothing_else(provider: Provider) -> None:
    answer = diff(provider, "AgentPool", POOL, {**POOL, "vmSize": "Standard_NC8as_T4_v3"})
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["vmSize"], True)
    for change in ({"gpuProfile": {"driver": "None"}}, {"maxPods": 30}, {"scaleSetPriority": "Spot"}, {"count": 2}):
        answer = diff(provider, "AgentPool", POOL, {**POOL, **change})
        assert (answer.changes, list(answer.replaces)) == (proto.DiffResponse.DIFF_SOME, []), change
        assert not answer.deleteBeforeReplace
    nested = diff(provider, "AgentPool", {**POOL, "gpuProfile": {"driver": "Install"}},
                  {**POOL, "gpuProfile": {"driver": "None"}})
    assert list(nested.detailedDiff) == ["gpuProfile.driver"]
    cluster = diff(provider, "ManagedCluster", CLUSTER, {**CLUSTER, "networkProfile": {"networkPlugin": "none"}})
    assert list(cluster.replaces) == []  # the whole profile is new; only its members are in the list
    cluster = diff(provider, "ManagedCluster", {**CLUSTER, "networkProfile": {"networkPlugin": "azure"}},
                   {**CLUSTER, "networkProfile": {"networkPlugin": "none"}})
    assert list(cluster.replaces) == ["networkProfile"]
    assert diff(provider, "AgentPool", POOL, POOL).changes == proto.DiffResponse.DIFF_NONE


def test_a_preview_touches_nothing_and_knows_only_the_inputs(provider: Provider, tmp_path: Path) -> None:
    values, _ = wire.decode(create(provider, "AgentPool", POOL, preview=True).properties)
    assert values["vmSize"] == "Standard_NC4as_T4_v3"
    assert isinstance(values["name"], wire.Unknown)
    assert isinstance(values["provisioningState"], wire.Unknown)
    assert not (tmp_path / "azure.json").exists()


def test_secrets_stay_wrapped_and_out_of_the_log(provider: Provider, tmp_path: Path) -> None:
    tags = {"plain": "1", "token": {wire.SIGNATURE: wire.SECRET, "value": "hush-hush"}}
    made = create(provider, "ResourceGroup", {**GROUP, "tags": tags})
    values, secrets = wire.decode(made.properties)
    assert values["tags"] == {"plain": "1", "token": "hush-hush"}
    assert secrets == {("tags", "token")}
    log = (tmp_path / "log").read_text()
    assert "hush-hush" not in log
    assert json.loads(log)["body"]["tags"] == {"plain": "1", "token": "[secret]"}


def test_read_shows_no_drift_then_drift_then_nothing(provider: Provider) -> None:
    create(provider, "ResourceGroup", GROUP)
    create(provider, "ManagedCluster", CLUSTER)
    made = create(provider, "AgentPool", {**POOL, "nodeTaints": ["sku=gpu:NoSchedule"]})
    inputs = {**POOL, "nodeTaints": ["sku=gpu:NoSchedule"]}

    def read() -> Any:
        return provider.Read(proto.ReadRequest(id=made.id, urn=urn("AgentPool"), properties=made.properties,
                                               inputs=wire.encode(inputs)), Context())

    assert read().properties == made.properties
    assert wire.decode(read().inputs)[0] == inputs
    provider.service.put("AgentPool", {**inputs, "nodeTaints": ["other=1:NoSchedule"], "tags": {"by": "hand"}}, False)
    assert wire.decode(read().inputs)[0] == {**inputs, "nodeTaints": ["other=1:NoSchedule"]}
    provider.service.delete(made.id, force=True)
    assert read().id == ""


def test_import_states_what_a_program_may_state(provider: Provider) -> None:
    create(provider, "ResourceGroup", GROUP)
    create(provider, "ManagedCluster", CLUSTER)
    made = create(provider, "AgentPool", POOL)
    answer = provider.Read(proto.ReadRequest(id=made.id, urn=urn("AgentPool")), Context())
    inputs, _ = wire.decode(answer.inputs)
    assert POOL.items() <= inputs.items()
    assert check(provider, "AgentPool", inputs)[1] == []


def test_a_failed_resource_reaches_the_engine_with_its_state(provider: Provider, tmp_path: Path) -> None:
    create(provider, "ResourceGroup", GROUP)
    create(provider, "ManagedCluster", CLUSTER)
    (tmp_path / "control.json").write_text(json.dumps({"fail": [{"type": "AgentPool", "leaves": "failed"}]}))
    context = Context()
    with pytest.raises(AbortError):
        provider.Create(proto.CreateRequest(urn=urn("AgentPool"), properties=wire.encode(POOL)), context)  # type: ignore
    [(key, data)] = context.trailing
    status = status_pb2.Status.FromString(data)
    failed = proto.ErrorResourceInitFailed()
    assert key == "grpc-status-details-bin"
    assert status.details[0].Unpack(failed)
    assert failed.id.endswith("/agentPools/t4")
    assert wire.decode(failed.properties)[0]["provisioningState"] == "Failed"


def invoke(provider: Provider, call: str, **args: str) -> dict[str, Any]:
    request = proto.InvokeRequest(tok=f"azure-native:containerservice:{call}", args=wire.encode(args))
    answer = provider.Invoke(request, Context())
    return wire.decode(getattr(answer, "return"))[0]


def test_credentials(provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("kind: Config # very private")
    provider.service.kube = lambda: None
    monkeypatch.setenv("TWIN_KUBECONFIG", str(kubeconfig))
    args = {"resourceGroupName": "rg", "resourceName": "aks"}
    with pytest.raises(AbortError, match="was not found"):
        invoke(provider, "listManagedClusterUserCredentials", **args)
    create(provider, "ResourceGroup", GROUP)
    create(provider, "ManagedCluster", {**CLUSTER, "disableLocalAccounts": True, "aadProfile": {"managed": True}})
    answer = invoke(provider, "listManagedClusterUserCredentials", **args)
    assert base64.b64decode(answer["kubeconfigs"][0]["value"]).decode() == kubeconfig.read_text()
    with pytest.raises(AbortError, match="disable local accounts"):
        invoke(provider, "listManagedClusterAdminCredentials", **args)
    log = (tmp_path / "log").read_text()
    assert "very private" not in log
    assert answer["kubeconfigs"][0]["value"] not in log


def test_an_unusable_kubeconfig_is_a_clean_error(provider: Provider, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWIN_KUBECONFIG", str(tmp_path / "none"))
    create(provider, "ResourceGroup", GROUP)
    with pytest.raises(AbortError, match='Status=500 Code="InternalOperationError"'):
        create(provider, "ManagedCluster", CLUSTER)
    assert "ManagedCluster" not in (tmp_path / "azure.json").read_text()


def test_an_existing_group(provider: Provider) -> None:
    with pytest.raises(AbortError, match="ResourceGroupNotFound"):
        invoke(provider, "getResourceGroup", resourceGroupName="rg")
    create(provider, "ResourceGroup", GROUP)
    answer = invoke(provider, "getResourceGroup", resourceGroupName="rg")
    assert (answer["name"], answer["location"]) == ("rg", "eastus")
    assert answer["id"].endswith("/resourceGroups/rg")
