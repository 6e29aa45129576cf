"""What goes into the cluster: plugin, operator, node patches, teams."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from gpufleet.findings.finding import Severity
from gpufleet.parts.names import LAST_LABELS
from gpufleet.places.existing.in_use import other_route

from tests.component.recording import Resource, is_secret, run
from tests.component.stacks import EXISTING, OPERATOR, PLUGIN, TEXTS, plan_of, recorded
from tests.unit.config.samples import compile_text
from tests.unit.config.test_together import TEN_AKS, TEN_EXISTING


def daemon_sets(name: str) -> dict[str, Resource]:
    return {r.name: r for r in recorded(name).of("DaemonSet")}


def pod(resource: Resource) -> dict[str, Any]:
    spec: dict[str, Any] = resource.inputs["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("name", PLUGIN)
def test_one_daemon_set_per_profile_as_planned(name: str) -> None:
    plan = plan_of(name).plugin
    assert plan is not None
    found = daemon_sets(name)
    for planned in plan.daemon_sets:
        sent = found[planned.name]
        assert sent.inputs["metadata"]["name"] == planned.name
        assert sent.inputs["metadata"]["namespace"] == plan.namespace
        assert pod(sent).get("tolerations", []) == list(planned.tolerations)
        affinity = pod(sent)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert affinity["nodeSelectorTerms"] == list(planned.affinity)
        assert pod(sent).get("runtimeClassName") == planned.runtime_class
        assert {c["image"] for c in pod(sent)["containers"]} == {planned.image}
        labels = sent.inputs["spec"]["template"]["metadata"]["labels"]
        assert sent.inputs["spec"]["selector"]["matchLabels"] == labels
    beside = {f"gpufleet-mps-{d.profile}" for d in plan.daemon_sets if d.control_daemon}
    assert set(found) == {d.name for d in plan.daemon_sets} | beside


@pytest.mark.parametrize("name", PLUGIN)
def test_selectors_of_daemon_sets_pick_different_pods(name: str) -> None:
    picked = [json.dumps(r.inputs["spec"]["selector"], sort_keys=True) for r in daemon_sets(name).values()]
    assert len(picked) == len(set(picked))


@pytest.mark.parametrize("name", PLUGIN)
def test_the_configuration_is_mounted_as_a_folder(name: str) -> None:
    """A file mounted by subPath never changes, and an environment made from a ConfigMap is no file (plugin#615)."""
    plan = plan_of(name).plugin
    assert plan is not None
    maps = {d.profile: d.config_map for d in plan.daemon_sets}
    for sent in daemon_sets(name).values():
        spec = pod(sent)
        profile = sent.inputs["spec"]["template"]["metadata"]["labels"]["gpufleet.dev/profile"]
        volumes = {v["name"]: v for v in spec["volumes"]}
        assert volumes["config"] == {"name": "config", "configMap": {"name": maps[profile].name}}
        for container in spec["containers"]:
            mounts = {m["name"]: m for m in container["volumeMounts"]}
            file = PurePosixPath({e["name"]: e["value"] for e in container["env"]}["CONFIG_FILE"])
            assert PurePosixPath(mounts["config"]["mountPath"]) == file.parent
            assert file.name in maps[profile].data
            assert "envFrom" not in container
            assert set(mounts) <= set(volumes)
        everything = json.dumps(spec)
        assert "subPath" not in everything


@pytest.mark.parametrize("name", PLUGIN)
def test_the_plugin_passes_device_specs_and_registers_with_the_kubelet(name: str) -> None:
    for resource_name, sent in daemon_sets(name).items():
        container = pod(sent)["containers"][0]
        assert container["securityContext"] == {"privileged": True}
        assert pod(sent)["automountServiceAccountToken"] is False
        if resource_name.startswith("gpufleet-plugin-"):
            env = {e["name"]: e["value"] for e in container["env"]}
            assert env["PASS_DEVICE_SPECS"] == "true"
            sockets = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}["sockets"]
            assert sockets == "/var/lib/kubelet/device-plugins"


@pytest.mark.parametrize("name", TEXTS)
def test_config_maps_are_addressed_by_their_content(name: str) -> None:
    plan = plan_of(name)
    planned = {d.config_map.name: d.config_map.data for d in plan.plugin.daemon_sets} if plan.plugin else {}
    if plan.operator:
        planned[plan.operator.config_map.name] = plan.operator.config_map.data
    sent = {r.name: r.inputs for r in recorded(name).of("ConfigMap")}
    assert set(sent) == set(planned)
    for map_name, inputs in sent.items():
        assert inputs["metadata"]["name"] == map_name
        assert inputs["data"] == planned[map_name]
        assert inputs.get("immutable", False) is (plan.plugin is not None)


