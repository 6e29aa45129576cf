"""The operator's Helm values: derived from the plan, accepted by the chart, not to be contradicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpufleet.plan.model import Plan
from gpufleet.routes.operator import DERIVED_PATHS
from hypothesis import given

from tests.unit.config.samples import compile_base, compile_data, told
from tests.unit.plan.strategies import CALM, stacks

#: Every value of GPU Operator v26.7.0 with all levels closed; where the real chart accepts anything, this refuses.
SCHEMA = json.loads(Path(__file__).parents[3].joinpath("twin/chart/gpu-operator/values.schema.json").read_text())
_KEYWORDS = {
    "$schema", "title", "definitions", "description", "type", "additionalProperties", "properties", "required",
    "items", "enum", "$ref",
}  # fmt: skip
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def problems(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """What JSON Schema (the words that this schema uses) has against a value."""
    assert set(schema) <= _KEYWORDS, f"{path}: a word that this check does not know"
    if "$ref" in schema:
        return problems(value, SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]], path)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r} is none of {schema['enum']}"]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    right = any(isinstance(value, _TYPES[k]) and (k == "boolean" or not isinstance(value, bool)) for k in kinds)
    if kinds and not right:
        return [f"{path}: {value!r} is no {' or '.join(kinds)}"]
    found = []
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{path}[{i}]")
    if isinstance(value, dict):
        found += [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
            if key in known:
                found += problems(item, known[key], f"{path}.{key}")
            elif other is False:
                found.append(f"{path}: the chart knows no {key}")
            elif isinstance(other, dict):
                found += problems(item, other, f"{path}.{key}")
    return found


def values_of(changes: dict[str, Any], base: str = "aks-operator") -> dict[str, Any]:
    return operator(changes, base).values


def operator(changes: dict[str, Any], base: str = "aks-operator") -> Any:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    assert compiled.plan.operator is not None
    return compiled.plan.operator


def at(values: Any, path: str) -> Any:
    for part in path.split("."):
        values = values[part]
    return values


@pytest.mark.parametrize(
    ("value", "schema", "count"),
    [
        ({"a": 1}, {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, 1),
        ({"b": 1}, {"type": "object", "properties": {"a": {}}, "additionalProperties": False}, 1),
        ({}, {"type": "object", "required": ["a"]}, 1),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, 1),
        (True, {"type": "integer"}, 1),
        ("x", {"enum": ["y"]}, 1),
        ({"a": "x"}, {"type": "object", "additionalProperties": {"type": "string"}}, 0),
    ],
)
def test_the_check_itself(value: Any, schema: dict[str, Any], count: int) -> None:
    assert len(problems(value, schema)) == count


@CALM
@given(stacks())
def test_the_chart_accepts_the_values_of_every_stack(stack: dict[str, Any]) -> None:
    stack["stack"]["kind"] = "operator"
    compiled = compile_data(stack)
    if compiled.plan is None:  # a selector that needs the operator's labels
        assert {code for code, _ in told(compiled)} & {"GF222", "GF223"}
        return
    assert compiled.plan.operator is not None
    assert problems(compiled.plan.operator.values, SCHEMA) == []


def test_the_chart_accepts_everything_at_once() -> None:
    values = values_of(
        {
            "sharing.half": {"strategy": "timeSlicing", "replicas": 2},
            "pools[0].sharing": "half",
            "pools[0].spot": True,
            "pools[0].vmSize": "Standard_NC24ads_A100_v4",
            "pools[0].driverBranch": "580",
            "stack.images": {"registry": "mirror.example.com/nvidia", "pullSecrets": ["regcred"]},
            "stack.values": {"driver": {"rdma": {"enabled": True}}, "dcgmExporter": {"hostPID": True}},
        }
    )
    assert problems(values, SCHEMA) == []


def test_sharing_is_named_with_an_explicit_default() -> None:
    """The chart's `default: ""` would leave nodes without a label unconfigured (NVIDIA/k8s-device-plugin#990)."""
    plan = operator({"sharing.half": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "half"})
    config = plan.values["devicePlugin"]["config"]
    assert config == {"name": plan.config_map.name, "default": "unshared"}
    assert plan.default_profile == "unshared"
    assert config["default"] in plan.config_map.data


