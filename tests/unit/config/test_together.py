"""Many errors at once: all are reported, each once, and nothing that only follows from another."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from gpufleet.findings.finding import Severity

from tests.unit.config.rule_cases import CASES, Case
from tests.unit.config.samples import (
    BASES,
    REMOVE,
    compile_base,
    compile_data,
    compile_text,
    put,
    sections,
    stack_text,
    the_one,
    told,
)

TEN_AKS = """\
config:
  gpufleet:cluster:
    kind: aks
    name: vision dev
    location: eastus
    version: 1.36
    upgradeChanel: patch
  gpufleet:pools:
    - name: waytoolongname
      vmSize: Standard_NC4as_T4_v3
      count: 1
      autoscale: {min: 1, max: 2}
    - name: a
      vmSize: Standard_NC4as_T4_v4
      count: 010
    - {name: b, vmSize: Standard_NC4as_T4_v3, driver: operator}
    - {name: c, vmSize: Standard_NC4as_T4_v3, taints: [5, "sku=gpu:NO_SCHEDULE"]}
    - {name: d, vmSize: Standard_NC4as_T4_v3, sharing: notebok}
    - {name: e, vmSize: Standard_NC4as_T4_v3, driver: aks, driverVersion: "550.90.12"}
    - {name: e, tags: {skipGPUDriverInstall: "true"}}
  gpufleet:stack: {kind: plugin, replcas: 4}
  gpufleet:sharing:
    notebooks: {strategy: timeSlicing, replicas: 1}
  gpufleet:teams:
    - {name: x, namespace: kube-system, pools: [a, z]}
  gpufleet:acknowledge: {GF202: we know}
"""

TEN_EXISTING = """\
config:
  gpufleet:cluster: {kind: existing, kubeconfig: {path: a, secret: true}, distribution: kubadm}
  gpufleet:pools:
    - {name: a, hosts: {n1: {}, n1: {}}, gpu: A100, gpusPerNode: 8, driverBranch: "581"}
    - {name: b, hosts: {n1: {}}, gpu: H200, gpusPerNode: 0, driverVersion: "535.309.01"}
    - {name: c, nodeSelector: {a: b}, labels: {c: d}, gpu: T4, gpusPerNode: 1, taints: [node.kubernetes.io/x:NoExecute]}
    - {name: d, gpu: T4, gpusPerNode: 1, sharing: s, spot: true, sharng: s}
  gpufleet:stack: {kind: operator, timeoutSeconds: 60, values: {mig: {strategy: single}}, version: v1.0.0}
  gpufleet:sharing: {s: {strategy: timeslicing, replicas: 2}}
