"""What a message tells somebody who wrote something else: the form that was meant, with the words that were given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.catalog import reading
from gpufleet.compiled import compile_file
from gpufleet.findings.finding import Severity
from gpufleet.plan.render import render
from gpufleet.stackfile.fields import fields, inner_models
from gpufleet.stackfile.kinds import KINDS
from gpufleet.stackfile.model import stack_model
from pydantic import BaseModel

from tests.unit.config.parts import T4, TEAM
from tests.unit.config.samples import REMOVE, compile_base, compile_text, the_one, told
from tests.unit.config.text_cases import CLUSTER, GOOD, POOLS, STACK, pool

AKS, NODES = "aks-plugin", "existing-plugin"


def _profile(**keys: Any) -> dict[str, Any]:
    return {"sharing.nb": {"strategy": "timeSlicing", "replicas": 4, **keys}, "pools[0].sharing": "nb"}


def _scaled(bounds: Any) -> dict[str, Any]:
    return {"pools[0].count": REMOVE, "pools[0].autoscale": bounds}


#: id -> base, changes, path, what the remedy says.
MEANT: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "RP-70 a unit": (AKS, _profile(memoryPerPodGib="3.5Gi"), "sharing.nb.memoryPerPodGib",
                     "Write a number of GiB without a unit: `memoryPerPodGib: 3.5`."),
    "RP-70 another unit": (AKS, _profile(memoryPerPodGib="512Mi"), "sharing.nb.memoryPerPodGib",
                           "without a unit: `memoryPerPodGib: 0.5`."),
    "RP-70 minutes": ("aks-operator", {"stack.timeoutSeconds": "30m"}, "stack.timeoutSeconds",
                      "a whole number of seconds without a unit: `timeoutSeconds: 1800`."),
    "RP-70 a thing": (AKS, {"pools[0].count": "2 nodes"}, "pools[0].count", "without a unit: `count: 2`."),
    "RP-70 a multiplier": (AKS, {"pools[0].count": "2k"}, "pools[0].count", "a whole number, for example `count: 2`."),
    "RP-70 a comma": (AKS, {"pools[0].spot": True, "pools[0].spotMaxPrice": "0,35"}, "pools[0].spotMaxPrice",
                      "Write it with a decimal point: `spotMaxPrice: 0.35`."),
    "RP-70 a word": (AKS, _scaled({"min": 1, "max": "four"}), "pools[0].autoscale.max",
                     "Write it in digits: `max: 4`."),
    "RP-70 another word": (AKS, _scaled({"min": 1, "max": "many"}), "pools[0].autoscale.max",
                           "Write a whole number, for example `max: 4`."),
    "RP-70 quotes": (AKS, {"pools[0].count": "2"}, "pools[0].count", "Write it without quotes: `count: 2`."),
    "RP-71 home": (NODES, {"cluster.kubeconfig": "~/.kube/config"}, "cluster.kubeconfig",
                   'Write `kubeconfig: {path: ~/.kube/config}`.'),
    "RP-71 relative": (NODES, {"cluster.kubeconfig": "clusters/idc.conf"}, "cluster.kubeconfig",
                       "Write `kubeconfig: {path: clusters/idc.conf}`."),
    "RP-73 route": (AKS, {"stack": "operator"}, "stack", "Write `gpufleet:stack: {kind: operator}`."),
    "RP-73 switch": (AKS, _scaled(True), "pools[0].autoscale", "`autoscale: {min: 1, max: 4}`"),
    "RP-73 profile": (AKS, {"sharing.nb": "timeSlicing", "pools[0].sharing": "nb"}, "sharing.nb",
                      "Write `nb: {strategy: timeSlicing, replicas: 4}`."),
    "RP-73 registry": (AKS, {"stack.images": "mirror.example.com"}, "stack.images",
                       "Write `images: {registry: mirror.example.com}`."),
    "RP-73 quota": (AKS, {"teams": [{**TEAM, "quota": 4}]}, "teams[0].quota", "Write `quota: {gpu: 4}`."),
    "RP-73 pools as a map": (AKS, {"pools": {"t4": {"vmSize": T4}}}, "pools",
                             f"Write a list: `gpufleet:pools: [{{name: t4, vmSize: {T4}}}]`."),
    "RP-73 a list as a word": (AKS, {"teams": [{**TEAM, "pools": "t4"}]}, "teams[0].pools",
                               "Write a list: `pools: [t4]`."),
    "RP-73 a taint as a map": (AKS, {"pools[0].taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]},
                               "pools[0].taints[0]", '`"sku=gpu:NoSchedule"`'),
    "RP-74 names": (NODES, {"pools[0].hosts": ["gpu01", "gpu02"]}, "pools[0].hosts",
                    "Write `hosts: {gpu01: {address: 10.0.0.11}, gpu02: {address: ...}}`."),
    "RP-74 addresses": (NODES, {"pools[0].hosts": {"gpu01": "10.0.0.5"}}, "pools[0].hosts.gpu01",
                        "Write `gpu01: {address: 10.0.0.5}`."),
    "RP-74 many names": (NODES, {"pools[0].hosts": [f"g{i}" for i in range(9)]}, "pools[0].hosts", ", ...}`."),
    "RP-75 codes": (AKS, {"acknowledge": ["GF217"]}, "acknowledge",
                    'Write `gpufleet:acknowledge: {GF217: "the reason"}`.'),
    "RP-75 team": (AKS, {"teams": ["serving"]}, "teams[0]",
                   "Write `{name: serving, namespace: serving, pools: [t4]}`."),
    "labels as text": (AKS, {"pools[0].labels": "a=b"}, "pools[0].labels", "Write `labels: {a: b}`."),
    "a switch": (AKS, {"pools[0].spot": "yes"}, "pools[0].spot", "Write `spot: true`, without quotes."),
    "a version": (AKS, {"cluster.version": 1.36}, "cluster.version", 'For example `version: "1.36"`.'),
    "a branch": (NODES, {"pools[0].driverBranch": 580}, "pools[0].driverBranch", 'Quote it: `driverBranch: "580"`.'),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANT)
def test_the_remedy_is_what_was_meant(case: str) -> None:
    base, changes, path, remedy = MEANT[case]
    found = the_one(compile_base(base, changes), "GF104")
    assert found.path == path
    assert remedy in found.remedy


def test_a_wrong_type_says_range_and_meaning_rp_70() -> None:
    found = the_one(compile_base(AKS, _scaled({"min": 1, "max": "four"})), "GF104")
    assert found.reason.startswith("This is a whole number, at least 1 and at most 1000. The most nodes")
    assert found.reason.endswith("not below min.")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1",
        "clusters: []",
        "{clusters: []}",
        "eyJhbGciOi.J9.abc",
        "a1b2c3",
        "YXBpVmVyc2lvbjog/aGVsbG8=",
        "token: s3cr3t.config",
        "~/" + "a/" * 150 + "config",
    ],
)
def test_what_may_be_a_credential_stays_one_rp_71(text: str) -> None:
    assert told(compile_base(NODES, {"cluster.kubeconfig": text})) == [("GF007", "cluster.kubeconfig")]


def test_a_second_document_is_named_by_its_line_rp_72() -> None:
    found = the_one(compile_text("config: {}\n---\nconfig: {}\n"), "GF009")
    assert (found.line, found.message) == (2, "A second YAML document begins at line 2.")
    assert told(compile_text("---\n" + GOOD)) == []
    assert told(compile_text("# a stack\n---\n" + GOOD + "...\n")) == []


#: id -> text, line, what is said.
SYNTAX = {
    "RP-77 missing blank": (pool("driver:aks"), 5, "A blank must follow the colon: `driver: aks`."),
    "RP-77 missing blank after a section": (
        "config:\n" + CLUSTER + "  gpufleet:stack:operator\n" + POOLS, 3,
        "blank must follow the colon: `gpufleet:stack: operator`"),
    "RP-77 missing blank in an item": (
        "config:\n  gpufleet:pools:\n    - name:t4\n      vmSize: x\n", 3,
        "A blank must follow the colon: `name: t4`."),
    "RP-77 missing blank before a brace": (
        GOOD.replace("gpufleet:stack: {", "gpufleet:stack:{"), 4,
        "A blank must follow the colon: `gpufleet:stack: {`."),
    "RP-77 tab": ("config:\n\tgpufleet:stack: {kind: plugin}\n", 2, "Indent with blanks."),
    "RP-77 open quote": ('config:\n  gpufleet:stack: {kind: "plugin}\n' + CLUSTER, 2, "Close the quote."),
    "RP-77 open bracket": ("config:\n  gpufleet:stack: {kind: plugin\n" + CLUSTER, 2, "`{` is opened in line 2"),
    "RP-77 bracket of another kind": ("config:\n  gpufleet:pools: [a, b}\n", 2, "Write the missing comma or `]`"),
    "RP-77 indentation": (GOOD + "   gpufleet:teams: []\n", 5, "is indented by 3, line 4 by 2"),
    "RP-77 colon in a value": (pool("labels: a: b"), 5, 'Quote the value: `key: "a: b"`.'),
    "RP-77 a star": (pool("name: *"), 5, "Quote a text that begins with `*`"),
    "RP-77 an at sign": (pool("vmSize: @x"), 5, "Put a text that begins with `@` into quotes."),
    "RP-77 no key": (GOOD + "  gpufleet\n  gpufleet:teams: []\n", 5, "is a key without a colon"),
}  # fmt: skip


@pytest.mark.parametrize("case", SYNTAX)
def test_the_remedy_of_a_parse_error_follows_its_kind(case: str) -> None:
    text, line, says = SYNTAX[case]
    compiled = compile_text(text)
    assert told(compiled) == [("GF001", "")]
    found = compiled.found[0]
    assert found.line == line
    assert says in f"{found.reason} {found.remedy}"


def test_bytes_that_are_not_utf8_have_a_line_rp_77(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_bytes(pool("labels: {a: größe}").encode("latin-1"))
    found = the_one(compile_file(file), "GF001")
    assert (found.line, found.remedy) == (5, "Save the file as UTF-8.")


def test_a_key_that_nobody_reads_is_noted() -> None:
    compiled = compile_text(GOOD + "owner: vision\n")
    assert told(compiled) == [("GF011", "")]
    assert compiled.plan is not None


def test_a_misspelt_prefix_beside_the_right_one_is_no_second_key() -> None:
    again = STACK.replace("gpufleet:", "gpuflet:")
    for text in (GOOD + again, "config:\n" + CLUSTER + POOLS + again + STACK):
        assert told(compile_text(text)) == [("GF003", "")]


def test_a_tag_that_changes_a_value_is_refused() -> None:
    assert told(compile_text(pool("count: !!str 4"))) == [("GF006", "pools[0].count")]
    assert told(compile_text(pool('count: !!int "4"'))) == [("GF006", "pools[0].count")]
    assert told(compile_text(pool("count: !!int 4"))) == []


def test_a_long_number_is_shown_as_it_stands() -> None:
    number = "123456789012345678901234"
    assert the_one(compile_text(pool(f"count: {number}")), "GF105").value == number


#: id -> base, changes, path, our key, what is written.
NEIGHBOURS: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "RP-76 azure-native": (AKS, {"pools[0].count": REMOVE, "pools[0].minCount": 2, "pools[0].maxCount": 6},
                           "pools[0].minCount", "autoscale", "`autoscale: {min: 2, max: 6}`"),
    "RP-76 azurerm": (AKS, {"pools[0].count": REMOVE, "pools[0].max_count": 6}, "pools[0].max_count", "autoscale",
                      "`autoscale: {min: 1, max: 6}`; max_count is a word of azure-native and azurerm."),
    "RP-76 a switch": (AKS, {"pools[0].enable_auto_scaling": True}, "pools[0].enable_auto_scaling", "autoscale",
                       "`autoscale: {min: 1, max: 4}`"),
    "RP-76 inside": (AKS, {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 1, "max": 2, "maxCount": 4}},
                     "pools[0].autoscale.maxCount", "max", "`max: 4`"),
    "RP-76 taints": (AKS, {"pools[0].node_taints": ["a=b:NoSchedule"]}, "pools[0].node_taints", "taints",
                     '`taints: ["a=b:NoSchedule"]`'),
    "RP-76 aws": (AKS, {"pools[0].instance_type": "g4dn.xlarge"}, "pools[0].instance_type", "vmSize",
                  "a word of the AWS provider"),
    "RP-76 system pool": (AKS, {"cluster.systemPool": {"minCount": 3}}, "cluster.systemPool.minCount", "autoscale",
                          "`autoscale: {min: 3, max: 4}`"),
    "RP-76 version": (AKS, {"cluster.kubernetes_version": "1.36"}, "cluster.kubernetes_version", "version",
                      '`version: "1.36"`'),
    "RP-76 the plugin": (AKS, _profile(timeSlicing={"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}),
                         "sharing.nb.timeSlicing", "replicas", "`strategy: timeSlicing, replicas: 4`"),
    "RP-76 an older spelling": (AKS, _profile(failRequestGreaterThanOne=False), "sharing.nb.failRequestGreaterThanOne",
                                "failRequestsGreaterThanOne", "`failRequestsGreaterThanOne: false`"),
    "RP-76 Ansible": (NODES, {"pools[0].hosts": {"n1": {"ansible_host": "10.0.0.5"}}},
                      "pools[0].hosts.n1.ansible_host", "address",
                      "`address: 10.0.0.5`; ansible_host is a word of Ansible."),
    "RP-76 Ansible's login": (NODES, {"pools[0].hosts": {"n1": {"ansible_user": "root"}}},
                              "pools[0].hosts.n1.ansible_user", "gpufleet:hosts",
                              "`ssh: {user: root} under gpufleet:hosts`"),
    "RP-76 the chart": ("aks-operator", {"stack.toolkit": {"enabled": False}}, "stack.toolkit", "values",
                        "`values: {toolkit: {enabled: false}}`"),
    "RP-76 a quota": (AKS, {"teams": [{**TEAM, "gpus": 2}]}, "teams[0].gpus", "quota", "`quota: {gpu: 2}`"),
    "RP-77 a key with its value": (AKS, {"stack": {"kind": "plugin", "namespace:gpu": None}}, 'stack["namespace:gpu"]',
                                   "namespace", "A blank must follow the colon: `namespace: gpu`."),
}  # fmt: skip


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_words_of_neighbours_lead_to_ours(case: str) -> None:
    base, changes, path, key, written = NEIGHBOURS[case]
    compiled = compile_base(base, changes)
    found = next(d for d in compiled.found if d.path == path)
    assert {d.code for d in compiled.found} == {"GF101"}
    assert found.closest == key
    assert written in found.remedy


def test_a_word_is_not_taken_for_a_key_that_this_kind_of_cluster_lacks() -> None:
    found = the_one(compile_base(NODES, {"pools[0].minCount": 1}), "GF101")
    assert found.closest is None


def _keys(model: type[BaseModel], at: str) -> Iterator[tuple[str, str]]:
    """Each key of the model's maps with the key that its map stands under."""
    for key, info in fields(model).items():
        yield at, key
        for inner in inner_models(info.annotation):
            yield from _keys(inner, key)