def test_each_pool_is_bound_to_its_profile_by_label() -> None:
    compiled = compile_base(
        "aks-operator",
        {
            "sharing.half": {"strategy": "timeSlicing", "replicas": 2},
            "pools[0].sharing": "half",
            "pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "driver": "operator"},
            "pools[2]": {"name": "c", "vmSize": "Standard_NC4as_T4_v3", "driver": "none"},
        },
    )
    assert compiled.plan is not None
    label = "nvidia.com/device-plugin.config"
    assert [p.labels.get(label) for p in compiled.plan.pools] == ["half", "unshared", None]


def test_the_environment_must_not_beat_the_file() -> None:
    """The chart's default is `single`; the plugin takes it from its environment, which beats the file."""
    assert values_of({})["mig"] == {"strategy": "none"}
    assert values_of({})["migManager"] == {"enabled": False}


def test_the_exporter_follows_sharing() -> None:
    """Without the variable one of several pods on a GPU is shown (NVIDIA/dcgm-exporter#151)."""
    shared = {"sharing.half": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "half"}
    assert values_of(shared)["dcgmExporter"]["env"] == [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}]
    assert "dcgmExporter" not in values_of({})


def test_feature_discovery_runs_where_the_plan_predicts_its_labels() -> None:
    values = values_of({})
    assert (values["gfd"], values["nfd"]) == ({"enabled": True}, {"enabled": True})


def test_raw_values_are_passed_on_and_derived_ones_win_nothing() -> None:
    raw = {"driver": {"rdma": {"enabled": True}}, "ccManager": {"enabled": False}}
    values = values_of({"stack.values": raw})
    assert values["driver"] == {"enabled": True, "rdma": {"enabled": True}}
    assert values["ccManager"] == {"enabled": False}


@pytest.mark.parametrize("path", DERIVED_PATHS)
def test_no_raw_value_may_stand_where_the_plan_derives_one(path: str) -> None:
    compiled = compile_base("aks-operator", {f"stack.values.{path}": "x"})
    assert told(compiled) == [("GF220", f"stack.values.{path}")]


def test_a_map_that_covers_derived_values_is_refused_too() -> None:
    compiled = compile_base("aks-operator", {"stack.values": {"devicePlugin": {"config": {"name": "mine"}}}})
    assert told(compiled) == [("GF220", "stack.values.devicePlugin.config")]


def test_every_derived_value_is_protected() -> None:
    """What the plan sets differently for different stacks is what a raw value could contradict."""
    plain = values_of({})
    paths = {
        "driver.enabled", "toolkit.enabled", "operator.runtimeClass", "devicePlugin.enabled", "devicePlugin.config",
        "gfd.enabled", "nfd.enabled", "mig.strategy", "migManager.enabled", "daemonsets.tolerations", "toolkit.env",
        "node-feature-discovery.worker.tolerations",
        "cdi.enabled",  # may be stated; GF235 to GF238 look at it
    }  # fmt: skip

    def leaves(value: Any, path: tuple[str, ...] = ()) -> set[str]:
        if isinstance(value, dict) and ".".join(path) not in paths:
            return {leaf for key, item in value.items() for leaf in leaves(item, (*path, key))}
        return {".".join(path)}

    assert leaves(plain) == paths
    paths.remove("cdi.enabled")
    assert paths <= set(DERIVED_PATHS)


def test_the_release() -> None:
    plan = operator({})
    assert (plan.release, plan.chart, plan.repository, plan.version, plan.timeout_seconds, plan.namespace) == (
        "gpu-operator",
        "gpu-operator",
        "https://helm.ngc.nvidia.com/nvidia",
        "v26.7.0",
        900,
        "gpu-operator",
    )


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ({"chart": {"path": "/charts/gpu-operator.tgz"}}, {"chart": "/charts/gpu-operator.tgz", "repository": None}),
        ({"chart": {"repository": "oci://mirror"}}, {"chart": "gpu-operator", "repository": "oci://mirror"}),
        ({"timeoutSeconds": 1800}, {"timeout_seconds": 1800}),
        ({"namespace": "gpu"}, {"namespace": "gpu"}),
        ({"version": "v26.3.3"}, {"version": "v26.3.3"}),
    ],
)
def test_the_release_as_the_stack_wants_it(stack: dict[str, Any], expected: dict[str, Any]) -> None:
    plan = operator({f"stack.{k}": v for k, v in stack.items()})
    assert {k: getattr(plan, k) for k in expected} == expected


