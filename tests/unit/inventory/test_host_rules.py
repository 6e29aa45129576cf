"""Every rule about hosts in stack files: the smallest stack that triggers it, and the nearest one that does not."""

from __future__ import annotations

import pytest
from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import find, rules
from gpufleet.rules.inventory import check_inventory

from tests.unit.config.case import Case
from tests.unit.config.samples import compile_base, the_one, told
from tests.unit.inventory.fact_cases import FACT_CASES
from tests.unit.inventory.rule_cases import CASES, on, runfile

OF_HOSTS = {code for code in rules() if code.startswith("GF8")}
#: Codes whose tests are not rows: reading facts, and what only an inventory or the whole of the facts shows.
ELSEWHERE = {"GF810", "GF811", "GF812", "GF813", "GF820", "GF822", "GF823"}


def test_every_rule_is_triggered() -> None:
    seen = {c.code for c in CASES if c.code in OF_HOSTS} | {c.code for c in FACT_CASES}
    assert seen | ELSEWHERE == OF_HOSTS
    assert not seen & ELSEWHERE


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_wrong_stack_says_this_and_nothing_else(case: Case) -> None:
    compiled = compile_base(case.base, case.wrong)
    assert sorted(told(compiled)) == sorted([(case.code, case.path), *case.also])
    found = the_one(compiled, case.code)
    assert found.file == "stacks/Pulumi.test.yaml" and found.line is not None
    for wanted, have in ((case.value, found.value), (case.allowed, found.allowed), (case.closest, found.closest)):
        assert wanted is None or have == wanted
    said = f"{found.message} {found.reason} {found.remedy}"
    assert case.says in said and "{value" not in said and "None" not in said
    assert compiled.plan is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_nearest_right_stack_says_nothing_of_it(case: Case) -> None:
    compiled = compile_base(case.base, case.right)
    assert sorted(told(compiled)) == sorted(case.right_also)
    assert compiled.plan is not None


@pytest.mark.parametrize(
    ("changes", "only"),
    [
        ({**on("openEuler-22.03"), "hosts.mirror.cuda": {"url": "mirror"}}, ("GF106", "hosts.mirror.cuda.url")),
        ({**on("debian-13"), "pools[0].architecture": "aarch64", "hosts.mirors": {}}, ("GF101", "hosts.mirors")),
        ({**runfile(None), "pools[0].driverVersion": "latest"}, ("GF106", "pools[0].driverVersion")),
    ],
)
def test_what_only_follows_is_left_out(changes: dict[str, object], only: tuple[str, str]) -> None:
    assert told(compile_base("existing-plugin", changes)) == [only]


def asked(base: str, changes: dict[str, object], kubeconfig: str | None = "k") -> list[tuple[str, str]]:
    compiled = compile_base(base, changes)
    assert compiled.fleet is not None, told(compiled)
    return [(d.code, d.path) for d in check_inventory(compiled.fleet, kubeconfig)]


REACHED = {"pools[0].hosts": {"n1": {"address": "10.0.0.1"}}}


def test_an_inventory_needs_addresses() -> None:
    assert asked("existing-plugin", {}) == [("GF811", "pools[0].hosts.n1")]
    assert asked("existing-plugin", {"pools[0].hosts": {"n1": None}}) == [("GF811", "pools[0].hosts.n1")]
    assert asked("existing-plugin", REACHED) == []


def test_an_inventory_needs_hosts() -> None:
    assert asked("aks-plugin", {}) == [("GF810", "pools")]
    by_selector = {"pools[0].nodeSelector": {"a": "b"}}
    compiled = compile_base("existing-plugin", by_selector)
    assert ("GF110", "pools[0]") in told(compiled)
    second = {"name": "b", "nodeSelector": {"a": "b"}, "gpu": "T4", "gpusPerNode": 1}
    assert asked("existing-plugin", {**REACHED, "pools[1]": second}) == []


def test_hosts_that_are_left_alone_need_no_address() -> None:
    spare = {"name": "b", "hosts": {"n2": {}}, "gpu": "T4", "gpusPerNode": 1, "driver": "none"}
    assert asked("existing-plugin", {**REACHED, "pools[1]": spare}) == []
    assert asked("existing-plugin", {"pools[0].driver": "none"}) == [("GF810", "pools")]


@pytest.mark.parametrize("name", ["localhost", "all", "ungrouped"])
def test_names_of_ansible(name: str) -> None:
    assert asked("existing-plugin", {"pools[0].hosts": {name: {"address": "10.0.0.1"}}}) == [
        ("GF812", f"pools[0].hosts.{name}")
    ]


def test_a_kubeconfig_that_ansible_cannot_read_is_a_warning() -> None:
    assert asked("existing-plugin", REACHED, None) == [("GF813", "cluster.kubeconfig")]
    assert find("GF813").severity is Severity.WARNING
