"""MIG: which layouts a model can have, and the operator's MIG manager."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.twin_standins.objects import GPU, IMAGE, node, plugin, pod
from twin.advertiser import discovery, mig, mig_manager, offer, verdicts
from twin.advertiser import node as rules

A100, A30 = offer.product("A100-SXM4-40GB")["mig"], offer.product("A30")["mig"]
STATE = "nvidia.com/mig.config.state"


def spread(text: str) -> tuple[str, ...]:
    return tuple(one for part in text.split() for one in [part.split("x")[1]] * int(part.split("x")[0]))


@pytest.mark.parametrize(("text", "fits"), [
    ("7x1g.5gb", True), ("8x1g.5gb", False), ("3x2g.10gb 1x1g.5gb", True), ("2x3g.20gb", True),
    ("2x3g.20gb 1x1g.5gb", False),  # 7 compute slices, but all 8 memory slots are taken
    ("1x4g.20gb 1x3g.20gb", True), ("1x4g.20gb 1x2g.10gb 1x1g.5gb", True), ("1x3g.20gb 4x1g.5gb", True),
    ("2x2g.10gb 1x3g.20gb", True), ("3x2g.10gb 1x3g.20gb", False), ("1x7g.40gb", True), ("1x7g.40gb 1x1g.5gb", False),
    ("4x1g.10gb", True), ("3x1g.10gb 2x1g.5gb", True), ("1x1g.5gb+me 6x1g.5gb", True), ("2x1g.5gb+me", False),
    ("1x1g.6gb", False), ("2x4g.20gb", False),
])
def test_which_instances_an_a100_can_have_at_once(text: str, fits: bool) -> None:
    assert mig.fits(spread(text), A100) is fits


@pytest.mark.parametrize(("text", "fits"), [
    ("4x1g.6gb", True), ("5x1g.6gb", False), ("2x1g.6gb 1x2g.12gb", True), ("2x2g.12gb", True),
    ("2x2g.12gb 1x1g.6gb", False), ("1x4g.24gb", True), ("1x4g.24gb 1x1g.6gb", False),
])
def test_which_instances_an_a30_can_have_at_once(text: str, fits: bool) -> None:
    assert mig.fits(spread(text), A30) is fits


def test_every_profile_of_every_model_fits_as_often_as_the_table_says_and_no_more() -> None:
    models = {name: row["mig"] for name, row in offer._products().items() if "mig" in row}
    assert len(models) >= 20
    for name, table in models.items():
        for profile, most in table.items():
            assert mig.fits((profile,) * most, table), (name, profile)
            assert not mig.fits((profile,) * (most + 1), table), (name, profile)
            plain = {**table, profile: 99}  # by their size alone, too, no more of a plain profile fit
            if "+" not in profile and "-" not in profile:
                assert not mig.fits((profile,) * (most + 1), plain), (name, profile)


def test_a_layout_is_written_as_it_is_read() -> None:
    for text in ("", "0=", "0=1g.5gb,3g.20gb;3="):
        assert mig.render(mig.parse(text)) == text


# --- the MIG manager

CONFIG = """
version: v1
mig-configs:
  all-disabled:
    - {devices: all, mig-enabled: false}
  2x1g.5gb_1x3g.20gb:
    - {devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2, 3g.20gb: 1}}
  first-only:
    - {devices: [0], mig-enabled: true, mig-devices: {7g.40gb: 1}}
    - {devices: [1], mig-enabled: false}
  by-model:
    - {device-filter: ["0x20B010DE", "0x20F110DE"], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}
    - {device-filter: "0x20B210DE", devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}
  foreign: [{devices: all, mig-enabled: true, mig-devices: {1g.12gb: 7}}]
  crowded: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 2, 1g.5gb: 1}}]