@pytest.mark.parametrize(
    ("changes", "more", "fewer"),
    [
        ({}, {"driver", "toolkit"}, {"migManager", "dcgm", "gds", "sandboxDevicePlugin"}),
        ({"pools[0].driver": "aks"}, set(), {"driver", "toolkit", "migManager"}),
        ({"stack.values": {"dcgm": {"enabled": True}, "gds": {"enabled": True}}}, {"dcgm", "gds"}, {"gdrcopy"}),
        ({"stack.values": {"sandboxWorkloads": {"enabled": True}}}, {"vfioManager", "sandboxDevicePlugin"}, {"gds"}),
    ],
)
def test_pull_secrets_reach_every_part_that_runs(changes: dict[str, Any], more: set[str], fewer: set[str]) -> None:
    """The validator runs in an init container of every operand: without its secret nothing starts."""
    values = values_of({"stack.images": {"pullSecrets": ["a", "b"]}, **changes})
    parts = {"operator", "validator", "devicePlugin", "gfd", "dcgmExporter"} | more
    assert {p: values[p].get("imagePullSecrets") for p in parts} == {p: ["a", "b"] for p in parts}
    assert values["node-feature-discovery"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert not [p for p in fewer if "imagePullSecrets" in values.get(p, {})]
    assert "imagePullSecrets" not in values.get("driver", {}).get("manager", {}), "it is in the driver's pod"
    assert problems(values, SCHEMA) == []


def test_pull_secrets_of_a_part_that_the_stack_names_itself_stay() -> None:
    changes = {"stack.images": {"pullSecrets": ["a"]}, "stack.values": {"toolkit": {"imagePullSecrets": ["own"]}}}
    assert values_of(changes)["toolkit"]["imagePullSecrets"] == ["own"]


def test_plugin_stacks_have_no_release() -> None:
    plan = compile_base("aks-plugin").plan
    assert isinstance(plan, Plan)
    assert plan.operator is None


def test_an_nfd_that_exists_is_used() -> None:
    """RP-16: the cluster's own feature discovery labels the nodes; the plan says what its workers must tolerate."""
    plan = operator({"stack.nfd": "existing", "pools[0].taints": ["sku=gpu:NoSchedule"]})
    assert plan.values["nfd"] == {"enabled": False}
    assert "node-feature-discovery" not in plan.values
    assert not [image for image in plan.images.known if "node-feature-discovery" in image.source]
    (line,) = [line for line in plan.lines() if "Node Feature Discovery: the cluster's own" in line]
    assert "sku=gpu:NoSchedule" in line
    assert values_of({})["nfd"] == {"enabled": True}


CUT = {"sharing.cut": {"strategy": "mig", "profile": "1g.10gb"}, "pools[0].sharing": "cut"}
REBOOT = {"name": "WITH_REBOOT", "value": "true"}


def test_nodes_of_a_cloud_restart_for_a_mig_mode() -> None:
    """RP-20: without it the MIG manager ends in state failed on an A100 of AKS."""
    changes = {**CUT, "pools[0].vmSize": "Standard_NC24ads_A100_v4"}
    plan = operator(changes)
    assert plan.values["migManager"]["env"] == [REBOOT]
    assert "  a node restarts when the MIG manager changes the mode of its GPUs" in plan.lines()
    own = [{"name": "A", "value": "b"}, {"name": "WITH_REBOOT", "value": "false"}]
    assert values_of({**changes, "stack.values.migManager.env": own})["migManager"]["env"] == [own[0], REBOOT]
    on_hosts = {**CUT, "pools[0].gpu": "A100-SXM4-80GB", "pools[0].driver": "operator"}
    assert "env" not in values_of(on_hosts, "existing-operator")["migManager"]


@pytest.mark.parametrize(("branch", "version"), [({"driverBranch": "580"}, "580"), ({}, "595")])
def test_precompiled_drivers_take_a_branch(branch: dict[str, str], version: str) -> None:
    """RP-15: their images are tagged with branch and kernel; a full version never resolves."""
    changes = {f"pools[0].{key}": value for key, value in branch.items()}
    values = values_of({**changes, "stack.values.driver.usePrecompiled": True})
    assert (values["driver"]["version"], values["driver"]["usePrecompiled"]) == (version, True)