"""


def _lines(text: str) -> list[tuple[int | None, str, str]]:
    """Line, code and path of all that is found, by line; errors come first, and in the order of the file."""
    found = compile_text(text).found
    order = [(d.severity is not Severity.ERROR, d.line or 0) for d in found]
    assert order == sorted(order)
    return sorted((d.line, d.code, d.path) for d in found)


def test_ten_errors_and_more_of_every_layer_on_aks() -> None:
    assert _lines(TEN_AKS) == [
        (4, "GF106", "cluster.name"),
        (6, "GF104", "cluster.version"),
        (7, "GF101", "cluster.upgradeChanel"),
        (9, "GF106", "pools[0].name"),
        (9, "GF110", "pools[0]"),
        (14, "GF230", "pools[1].vmSize"),
        (15, "GF004", "pools[1].count"),
        (16, "GF202", "pools[2].driver"),
        (17, "GF104", "pools[3].taints[0]"),
        (17, "GF107", "pools[3].taints[1]"),
        (18, "GF109", "pools[4].sharing"),
        (19, "GF206", "pools[5].driverVersion"),
        (20, "GF102", "pools[6].vmSize"),
        (20, "GF108", "pools[6].name"),
        (20, "GF209", "pools[6].tags.skipGPUDriverInstall"),
        (21, "GF101", "stack.replcas"),
        (23, "GF105", "sharing.notebooks.replicas"),
        (25, "GF109", "teams[0].pools[1]"),
        (25, "GF432", "teams[0].namespace"),
        (26, "GF111", "acknowledge.GF202"),
    ]


def test_ten_errors_and_more_of_every_layer_on_an_existing_cluster() -> None:
    assert _lines(TEN_EXISTING) == [
        (2, "GF102", "cluster.name"),
        (2, "GF103", "cluster.distribution"),
        (2, "GF110", "cluster.kubeconfig"),
        (4, "GF005", "pools[0].hosts.n1"),
        (4, "GF109", "pools[0].driverBranch"),
        (4, "GF231", "pools[0].gpu"),
        (5, "GF105", "pools[1].gpusPerNode"),
        (5, "GF108", "pools[1].hosts.n1"),
        (5, "GF212", "pools[1].driverVersion"),
        (5, "GF272", "pools[1].driverVersion"),
        (6, "GF110", "pools[2]"),
        (6, "GF402", "pools[2].taints[0]"),
        (7, "GF101", "pools[3].sharng"),
        (7, "GF101", "pools[3].spot"),
        (7, "GF110", "pools[3]"),
        (8, "GF105", "stack.timeoutSeconds"),
        (8, "GF220", "stack.values.mig.strategy"),
        (8, "GF221", "stack.version"),
        (8, "GF253", "stack.version"),
        (9, "GF103", "sharing.s.strategy"),
    ]


def _second(base: str) -> dict[str, Any]:
    pool = copy.deepcopy(BASES[base]["pools"][0])
    pool["name"] = "b"
    if "hosts" in pool:
        pool["hosts"] = {"m1": {}}
    return pool


def _moved(path: str) -> str:
    return path.replace("pools[0]", "pools[1]", 1)


#: Cases about one pool alone.
_ALONE = [
    c
    for c in CASES
    if c.path.startswith("pools[0]") and all(k.startswith("pools[0].") and k != "pools[0].name" for k in c.wrong)
]
#: What two wrong pools of one operator release, or with one selector, say together.
_RELEASE = {"GF214", "GF216", "GF223", "GF235", "GF236", "GF424"}


@pytest.mark.parametrize("case", _ALONE, ids=str)
def test_errors_of_two_pools_are_the_errors_of_each(case: Case) -> None:
    """Every case in the first pool, with others of the table in the second."""
    same_base = [c for c in _ALONE if c.base == case.base and "hosts" not in c.path]
    start = same_base.index(case) if case in same_base else 0
    for other in (same_base[(start + step) % len(same_base)] for step in (1, 3, 7, 12)):
        data = sections(case.base, {"pools[1]": _second(case.base)})
        for path, value in [*case.wrong.items(), *((_moved(k), v) for k, v in other.wrong.items())]:
            put(data, path, value if value is REMOVE else copy.deepcopy(value))
        expected = {(case.code, case.path), *case.also}
        expected |= {(code, _moved(path)) for code, path in ((other.code, other.path), *other.also)}
        got = told(compile_text(stack_text(data)))
        assert expected <= set(got), other
        assert {code for code, _ in set(got) - expected} <= _RELEASE, other
        assert len(got) == len(set(got))


#: Teams, quotas, labels and profiles that hang together, without any diagnostic.
WHOLE = sections(
    "existing-operator",
    {
        "cluster.site": "s",
        "sharing.half": {"strategy": "timeSlicing", "replicas": 2, "renameByDefault": True},
        "sharing.third": {"strategy": "timeSlicing", "replicas": 3},
        "pools[0].sharing": "half",
        "pools[0].driverBranch": "580",
        "pools[0].labels": {"a.b/c": "d"},
        "pools[1]": {
            "name": "b",
            "hosts": {"n2": {"address": "a"}},
            "gpu": "A10",
            "gpusPerNode": 2,
            "sharing": "third",
        },
        "pools[2]": {
            "name": "c",
            "nodeSelector": {"nvidia.com/device-plugin.config": "third"},
            "gpu": "A10",
            "gpusPerNode": 2,
            "sharing": "third",
        },
        "teams": [
            {"name": "x", "namespace": "x", "pools": ["t4"], "quota": {"nvidia.com/gpu.shared": 2}},
            {"name": "z", "namespace": "z", "pools": ["t4", "b"], "quota": {"nvidia.com/gpu": 1}},
            {"name": "w", "namespace": "w", "pools": ["b", "c"], "quota": {"gpu": 2}},
        ],
    },
)


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("cluster", 5, "GF104"),
        ("cluster.name", REMOVE, "GF102"),
        ("cluster.kubeconfig", "idc.conf", "GF104"),
        ("stack", [], "GF104"),
        ("pools", REMOVE, "GF102"),
        ("pools", {}, "GF104"),
        ("pools", [], "GF105"),
        ("pools[0]", "t4", "GF104"),
        ("pools[0].name", REMOVE, "GF102"),
        ("pools[0].name", ["t4"], "GF104"),
        ("pools[0].gpu", REMOVE, "GF102"),
        ("pools[0].gpu", "T5", "GF231"),
        ("pools[0].gpusPerNode", "one", "GF104"),
        ("pools[0].hosts", [], "GF104"),
        ("pools[0].driver", None, "GF103"),
        ("pools[0].sharing", "haf", "GF109"),
        ("pools[0].sharing", 2, "GF104"),
        ("pools[2].sharing", "thrid", "GF109"),
        ("sharing", [], "GF104"),
        ("sharing.half", 2, "GF104"),
        ("sharing.half.strategy", "timeslice", "GF103"),
        ("sharing.half.strategy", None, "GF103"),
        ("sharing.half.replicas", 0, "GF105"),
        ("sharing.half.renameByDefault", "yes", "GF104"),
        ("teams[0].pools", "t4", "GF104"),
        ("teams[0].pools[0]", "t5", "GF109"),
        ("teams[0].namespace", REMOVE, "GF102"),
        ("teams[1]", None, "GF104"),
    ],
)
def test_one_error_brings_no_others(path: str, value: Any, code: str) -> None:
    """A broken pool is not also an unused profile, an unknown pool of a team, and a quota that limits nothing."""
    data = copy.deepcopy(WHOLE)
    assert told(compile_data(data)) == []
    put(data, path, value)
    found = told(compile_data(data))
    assert len(found) == 1
    assert found[0][0] == code
    assert found[0][1].startswith(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("cluster.name", "two words"),
        ("cluster", REMOVE),
        ("cluster.kubeconfig", {}),
        ("stack.kind", "operators"),
        ("stack", REMOVE),
        ("pools[0].hosts", REMOVE),
        ("pools[0].gpus", 1),
        ("pools[0]", "t4"),
        ("sharing.half", {}),
        ("teams[0].pools", []),
    ],
)
def test_one_error_hides_no_others(path: str, value: Any) -> None:
    """Whatever is broken, the rules still look at the rest."""
    data = copy.deepcopy(WHOLE)
    put(data, path, value)
    put(data, "pools[1].taints", ["x"])
    put(data, "teams[2].namespace", "kube-system")
    found = set(told(compile_data(data)))
    assert {("GF107", "pools[1].taints[0]"), ("GF432", "teams[2].namespace")} < found


def test_conflicts_of_keys_are_found_beside_wrong_values() -> None:
    """Checks across fields run when the fields are right; here they run on what is left."""
    compiled = compile_data(
        sections(
            "aks-plugin",
            {
                "pools[0].osSku": "Debian",
                "pools[0].autoscale": {"min": 1, "max": 2},
                "pools[0].maxUnavailable": "0",
                "cluster.systemPool": {"vmSize": 5, "autoscale": {"min": 0, "max": 1}},
            },
        )
    )
    assert sorted((d.code, d.path, d.message) for d in compiled.found) == [
        ("GF103", "pools[0].osSku", "The value Debian is not one of those allowed here."),
        ("GF104", "cluster.systemPool.vmSize", "The value has the wrong type."),
        ("GF110", "cluster.systemPool", "Wrong combination of keys: autoscale.min."),
        ("GF110", "pools[0]", "Wrong combination of keys: count, autoscale."),
        ("GF110", "pools[0]", "Wrong combination of keys: maxSurge, maxUnavailable."),
    ]


def test_a_wrong_value_is_not_a_conflict_as_well() -> None:
    wrong = {"pools[0].spot": "yes", "pools[0].spotMaxPrice": 1.5}
    assert told(compile_data(sections("aks-plugin", wrong))) == [("GF104", "pools[0].spot")]


def test_twenty_pools_without_names_hide_nothing() -> None:
    data = sections("aks-plugin")
    data["pools"] = [{"vmSize": "Standard_NC4as_T4_v3", "taints": ["x"]} for _ in range(20)]
    found = told(compile_data(data))
    assert found.count(("GF102", "pools[19].name")) == 1
    assert found.count(("GF107", "pools[19].taints[0]")) == 1
    assert len(found) == 40


def test_pools_of_no_operator_need_not_agree() -> None:
    """What the pools of one release must have in common is nothing to the standalone plugin."""
    second = {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "osSku": "Ubuntu2204", "driverVersion": "610.57.04"}
    wrong = {
        "pools[0].driver": "operator",
        "pools[0].driverBranch": "580",
        "pools[1]": {**second, "driver": "operator"},
    }
    found = told(compile_data(sections("aks-plugin", wrong)))
    assert [f for f in found if f[0] != "GF217"] == [("GF202", "pools[0].driver"), ("GF202", "pools[1].driver")]


AKS = sections(
    "aks-plugin",
    {
        "sharing.half": {"strategy": "timeSlicing", "replicas": 2},
        "pools[0].sharing": "half",
        "pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "taints": ["x"]},
        "teams": [{"name": "x", "namespace": "x", "pools": ["t4"], "quota": {"gpu": 2}}],
    },
)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"cluster": 5}, {("GF104", "cluster")}),
        ({"cluster.location": 7}, {("GF104", "cluster.location")}),
        ({"stack": 5}, {("GF104", "stack")}),
        # A pool's other values are judged although its driver is not known.
        ({"pools[1].driver": 5}, {("GF103", "pools[1].driver")}),
        # What pools say is judged although a name is missing, and what teams say although sharing is broken.
        (
            {"pools[1].name": REMOVE, "pools[0].sharing": "no"},
            {("GF102", "pools[1].name"), ("GF109", "pools[0].sharing")},
        ),
        ({"sharing": [], "teams[0].pools[0]": "no"}, {("GF104", "sharing"), ("GF109", "teams[0].pools[0]")}),
        # A name of the wrong form may be there twice as well.
        (
            {"pools[0].name": "waytoolongname", "pools[1].name": "waytoolongname", "teams": REMOVE},
            {("GF106", "pools[0].name"), ("GF106", "pools[1].name"), ("GF108", "pools[1].name")},
        ),
        # A team's broken list of pools says nothing about another team's quota.
        (
            {
                "teams[0].pools": 5,
                "teams[1]": {"name": "z", "namespace": "z", "pools": ["t4"], "quota": {"nvidia.com/none": 1}},
            },
            {("GF104", "teams[0].pools"), ("GF431", 'teams[1].quota["nvidia.com/none"]')},
        ),
    ],
)
def test_what_is_wrong_elsewhere_is_still_said(changes: dict[str, Any], more: set[tuple[str, str]]) -> None:
    data = copy.deepcopy(AKS)
    for path, value in changes.items():
        put(data, path, value)
    assert set(told(compile_data(data))) == {("GF107", "pools[1].taints[0]"), *more}


def test_a_merge_key_hides_what_it_might_bring_and_nothing_else() -> None:
    text = stack_text(AKS).replace("  - name: b", "  - <<: {count: 1}\n    driver: operator\n    name: b")
    assert set(told(compile_text(text))) == {
        ("GF006", "pools[1]"),
        ("GF107", "pools[1].taints[0]"),
        ("GF202", "pools[1].driver"),
    }
    missing = text.replace("    vmSize: Standard_NC4as_T4_v3\n    taints", "    taints")
    assert missing != text
    assert set(told(compile_text(missing))) == set(told(compile_text(text)))


def test_a_misspelt_key_beside_the_right_one_is_not_read() -> None:
    assert told(compile_data(sections("aks-plugin", {"pools[0].vmsize": "x"}))) == [("GF101", "pools[0].vmsize")]


def test_values_of_a_misspelt_key_are_judged() -> None:
    wrong = {"pools[0].vmSize": REMOVE, "pools[0].vmsize": "x", "pools[0].count": REMOVE, "pools[0].cuont": -1}
    assert sorted(told(compile_data(sections("aks-plugin", wrong)))) == [
        ("GF101", "pools[0].cuont"),
        ("GF101", "pools[0].vmsize"),
        ("GF230", "pools[0].vmSize"),
    ]


def test_a_profile_whose_strategy_is_misspelt_is_judged_as_meant() -> None:
    profile = {"strategy": "timeslicing", "replicas": 1}
    wrong = {"sharing.half": profile, "pools[0].sharing": "half"}
    assert sorted(told(compile_data(sections("aks-plugin", wrong)))) == [
        ("GF103", "sharing.half.strategy"),
        ("GF105", "sharing.half.replicas"),
    ]


def test_no_stand_in_is_shown() -> None:
    """What stands in for missing keys, so that the rest can be looked at, is not what the user wrote."""
    found = the_one(compile_base("existing-plugin", {"pools": [{"gpu": "T4"}]}), "GF110")
    assert found.value == '{"gpu": "T4"}'
