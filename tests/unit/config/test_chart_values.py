"""Values of the operator's chart in a stack file, whatever they look like."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from gpufleet.catalog.charts import GPU_OPERATOR, chart_tables
from gpufleet.findings.finding import Severity
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.config.samples import compile_base, compile_data, compile_text, sections, stack_text, the_one, told

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 700), st.text(max_size=3), st.floats(), st.just(date.min))
TABLE = chart_tables(GPU_OPERATOR)[0]


def anything(depth: int) -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=2),
            st.dictionaries(st.one_of(st.text(max_size=3), st.sampled_from(["enabled", "env", "config"])), inner,
                            max_size=2),
        ),
        max_leaves=depth,
    )  # fmt: skip


def at(path: str, value: Any) -> Any:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


PLACES = sorted({p.rpartition(".")[0] or p for p in TABLE.paths} | set(TABLE.paths) | {"node-feature-discovery.worker"})


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), anything(6), st.sampled_from(["existing-operator", "aks-operator"]), st.booleans())
def test_no_value_ends_in_an_internal_error(path: str, value: Any, base: str, mirror: bool) -> None:
    """RP-78: any shape at any place of the chart is a finding or does no harm."""
    data = sections(base)
    data["stack"]["values"] = at(path, value)
    if mirror:
        data["stack"]["images"] = {"registry": "mirror/x", "pullSecrets": ["a"]}
    compiled = compile_data(data)
    assert (compiled.plan is None) == any(d.severity is Severity.ERROR for d in compiled.found)


@pytest.mark.parametrize("key", ["1", "1.5", "true", "2026-01-01", "null", "[a]"])
@pytest.mark.parametrize("place", ["values: {%s: x}", "values: {driver: {%s: x}}", "values: {operator: {nodeSelector: "
                                   "{%s: x, b: c}}}"])  # fmt: skip
def test_keys_that_are_no_texts(key: str, place: str) -> None:
    text = stack_text(sections("aks-operator")).replace("kind: operator", "kind: operator\n    " + place % key)
    compiled = compile_text(text)
    assert compiled.plan is not None or told(compiled)


def values(given: Any, **stack: Any) -> Any:
    return compile_base("aks-operator", {"stack.values": given, **{f"stack.{k}": v for k, v in stack.items()}})


def test_two_slips_of_the_pen_are_two_findings() -> None:
    """RP-14."""
    compiled = values({"driver": {"usePrecompield": True, "rdma": {"enable": True}}})
    assert [(d.path, d.closest) for d in compiled.found] == [
        ("stack.values.driver.usePrecompield", "usePrecompiled"),
        ("stack.values.driver.rdma.enable", "enabled"),
    ]
    assert compiled.failed


@pytest.mark.parametrize("given", [{"driver": True}, {"devicePlugin": [1]}, {"toolkit": "on"}, {"daemonsets": 1}])
def test_a_place_that_the_plan_writes_to_is_a_map(given: Any) -> None:
    """RP-78, in every release of the chart."""
    (name,) = given
    for version in ("v26.7.0", "v26.3.3", "v25.10.1"):
        found = the_one(values(given, version=version), "GF251")
        assert found.path == f"stack.values.{name}"
        assert found.message == "A map is expected here." and f"{name}: {{" in found.remedy


def test_gpu_cluster_excludes_the_cluster_policy() -> None:
    """RP-13."""
    found = the_one(values({"gpuCluster": {"deployCR": True}}), "GF252")
    assert "excludes the ClusterPolicy, on which this route rests" in found.reason
    assert found.severity is Severity.ERROR


def test_each_release_has_keys_of_its_own() -> None:
    assert told(values({"draDriver": {"version": "v1"}}, version="v26.3.3")) == [
        ("GF250", "stack.values.draDriver"),
        ("GF221", "stack.version"),
    ]
    assert told(values({"gpuCluster": {"deployCR": True}}, version="v26.3.3"))[0][0] == "GF250"
    only_old = {"operator": {"initContainer": {"image": "cuda"}}}
    assert told(values(only_old, version="v26.3.3")) == [("GF221", "stack.version")]
    assert told(values(only_old)) == [("GF250", "stack.values.operator.initContainer")]


def test_a_release_without_a_table_is_not_guessed() -> None:
    given = {"driver": {"usePrecompield": True}, "somethingNew": {"a": [1]}}
    assert told(values(given, version="v27.1.0")) == [("GF221", "stack.version"), ("GF253", "stack.version")]
    assert told(values({}, version="v27.1.0")) == [("GF221", "stack.version")]


#: Keys that the chart's templates read and its values.yaml lacks; and whatever stands below open places.
READ = [
    {"dcgmExporter": {"imagePullSecrets": ["a"], "args": ["-f"], "config": {"name": "metrics"}}},
    {"dcgmExporter": {"hpcJobMapping": {"enabled": True, "directory": "/a"}, "podLabelAllowlistRegex": ["a.*"]}},
    {"dcgm": {"imagePullSecrets": ["a"]}},
    {"driver": {"args": ["a"], "licensingConfig": {"configMapName": "l"}, "livenessProbe": {"periodSeconds": 9}}},
    {"driver": {"startupProbe": {"successThreshold": 1}, "upgradePolicy": {"maxUnavailable": 1}}},
    {"driver": {"manager": {"imagePullSecrets": ["a"]}, "resources": {"limits": {"cpu": 1}}}},
    {"validator": {"version": "v1", "cuda": {"env": [{"name": "A", "value": "b"}]}}},
    {"operator": {"version": "v1", "labels": {"a": "b"}, "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}},
    {"operator": {"metrics": {"serviceMonitor": {"enabled": True}}, "affinity": {}, "annotations": {"a/b": "c"}}},
    {"nodeStatusExporter": {"enabled": True, "version": "v1", "env": []}},
    {"hostPaths": {"kubeletRootDir": "/var/lib/k0s/kubelet"}, "fullnameOverride": "gpu"},
    {"daemonsets": {"labels": {"a": "b"}, "podSecurityContext": {"runAsUser": 0}}},
    {"node-feature-discovery": {"worker": {"config": {"core": {"sleepInterval": "60s"}}}}},
    {"node-feature-discovery": {"worker": {"extraEnvs": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}}},
    {"global": {"imagePullSecrets": [{"name": "a"}]}, "extraObjects": [{"kind": "Secret"}]},
]


@pytest.mark.parametrize("given", READ, ids=str)
def test_what_the_templates_read_is_no_mistake(given: dict[str, Any]) -> None:
    assert told(values(given)) == []


def test_every_default_of_the_chart_is_a_right_value() -> None:
    """A stack file that repeats what the chart says anyway."""
    for path, value in TABLE.paths.items():
        if value.default not in (None, "") and not path.startswith(("kataManager", "draDriver", "cdi")):
            codes = {code for code, _ in told(values(at(path, value.default)))}
            assert codes <= {"GF220"}, (path, codes)