ROWS = reading.rows("neighbour_words", "neighbour_words")


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['at']}.{r['word']}")
def test_each_neighbour_leads_to_a_key_that_there_is_rp_76(row: dict[str, Any]) -> None:
    """Our key stands where the table says; the neighbour's word is no key of ours there."""
    there = {pair for kind in KINDS for pair in _keys(stack_model(kind), "")}
    section = row["key"].removeprefix("gpufleet:")
    if row["at"] == "kind":
        assert section in KINDS and row["word"] not in KINDS
        return
    assert (("", section) if section != row["key"] else (row["at"], section)) in there
    kinds = [{key for at, key in _keys(stack_model(kind), "") if at == row["at"]} for kind in KINDS]
    assert not all(row["word"] in keys for keys in kinds if keys)


def test_an_unknown_kind_of_cluster_asks_for_no_keys_of_another() -> None:
    for kind in ("gke", "openstack", REMOVE):
        changes = {"cluster.kind": kind, "cluster.location": REMOVE, "cluster.zone": "a"}
        assert [path for _, path in told(compile_base(AKS, changes))] == ["cluster.kind"]
    meant = compile_base(AKS, {"cluster.kind": "AKS", "cluster.location": REMOVE})
    assert sorted(told(meant)) == [("GF102", "cluster.location"), ("GF103", "cluster.kind")]


