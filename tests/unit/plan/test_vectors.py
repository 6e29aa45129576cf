"""What the plugin really did with 54 configurations, and what a stack file makes of the same wish.

Each row of the recorded answers without MIG is in one of three tables: the stack file says the same and the plan
predicts the plugin's answer; the stack file refuses it; or the stack file has no word for it, and why.
"""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.plan.model import Plan

from tests.unit.config.samples import compile_text, told
from tests.unit.device_plugin.cases import rows

ROWS = {row["name"]: row for row in rows("vectors.jsonl") if not row["mig"]}

#: Sharing profile (YAML, as a user writes it) for the same wish; None: the pool names no profile.
SAID: dict[str, str | None] = {
    "ok4": "{strategy: timeSlicing, replicas: 4}",
    "r-float int": "{strategy: timeSlicing, replicas: 4.0}",
    "r-huge": "{strategy: timeSlicing, replicas: 16384, allowManyReplicas: true}",
    "empty file": None,
    "no version": "{strategy: timeSlicing, replicas: 2}",
    "renameByDefault": "{strategy: timeSlicing, replicas: 4, renameByDefault: true}",
    "mps ok root": "{strategy: mps, replicas: 4}",
}

#: Profile and the codes that refuse it. The plugin refuses these as well, or accepts them and does something else.
REFUSED: dict[str, tuple[str, str]] = {
    "r0": ("{strategy: timeSlicing, replicas: 0}", "GF105"),
    "r-neg": ("{strategy: timeSlicing, replicas: -3}", "GF105"),
    "r-str": ('{strategy: timeSlicing, replicas: "4"}', "GF104"),
    "r-null": ("{strategy: timeSlicing, replicas: }", "GF104"),
    "r-oct": ("{strategy: timeSlicing, replicas: 010}", "GF004"),
    "r-under": ("{strategy: timeSlicing, replicas: 1_0}", "GF004"),
    "ts null": ("{strategy: timeSlicing}", "GF102"),
    "ts {}": ("{strategy: timeSlicing}", "GF102"),
    "ts resources []": ("{strategy: timeSlicing}", "GF102"),
    "mps {}": ("{strategy: mps}", "GF102"),
    "typo sharing key": ("{strategy: timeslicing, replicas: 4}", "GF103"),
    "snake time_slicing": ("{strategy: time_slicing, replicas: 4}", "GF103"),
    "SHARING caps": ("{strategy: TIMESLICING, replicas: 4}", "GF103"),
    "renameByDefault yes": ("{strategy: timeSlicing, replicas: 4, renameByDefault: yes}", "GF004"),
    "rename custom": ("{strategy: timeSlicing, replicas: 4, rename: nvidia.com/half}", "GF101"),
    "rename bad": ("{strategy: timeSlicing, replicas: 4, rename: bad name!}", "GF101"),
    "replica key typo": ("{strategy: timeSlicing, replica: 4}", "GF101"),
    "Replicas caps": ("{strategy: timeSlicing, Replicas: 4}", "GF101"),
    "Resources caps inside": ("{strategy: timeSlicing, replicas: 4, Resources: [nvidia.com/gpu]}", "GF101"),
    "dup yaml key": ("{strategy: timeSlicing, replicas: 2, replicas: 4}", "GF005"),
    "devices [0]": ("{strategy: timeSlicing, replicas: 4, devices: [0]}", "GF101"),
    "devices []": ("{strategy: timeSlicing, replicas: 4, devices: []}", "GF101"),
    "devices bad uuid": ("{strategy: timeSlicing, replicas: 4, devices: [GPU-xyz]}", "GF101"),
    # The plugin accepts it, and no control daemon starts: the plan says so before.
    "mps 64 replicas": ("{strategy: mps, replicas: 64}", "GF320"),
    "list not map": ("[{strategy: timeSlicing, replicas: 4}]", "GF104"),
    "tabs": ("\n\t\tstrategy: timeSlicing", "GF001"),
}