"""


def manager(config: str | None = None, default: str = "", **more: Any) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "nvidia-mig-manager", "image": "nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.15.0",
        "env": [{"name": mig_manager.DEFAULT_ENV, "value": default}]}
    volumes = []
    if config:
        container["env"].append({"name": "CONFIG_FILE", "value": "/mig-parted-config/config.yaml"})
        container["volumeMounts"] = [{"name": "mig-parted-config", "mountPath": "/mig-parted-config"}]
        volumes = [{"name": "mig-parted-config", "configMap": {"name": config}}]
    return pod(container, volumes=volumes, name="mig", inits=["toolkit-validation"], **more)


def a100(name: str = "", **more: Any) -> dict[str, Any]:
    labels = {"nvidia.com/mig.config": name} if name else {}
    return node(2, model="A100-SXM4-40GB", labels=labels, **more)


def plugin_with(strategy: str) -> dict[str, Any]:
    return pod(plugin(config=False, env=[{"name": "MIG_STRATEGY", "value": strategy}]), name="plugin")


def maps(text: str = CONFIG, key: str = "config.yaml") -> dict[Any, Any]:
    return {("gpu", "own"): {"data": {key: text}}}


def wanted(of: dict[str, Any], *pods: dict[str, Any], found: Any = None, operator: bool = False) -> rules.Wanted:
    return rules.wanted(of, list(pods), maps() if found is None else found, operator)


@pytest.mark.parametrize(("name", "layout"), [
    ("all-1g.5gb", "0=" + ",".join(["1g.5gb"] * 7) + ";1=" + ",".join(["1g.5gb"] * 7)),
    ("all-1g.10gb", "0=" + ",".join(["1g.10gb"] * 4) + ";1=" + ",".join(["1g.10gb"] * 4)),
    ("all-1g.5gb.me", "0=1g.5gb+me;1=1g.5gb+me"), ("all-balanced", "0=1g.5gb,1g.5gb,2g.10gb,3g.20gb;"
                                                                   "1=1g.5gb,1g.5gb,2g.10gb,3g.20gb"),
    ("all-enabled", "0=;1="), ("all-disabled", ""),
])
def test_what_it_generates_for_the_model(name: str, layout: str) -> None:
    found = wanted(a100(name, layout="0=7g.40gb"), manager())
    assert found.labels["mig-manager"] == {STATE: "success"}
    assert found.annotations[rules.MIG] == layout


@pytest.mark.parametrize(("name", "layout"), [
    ("2x1g.5gb_1x3g.20gb", "0=1g.5gb,1g.5gb,3g.20gb;1=1g.5gb,1g.5gb,3g.20gb"), ("first-only", "0=7g.40gb"),
    ("by-model", "0=" + ",".join(["1g.5gb"] * 7) + ";1=" + ",".join(["1g.5gb"] * 7)), ("all-disabled", ""),
])
def test_what_its_own_file_says(name: str, layout: str) -> None:
    found = wanted(a100(name, layout="1=7g.40gb"), manager("own"))
    assert found.labels["mig-manager"] == {STATE: "success"}
    assert found.annotations[rules.MIG] == layout


@pytest.mark.parametrize(("name", "pods", "found", "words"), [
    ("all-1g.12gb", [manager()], None, "not present: all-1g.12gb"), ("foreign", [manager("own")], None, "1g.12gb"),
    ("all-1g.5gb", [manager("own")], None, "not present: all-1g.5gb"),
    ("crowded", [manager("own")], None, "cannot have"),
    ("all-disabled", [manager("own")], maps(key="mig.yaml"), "no such file"),
    ("all-disabled", [manager("own")], maps("version: v1\nmig-configs: {}\nextra: 1"), "unexpected field"),
    ("x", [manager("own")], maps("version: v1\nmig-configs: {x: [{devices: all, mig-enabled: true}]}"), "mig-devices"),
    ("x", [manager("own")], maps("mig-configs: {x: [{devices: all, mig-enabled: false}]}"), "unknown version"),
    ("x", [manager("own")], maps("version: v1\nmig-configs: {x: [{device: all, mig-enabled: false}]}"), "device"),
])
def test_what_fails_changes_nothing(name: str, pods: list[Any], found: Any, words: str) -> None:
    got = wanted(a100(name, layout="0=7g.40gb;1=7g.40gb"), *pods, plugin_with("single"), found=found)
    assert got.labels["mig-manager"] == {STATE: "failed"}
    assert rules.MIG not in got.annotations
    assert got.resources == {GPU: 2}
    assert got.verdicts[0].trouble is not None
    assert words in got.verdicts[0].trouble.message


def test_a_model_without_mig_fails() -> None:
    t4 = node(1, labels={"nvidia.com/mig.config": "all-1g.5gb"})
    assert wanted(t4, manager()).labels["mig-manager"] == {STATE: "failed"}
    own = maps("version: v1\nmig-configs: {x: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]}")
    t4["metadata"]["labels"]["nvidia.com/mig.config"] = "x"
    assert "has no MIG" in str(wanted(t4, manager("own"), found=own).verdicts[0].trouble)


def test_the_plugin_offers_what_was_made_at_once() -> None:
    named = a100("2x1g.5gb_1x3g.20gb")
    mixed = wanted(named, manager("own"), plugin_with("mixed"))
    assert mixed.resources == {"nvidia.com/mig-1g.5gb": 4, "nvidia.com/mig-3g.20gb": 2}
    assert wanted(named, manager("own"), plugin_with("none")).resources == {GPU: 2}
    single = wanted(named, manager("own"), plugin_with("single"))
    assert single.resources == {}
    assert any(one.trouble and "more than one MIG device type" in one.trouble.message for one in single.verdicts)
    gfd = pod({"name": "gfd", "image": IMAGE, "command": ["gpu-feature-discovery"],
               "env": [{"name": "MIG_STRATEGY", "value": "single"}]}, name="gfd")
    assert wanted(a100("all-1g.5gb"), manager(), gfd).labels["gfd"]["nvidia.com/gpu.count"] == "14"


def test_it_does_nothing_without_a_label_a_driver_or_its_file() -> None:
    for found in (wanted(a100(), manager()), wanted(a100("all-1g.5gb", driver="none"), manager()),
                  wanted(a100("all-1g.5gb")), wanted(a100("all-1g.5gb"), manager("absent"))):
        assert "mig-manager" not in found.labels
        assert rules.MIG not in found.annotations


def test_an_edit_of_its_file_counts_from_the_next_label_on() -> None:
    running = manager("own")
    note = verdicts.pod_annotation(running, wanted(a100("first-only"), running).verdicts)
    running["metadata"]["annotations"] = {verdicts.READ: note}
    edited = maps(CONFIG.replace("{7g.40gb: 1}", "{3g.20gb: 2}").replace("{1g.5gb: 2, 3g.20gb: 1}", "{1g.5gb: 1}"))
    assert wanted(a100("first-only"), running, found=edited).annotations[rules.MIG] == "0=7g.40gb"
    assert wanted(a100("2x1g.5gb_1x3g.20gb"), running, found=edited).annotations[rules.MIG] == "0=1g.5gb;1=1g.5gb"


def test_the_operators_default_undoes_a_layout_that_nobody_named() -> None:
    present = {discovery.PCI: "true"}
    host = node(2, model="A100-SXM4-40GB", labels=dict(present), layout="0=7g.40gb;1=7g.40gb")
    labels = wanted(host, manager(default="all-disabled"), operator=True).labels["operator"]
    assert labels["nvidia.com/mig.config"] == "all-disabled"
    host["metadata"]["labels"] |= labels
    assert wanted(host, manager(default="all-disabled"), operator=True).annotations[rules.MIG] == ""
    assert "nvidia.com/mig.config" not in wanted(host, manager(), operator=False).labels.get("operator", {})
    named = node(2, model="A100-SXM4-40GB", labels={**present, "nvidia.com/mig.config": "all-1g.5gb"})
    kept = wanted(named, manager(default="all-disabled"), operator=True).labels["operator"]
    assert kept["nvidia.com/mig.config"] == "all-1g.5gb"
    without = node(2, model="A100-SXM4-40GB", labels=dict(present))
    assert "nvidia.com/mig.config" not in wanted(without, manager(default=""), operator=True).labels["operator"]


def test_what_it_made_goes_onto_the_node_and_only_changes() -> None:
    before = a100("all-disabled", layout="0=7g.40gb")
    found = wanted(before, manager())
    patch = rules.node_annotations(before, found.annotations)
    assert patch == {"metadata": {"annotations": {rules.MIG: ""}}}
    before["metadata"]["annotations"][rules.MIG] = ""
    assert rules.node_annotations(before, found.annotations) is None
    assert rules.node_labels(before, found.labels) == {"metadata": {
        "labels": {STATE: "success"}, "annotations": {rules.WROTE: json.dumps({"mig-manager": [STATE]})}}}