def test_a_cluster_of_another_cloud_is_one_that_exists_rp_76() -> None:
    found = the_one(compile_base(AKS, {"cluster.kind": "eks"}), "GF103")
    assert (found.closest, found.remedy) == ("existing", "Write `kind: existing`; eks is a word of the AWS provider.")


def test_a_form_that_the_map_shows_is_named_rp_76() -> None:
    nested = compile_base(AKS, {"sharing.nb": {"timeSlicing": {"replicas": 4}}, "pools[0].sharing": "nb"})
    assert the_one(nested, "GF102").remedy == "Write `strategy: timeSlicing`, and the other keys beside it."
    glued = compile_text(GOOD.replace("kind: plugin", "kind:plugin"))
    assert the_one(glued, "GF102").remedy == "A blank must follow the colon: `kind: plugin`."


def test_a_blank_that_is_missing_elsewhere_rp_77() -> None:
    glued = compile_text(GOOD.replace("kind: aks", "kind:aks"))
    assert told(glued) == [("GF102", "cluster.kind")]
    assert the_one(glued, "GF102").remedy == "A blank must follow the colon: `kind: aks`."
    dash = compile_text("config:\n" + CLUSTER + STACK + f"  gpufleet:pools:\n    -name: t4\n    vmSize: {T4}\n")
    assert the_one(dash, "GF104").remedy == "A blank must follow the dash: `- name: ...`."