_NAMES = "a stack file names no resources of NVIDIA's: the profile says which GPUs by the pools that use it"
_FLAGS = "a stack file sets no flags of the plugin: gpufleet derives them"
_FORM = "about the form of the plugin's own file, which gpufleet writes"
UNSAID: dict[str, str] = {
    "version V1": _FORM,
    "Version caps": _FORM,
    "unknown top key": _FORM,
    "CM wrapped": _FORM,
    "name missing": _NAMES,
    "short name gpu": _NAMES,
    "gpu.shared as name": _NAMES,
    "amd name": _NAMES,
    "upper name": _NAMES,
    "mig name, none": _NAMES,
    "dup names 4,2": _NAMES,
    "dup names 2,4": _NAMES,
    "mig strategy mixed": _FLAGS,
    "mps ok no root": _FLAGS,
    "mps mixed": _FLAGS,
    "device-list-strategy list": _FLAGS,
    "device-id bad": _FLAGS,
    "failOnInitError str": _FLAGS,
    "gfd sleep 5": _FLAGS,
    "gfd sleep bad": _FLAGS,
    "imex 1": _FLAGS,
}


def test_every_row_is_in_one_table() -> None:
    assert len(ROWS) == 54
    named = [*SAID, *REFUSED, *UNSAID]
    assert len(named) == len(set(named))
    assert set(named) == set(ROWS)


def stack(profile: str | None, route: str) -> str:
    """A node with two A100-SXM4-40GB, as the recorded one."""
    sharing = "" if profile is None else "  gpufleet:sharing:\n    p: " + profile + "\n"
    uses = "" if profile is None else ", sharing: p"
    return (
        "config:\n"
        "  gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {path: k}}\n"
        f"  gpufleet:pools: [{{name: a100, hosts: {{n1: {{}}}}, gpu: A100-SXM4-40GB, gpusPerNode: 2{uses}}}]\n"
        f"  gpufleet:stack: {{kind: {route}}}\n"
    ) + sharing


def planned(profile: str | None, route: str) -> Plan:
    compiled = compile_text(stack(profile, route))
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


@pytest.mark.parametrize("route", ["plugin", "operator"])
@pytest.mark.parametrize("name", SAID)
def test_the_prediction_is_the_plugins_answer(name: str, route: str) -> None:
    row, plan = ROWS[name], planned(SAID[name], route)
    assert row["outcome"] == "accept"
    assert plan.pools[0].node.resources == row["capacity"]
    strategy = {"timeSlicing": "time-slicing", "mps": "mps", "none": "none"}[plan.profiles[0].strategy]
    assert strategy == row["strategy"]
    # gpufleet states it always; where the recorded file left it out, the plugin holds nothing.
    assert row["fail_gt1"] in (None, True)


@pytest.mark.parametrize("name", SAID)
def test_the_predicted_labels_are_those_of_feature_discovery(name: str) -> None:
    """The mock calls its GPUs `Mock-...`; real ones are called by their product name."""
    labels = planned(SAID[name], "operator").pools[0].node.labels
    expected = {f"nvidia.com/{k}": v.replace("Mock-", "") for k, v in ROWS[name]["labels"].items()}
    assert {k: labels.get(k) for k in expected} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_stack_file_refuses(name: str) -> None:
    profile, code = REFUSED[name]
    compiled = compile_text(stack(profile, "plugin"))
    assert compiled.plan is None
    assert code in {c for c, _ in told(compiled)}


@pytest.mark.parametrize("name", [n for n in REFUSED if ROWS[n]["outcome"] == "accept"])
def test_what_is_refused_though_the_plugin_accepts_it_would_surprise(name: str) -> None:
    """Nothing useful is lost: the plugin reads another number, drops a part, shares nothing, or cannot start."""
    row: dict[str, Any] = ROWS[name]
    surprising = {"r-oct", "r-under", "snake time_slicing", "dup yaml key"}
    spelling = {"typo sharing key", "SHARING caps", "renameByDefault yes"}
    assert row["ignored_fields_warned"] or name in surprising | spelling