@pytest.mark.parametrize("name", TEXTS)
def test_the_other_route_is_recognised_by_what_this_one_deploys(name: str) -> None:
    labels = [r.inputs["metadata"]["labels"] for r in recorded(name).of("ConfigMap")]
    routes = {"plugin": PLUGIN[0], "operator": OPERATOR[0]}
    own = plan_of(name).route
    said = {route: [d.code for d in other_route(plan_of(routes[route]), labels)] for route in routes}
    assert said == {route: [] if route == own else ["GF452"] for route in routes}


@pytest.mark.parametrize("name", PLUGIN)
def test_a_daemon_set_comes_after_its_map_its_namespace_and_its_nodes(name: str) -> None:
    seen = recorded(name)
    namespace = next(r.urn for r in seen.of("Namespace") if r.name.startswith("namespace-"))
    nodes = {r.urn for r in (*seen.of("AgentPool"), *seen.of("NodePatch"))}
    by_name = {r.name: r.urn for r in seen.of("ConfigMap")}
    for sent in daemon_sets(name).values():
        own = by_name[next(v["configMap"]["name"] for v in pod(sent)["volumes"] if "configMap" in v)]
        assert {namespace, own} | nodes <= sent.dependencies


@pytest.mark.parametrize("name", OPERATOR)
def test_the_release(name: str) -> None:
    plan = plan_of(name).operator
    assert plan is not None
    release = recorded(name).one("Release")
    sent = release.inputs
    assert (sent["name"], sent["namespace"], sent["chart"]) == (plan.release, plan.namespace, plan.chart)
    assert (sent["atomic"], sent["cleanupOnFail"]) == (True, True)
    assert sent["timeout"] == plan.timeout_seconds >= 900
    assert sent["values"] == plan.values
    assert "skipAwait" not in sent
    assert "disableWebhooks" not in sent, "hooks run: they upgrade the CRDs"
    if plan.repository:
        assert (sent["version"], sent["repositoryOpts"]) == (plan.version, {"repo": plan.repository})
    else:
        assert not {"version", "repositoryOpts"} & set(sent)


@pytest.mark.parametrize("name", OPERATOR)
def test_labels_that_name_keys_come_after_the_release_that_mounts_them(name: str) -> None:
    """RP-46: the ConfigMap, the release that mounts it, then the labels; what keeps operands away comes first."""
    seen = recorded(name)
    release = seen.one("Release")
    before = {r.urn for r in seen.of("ConfigMap")}
    before |= {r.urn for r in seen.of("Namespace") if r.name.startswith("namespace-")}
    first = [r for r in seen.of("NodePatch") if r.name.endswith("-first")]
    last = [r for r in seen.of("NodePatch") if r not in first]
    assert before | {r.urn for r in first} <= release.dependencies
    for patch in first:
        assert not set(LAST_LABELS) & patch.labels.keys()
    for patch in last:
        assert patch.labels and patch.labels.keys() <= set(LAST_LABELS)
    for moved in (*last, *seen.of("AgentPool")):
        assert {release.urn} | before <= moved.dependencies
        assert moved.urn not in release.dependencies


def test_a_chart_that_stands_in_for_the_stack_files() -> None:
    seen = run(TEXTS["aks-mixed"], environment={"GPUFLEET_OPERATOR_CHART": "/charts/stand-in"})
    sent = seen.one("Release").inputs
    assert sent["chart"] == "/charts/stand-in"
    assert not {"version", "repositoryOpts"} & set(sent)


@pytest.mark.parametrize("name", TEXTS)
def test_namespaces_have_explicit_names(name: str) -> None:
    """A changed name replaces a namespace with all that is in it (AZ-34)."""
    plan = plan_of(name)
    own = plan.plugin.namespace if plan.plugin else plan.operator.namespace if plan.operator else ""
    found = {r.inputs["metadata"]["name"]: r.inputs["metadata"]["labels"] for r in recorded(name).of("Namespace")}
    assert set(found) == {own, *(t.namespace for t in plan.teams)}
    assert found[own]["pod-security.kubernetes.io/enforce"] == "privileged"
    for team in plan.teams:
        assert found[team.namespace]["gpufleet.dev/team"] == team.name
        assert "pod-security.kubernetes.io/enforce" not in found[team.namespace]