def test_a_driver_owner_that_cannot_be_is_one_error() -> None:
    changes = {"pools[0].driver": "managed", "teams": [TEAM]}
    assert told(compile_base(NODES, changes)) == [("GF201", "pools[0].driver")]


def test_names_that_cannot_be_declared_are_not_asked_for() -> None:
    for base, changes in (
        (NODES, {"pools[0].driverBranch": "581"}),
        (NODES, {"pools[0].os": "beos 5"}),
        (AKS, {"acknowledge": {"GF999": "why"}}),
    ):
        assert "Declare" not in the_one(compile_base(base, changes), "GF109").remedy
    profile = the_one(compile_base(AKS, {"pools[0].sharing": "x"}), "GF109")
    assert "Declare it under `gpufleet:sharing`" in profile.remedy


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("cpu", "Limit cpu by a ResourceQuota of your own"),
        ("requests.memory", "Limit requests.memory by a ResourceQuota"),
        ("requests.nvidia.com/gpu", "Write nvidia.com/gpu."),
        ("example.com/gpu", "Use a resource that they offer."),
    ],
)
def test_a_quota_on_something_else_says_where_it_belongs(key: str, says: str) -> None:
    found = the_one(compile_base(AKS, {"teams": [{**TEAM, "quota": {key: 4}}]}), "GF431")
    assert says in found.remedy


