"""Sharing profiles: the text that the plugin reads, ConfigMaps by content, memory."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from gpufleet.parts.names import config_map_name, content_hash
from gpufleet.plan.model import Plan
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.config.samples import compile_base, told
from tests.unit.plan.strategies import CALM

HALF = {"sharing.half": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "half"}
THIRD = {
    "sharing.third": {"strategy": "timeSlicing", "replicas": 3},
    "pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "sharing": "third"},
}


def plan_of(base: str, changes: dict[str, Any]) -> Plan:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def maps(plan: Plan) -> dict[str, str]:
    """Profile -> name of its ConfigMap."""
    assert plan.plugin is not None
    return {d.profile: d.config_map.name for d in plan.plugin.daemon_sets}


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ({"strategy": "none"}, {"version": "v1"}),
        (
            {"strategy": "timeSlicing", "replicas": 4},
            {
                "version": "v1",
                "sharing": {
                    "timeSlicing": {
                        "renameByDefault": False,
                        "failRequestsGreaterThanOne": True,
                        "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
                    }
                },
            },
        ),
        (
            {
                "strategy": "timeSlicing",
                "replicas": 10,
                "renameByDefault": True,
                "failRequestsGreaterThanOne": False,
            },
            {
                "version": "v1",
                "sharing": {
                    "timeSlicing": {
                        "renameByDefault": True,
                        "failRequestsGreaterThanOne": False,
                        "resources": [{"name": "nvidia.com/gpu", "replicas": 10}],
                    }
                },
            },
        ),
    ],
)
def test_the_text_that_the_plugin_reads(profile: dict[str, Any], text: dict[str, Any]) -> None:
    plan = plan_of("aks-plugin", {"sharing.p": profile, "pools[0].sharing": "p"})
    assert plan.plugin is not None
    data = plan.plugin.daemon_sets[0].config_map.data
    assert list(data) == ["config.yaml"]
    assert yaml.safe_load(data["config.yaml"]) == text
    assert plan.profiles[0].config == data["config.yaml"]


def test_whole_gpus_have_a_configuration_as_well() -> None:
    plan = plan_of("aks-plugin", {})
    assert [(p.name, p.strategy, p.pods_per_device, p.resources) for p in plan.profiles] == [
        ("unshared", "none", 1, ("nvidia.com/gpu",))
    ]
    assert maps(plan) == {"unshared": "gpufleet-unshared-ffa1ef05"}


def test_names_of_config_maps_are_stable() -> None:
    """A new release of gpufleet must not roll every plugin there is: these names are in users' clusters."""
    profile = {"sharing.notebooks": {"strategy": "timeSlicing", "replicas": 4}, "pools[0].sharing": "notebooks"}
    assert maps(plan_of("aks-plugin", profile)) == {"notebooks": "gpufleet-notebooks-43573892"}


def test_only_profiles_in_use_are_deployed() -> None:
    spare = {"sharing.spare": {"strategy": "timeSlicing", "replicas": 7}}
    assert set(maps(plan_of("aks-plugin", {**HALF, **spare}))) == {"half"}


def test_one_daemon_set_for_all_pools_of_a_profile() -> None:
    plan = plan_of(
        "aks-plugin", {**HALF, "pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "sharing": "half"}}
    )
    assert plan.plugin is not None
    assert [(d.name, d.pools) for d in plan.plugin.daemon_sets] == [("gpufleet-plugin-half", ("b", "t4"))]
    assert plan.plugin.daemon_sets[0].affinity == (
        {"matchExpressions": [{"key": "gpufleet.dev/pool", "operator": "In", "values": ["b", "t4"]}]},
    )


def test_pools_by_selector_are_bound_by_their_selector() -> None:
    by_selector = {"name": "b", "nodeSelector": {"x.io/y": "z", "a": "b"}, "gpu": "T4", "gpusPerNode": 1}
    plan = plan_of("existing-plugin", {"pools[1]": by_selector})
    assert plan.plugin is not None
    assert plan.plugin.daemon_sets[0].affinity == (
        {"matchExpressions": [{"key": "gpufleet.dev/pool", "operator": "In", "values": ["t4"]}]},
        {
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["b"]},
                {"key": "x.io/y", "operator": "In", "values": ["z"]},
            ]
        },
    )


def test_a_change_renames_the_map_of_that_profile_and_no_other() -> None:
    before = maps(plan_of("aks-plugin", {**HALF, **THIRD}))
    after = maps(plan_of("aks-plugin", {**HALF, **THIRD, "sharing.half.replicas": 8}))
    assert before["half"] != after["half"]
    assert before["third"] == after["third"]
    assert all(re.fullmatch(r"gpufleet-(half|third)-[0-9a-f]{8}", n) for n in (*before.values(), *after.values()))


def test_taints_and_memory_promises_are_no_content() -> None:
    before = maps(plan_of("aks-plugin", HALF))
    other = {"sharing.half.memoryPerPodGib": 2, "pools[0].taints": ["a:NoSchedule"]}
    assert maps(plan_of("aks-plugin", {**HALF, **other})) == before


def test_the_operator_gets_one_map_with_a_key_per_profile() -> None:
    third = {**THIRD, "pools[1].driver": "operator"}
    plan = plan_of("aks-operator", {**HALF, **third})
    assert plan.operator is not None
    config = plan.operator.config_map
    assert list(config.data) == ["half", "third", "unshared"]
    assert config.name == config_map_name("sharing", config.data)
    changed = plan_of("aks-operator", {**HALF, **third, "sharing.half.replicas": 8})
    assert changed.operator is not None
    assert changed.operator.config_map.name != config.name
    assert changed.operator.config_map.data["third"] == config.data["third"]


@CALM
@given(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=4))
def test_the_hash_is_of_the_content_alone(data: dict[str, str]) -> None:
    again = dict(reversed(data.items()))
    assert config_map_name("p", data) == config_map_name("p", again)
    assert config_map_name("p", {**data, "more": "x"}) != config_map_name("p", data)
    assert re.fullmatch(r"[0-9a-f]{8}", content_hash(data))


@pytest.mark.parametrize(
    ("changes", "memory"),
    [
        ({}, 15.0),  # a T4 of 16 GB shows 15360 MiB
        (HALF, 7.5),
        ({**HALF, "sharing.half.replicas": 4}, 3.75),
        ({"pools[0].vmSize": "Standard_NC24ads_A100_v4"}, 80.0),
        ({"pools[0].vmSize": "Standard_NC8ads_A10_v4"}, 22.49),
        ({"pools[0].driver": "none"}, None),
    ],
)
def test_memory_that_a_pod_may_count_on(changes: dict[str, Any], memory: float | None) -> None:
    assert plan_of("aks-plugin", changes).pools[0].node.memory_per_pod_gib == memory