@pytest.mark.parametrize("name", EXISTING)
def test_patches_own_their_fields_only(name: str) -> None:
    """Labels and taints of the plan, nothing of the node's own; no taints, no claim on the list of taints."""
    plans = {node: p for p in plan_of(name).pools for node in p.nodes}
    assert recorded(name).node_labels() == {node: p.labels for node, p in plans.items()}
    last = {f"node-{node}" for node in plans} if plan_of(name).labels_last else set()
    for patch in recorded(name).of("NodePatch"):
        node = patch.inputs["metadata"]["name"]
        sent = {k: v for k, v in patch.inputs.items() if k not in ("apiVersion", "kind")}
        with_taints = bool(plans[node].taints) and patch.name not in last
        assert set(sent) == ({"metadata", "spec"} if with_taints else {"metadata"})
        assert set(sent["metadata"]) == {"name", "labels", "annotations"}
        assert sent["metadata"]["annotations"] == {"pulumi.com/patchForce": "true"}
        if with_taints:
            assert set(sent["spec"]) == {"taints"}
            texts = {
                f"{t['key']}{'=' + t['value'] if 'value' in t else ''}:{t['effect']}" for t in sent["spec"]["taints"]
            }
            assert texts == set(plans[node].taints)


def test_nodes_found_by_a_selector_are_not_patched() -> None:
    assert [r.name for r in recorded("secret").of("NodePatch")] == ["node-n1"]


@pytest.mark.parametrize(
    ("name", "made"),
    [("local", ["nvidia"]), ("mps", ["nvidia"]), ("secret", []), ("aks-dev", []), ("idc", []), ("aks-prod", [])],
)
def test_runtime_class(name: str, made: list[str]) -> None:
    found = recorded(name).of("RuntimeClass")
    assert [(r.inputs["metadata"]["name"], r.inputs["handler"]) for r in found] == [(m, m) for m in made]


def test_pull_secrets() -> None:
    spec = pod(next(iter(daemon_sets("aks-protected").values())))
    assert spec["imagePullSecrets"] == [{"name": "regcred"}]
    assert "imagePullSecrets" not in pod(next(iter(daemon_sets("aks-dev").values())))


def test_a_pull_secret_is_there_before_the_first_pod_pulls() -> None:
    """It comes from the stack's secret, stays secret in the state, and everything that pulls waits for it."""
    seen = recorded("aks-protected")
    (sent,) = seen.of("Secret")
    assert sent.inputs["metadata"]["name"] == "regcred" and sent.inputs["metadata"]["namespace"] == "gpu-plugin"
    assert sent.inputs["type"] == "kubernetes.io/dockerconfigjson"
    assert is_secret(sent.inputs["stringData"]) or is_secret(sent.inputs["stringData"][".dockerconfigjson"])
    assert all(sent.urn in r.dependencies for r in seen.of("DaemonSet"))
    operator = recorded("operator-login")
    (sent,) = operator.of("Secret")
    (release,) = operator.of("Release")
    assert sent.inputs["metadata"]["namespace"] == "gpu-operator" and sent.urn in release.dependencies
    assert release.inputs["values"]["driver"]["imagePullSecrets"] == ["login", "other"]


@pytest.mark.parametrize("name", TEXTS)
def test_teams(name: str) -> None:
    seen, plan = recorded(name), plan_of(name)
    quotas = {r.inputs["metadata"]["namespace"]: r.inputs["spec"]["hard"] for r in seen.of("ResourceQuota")}
    assert quotas == {t.namespace: t.quota for t in plan.teams if t.quota}
    bindings = {r.inputs["metadata"]["namespace"]: r.inputs for r in seen.of("RoleBinding")}
    assert set(bindings) == {t.namespace for t in plan.teams if t.group}
    for team in plan.teams:
        if team.group:
            sent = bindings[team.namespace]
            api = "rbac.authorization.k8s.io"
            assert sent["roleRef"] == {"apiGroup": api, "kind": "ClusterRole", "name": team.role}
            assert sent["subjects"] == [{"apiGroup": api, "kind": "Group", "name": team.group}]


@pytest.mark.parametrize("text", [TEN_AKS, TEN_EXISTING, "config: {}\n"])
def test_with_errors_nothing_is_registered_and_all_are_said(text: str) -> None:
    seen = run(text)
    expected = [d for d in compile_text(text).found if d.severity is Severity.ERROR]
    assert seen.resources == []
    said = [message.split()[1] for level, message in seen.messages if level == "error"]
    assert sorted(said) == sorted(d.code for d in expected)
    assert seen.error == f"test: {len(expected)} error{'s' if len(expected) > 1 else ''}. Nothing was changed."


def test_warnings_and_notes_have_their_level() -> None:
    levels = [(level, message.split()[1]) for level, message in recorded("aks-mixed").messages if " GF" in message[:9]]
    assert ("info", "GF423") in levels
    assert not [code for _, code in levels if code == "GF205"], "acknowledged"
    text = TEXTS["aks-mixed"].replace("  gpufleet:acknowledge", "  gpufleet:sharing2")
    text = text.replace("  gpufleet:sharing2: {GF205: somebody else looks after the pool}\n", "")
    levels = [(level, message.split()[1]) for level, message in run(text).messages if " GF" in message[:12]]
    assert ("warning", "GF205") in levels