def test_acknowledged_warnings_have_a_place_and_are_counted() -> None:
    changes = {"pools[0].driver": "none", "acknowledge": {"GF205": "somebody else's"}}
    compiled = compile_base(AKS, changes)
    lines = render("x", compiled.plan, compiled.found).splitlines()
    assert lines[0] == "warning GF205 pools[0].driver  stacks/Pulumi.test.yaml:10: acknowledged, somebody else's"
    assert lines[-1] == "x: no errors or warnings, 1 acknowledged."


def test_no_notes_among_errors() -> None:
    changes = {"acknowledge": {"GF420": "why"}, "pools[0].osSku": "Debian"}
    compiled = compile_base(AKS, {**changes, "pools[0].count": REMOVE, "pools[0].autoscale": {"min": 0, "max": 3}})
    assert any(d.severity is Severity.NOTE for d in compiled.found)
    said = render("x", compiled.plan, compiled.found)
    assert "note" not in said and "GF103" in said


def test_no_character_that_a_terminal_obeys_is_printed() -> None:
    evil = "a\u202eb\x1b[2Jc\u200b"
    compiled = compile_base(AKS, {"pools[0].labels": {evil: evil}, "pools[0].osSku": evil, evil: 1})
    said = render("x", compiled.plan, compiled.found)
    assert "\\u202e" in said and "\\x1b" in said
    assert all(c.isprintable() or c == "\n" for c in said)


def test_a_list_of_which_nothing_is_left_is_not_called_empty() -> None:
    """One fault, one finding: the entry is wrong, the list is not empty."""
    assert told(compile_base(AKS, {"pools": ["t4"]})) == [("GF104", "pools[0]")]
    team = {"name": "x", "namespace": "x", "pools": [{"t4": 1}]}
    assert told(compile_base(AKS, {"teams": [team]})) == [("GF104", "teams[0].pools[0]")]
    assert told(compile_base(AKS, {"pools": []})) == [("GF105", "pools")]


def test_the_form_of_a_pool_plans() -> None:
    """Who writes what the message says has a pool."""
    found = the_one(compile_base("existing-plugin", {"pools": ["t4"]}), "GF104")
    form = found.remedy.removeprefix("Write `").removesuffix("`.")
    assert told(compile_base("existing-plugin", {"pools": [yaml.safe_load(form)]})) == []


@pytest.mark.parametrize(
    ("given", "allowed", "closest"),
    [
        ("H100", ("H100-96GB", "H100-NVL", "H100-PCIe", "H100-SXM5-80GB"), None),
        ("a100-80", ("A100-80GB-PCIe", "A100-SXM4-80GB"), None),
        ("A100 40GB", ("A100-PCIE-40GB", "A100-SXM4-40GB"), None),
        ("A100-40", ("A100-PCIE-40GB", "A100-SXM4-40GB"), None),
        ("NVIDIA A100 SXM4 80", ("A100-SXM4-80GB",), "A100-SXM4-80GB"),
        ("h200 nvl", ("H200-NVL",), "H200-NVL"),
    ],
)
def test_short_names_of_gpus(given: str, allowed: tuple[str, ...], closest: str | None) -> None:
    found = the_one(compile_base("existing-plugin", {"pools[0].gpu": given}), "GF231")
    assert (found.allowed, found.closest) == (allowed, closest)
    assert ("nvidia-smi" in found.remedy) is (closest is None)


def test_a_merge_key_is_named() -> None:
    text = "config:\n  gpufleet:cluster: {kind: aks, name: a, location: eastus}\n  gpufleet:pools:\n"
    text += "    - {<<: {driver: aks}, name: t4, vmSize: Standard_NC4as_T4_v3}\n  gpufleet:stack: {kind: plugin}\n"
    assert the_one(compile_text(text), "GF006").value == "the merge key <<"
