"""Facts against the stack: every rule, reading, and that the roles write what is read here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK, EXIT_USAGE, main
from gpufleet.compiled import compile_source
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import find
from gpufleet.hosts import health
from gpufleet.inventory.facts_file import read_facts
from gpufleet.rules.host_facts import HostFact, check_facts
from gpufleet.stackfile.source import parse

from tests.unit.config.samples import compile_base, sections, stack_text
from tests.unit.inventory.fact_cases import FACT_CASES, OPERATOR, FactCase, team
from tests.unit.inventory.host_fact import FACT, fact
from tests.unit.roles.converged import converged, on


def facts_of(*hosts: str, **changes: Any) -> dict[str, HostFact | None]:
    return {host: HostFact.model_validate(fact(changes)) for host in hosts}


def compared(stack: dict[str, Any], facts: dict[str, HostFact | None]) -> list[Finding]:
    """All that is found about facts, through the whole road."""
    text = stack_text(sections("existing-plugin", stack))
    source, read = parse(text, "stacks/Pulumi.test.yaml")
    compiled = compile_source("test", source, read, lambda s: check_facts(s, facts) if s else [])
    return [d for d in compiled.found if d.code.startswith("GF8")]


@pytest.mark.parametrize("case", FACT_CASES, ids=str)
def test_facts_that_contradict_the_stack(case: FactCase) -> None:
    assert compile_base("existing-plugin", case.stack).plan is not None
    found = compared(case.stack, {"n1": HostFact.model_validate(fact(case.wrong))})
    assert [(d.code, d.path) for d in found] == [(case.code, "pools[0].hosts.n1")]
    one = found[0]
    assert one.line is not None and one.file == "stacks/Pulumi.test.yaml"
    assert case.value is None or one.value == case.value
    assert case.allowed is None or one.allowed == case.allowed
    said = f"{one.message} {one.reason} {one.remedy}"
    assert "n1" in one.message and case.says in said and "None" not in said
    assert one.severity is (Severity.WARNING if case.code == "GF835" else Severity.ERROR)


@pytest.mark.parametrize("case", FACT_CASES, ids=str)
def test_the_nearest_facts_that_fit(case: FactCase) -> None:
    assert compared(case.stack, {"n1": HostFact.model_validate(fact(case.right))}) == []


def test_hosts_of_one_side_only() -> None:
    found = compared({"pools[0].hosts": {"n1": {}, "n2": {}}}, facts_of("n1", "n3"))
    assert [(d.code, d.path, d.value) for d in found] == [
        ("GF822", "pools", "n3"),
        ("GF823", "pools[0].hosts.n2", "n2"),
    ]
    assert found[0].allowed == ("n1", "n2")


def test_hosts_that_nobody_prepares_need_no_facts() -> None:
    spare = {"name": "b", "hosts": {"n2": {}}, "gpu": "T4", "gpusPerNode": 1, "driver": "none"}
    assert compared({"pools[1]": spare}, facts_of("n1")) == []
    assert compared({"pools[1]": spare}, facts_of("n1", "n2")) == []


def test_a_host_whose_facts_cannot_be_read_is_not_missing() -> None:
    assert compared({}, {"n1": None}) == []


def test_what_somebody_else_owns_is_not_judged() -> None:
    foreign = {"runtime": {"owner": "none", "handler": None, "default": False}}
    assert compared({"cluster.distribution": "microk8s"}, facts_of("n1", **foreign)) == []


def test_an_image_that_carries_cuda_compat_is_not_refused() -> None:
    old = {"driver.version": "535.309.01", "driver.library": "535.309.01"}
    assert compared(team("registry.example.com/train:cuda13.0", cudaCompat=True), facts_of("n1", **old)) == []


def test_the_loaded_driver_counts_with_the_operator_too() -> None:
    bare = {"driver": {"owner": "other", "version": "535.309.01", "flavour": "open"}, "toolkit.version": None}
    image = team("registry.example.com/train:cuda13.0")
    found = compared({**OPERATOR, **image}, facts_of("n1", **bare))
    assert [d.code for d in found] == ["GF844"]


def test_an_unhealthy_host_is_said_once() -> None:
    """Health follows from what is reported already."""
    found = compared({}, facts_of("n1", healthy=False, **{"toolkit.version": None}))
    assert [d.code for d in found] == ["GF831"]


def test_everything_at_once() -> None:
    wrong = {
        "gpus": [],
        "driver.version": "580.95.05",
        "runtime.default": True,
        "toolkit.version": None,
        "reboot_required": ["x"],
    }
    found = compared({"pools[0].driverBranch": "570"}, facts_of("n1", "n9", **wrong))
    assert sorted(d.code for d in found) == ["GF822", "GF828", "GF831", "GF833", "GF837", "GF839", "GF841"]


def test_the_roles_write_what_is_read_here() -> None:
    """The fact file of a converged host is understood, and fits the stack that its variables came from."""
    written = json.loads(json.dumps(health.facts(on(converged()), healthy=True)))
    assert compared({}, {"n1": HostFact.model_validate(written)}) == []
    unknown = set(written) - set(FACT)
    assert unknown == set(), "new facts: compare them, or add them to FACT"
    for part in ("driver", "fabric", "toolkit", "runtime", "mig"):
        assert set(written[part]) == set(FACT[part]), part


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("content", "hosts", "places", "says"),
    [
        ({"n1": FACT}, {"n1": True}, [], ""),
        ("{", None, [""], "not JSON"),
        ("[]", None, [""], "a map from host to fact"),
        (FACT, None, [""], "a map from host to fact"),
        ({"n1": {**FACT, "schema": 2}, "n2": FACT}, {"n1": False, "n2": True}, ["n1.schema"], "form 2"),
        ({"n.1": {**FACT, "healthy": 1, "gpus": None}}, {"n.1": False}, ['["n.1"].gpus', '["n.1"].healthy'], "bool"),
        ({"n1": {**FACT, "driver": {"owner": "host", "version": "latest"}}}, {"n1": False}, ["n1.driver.version"], ""),
        ({"n1": None}, {"n1": False}, ["n1"], ""),
        ({}, {}, [], ""),
    ],
)  # fmt: skip
def test_reading(tmp_path: Path, content: Any, hosts: dict[str, bool] | None, places: list[str], says: str) -> None:
    facts, found = read_facts(write(tmp_path / "facts.json", content))
    assert (None if facts is None else {host: fact is not None for host, fact in facts.items()}) == hosts
    assert [(d.code, d.path) for d in found] == [("GF820", place) for place in places]
    assert all(d.file == str(tmp_path / "facts.json") for d in found)
    assert says in " ".join(d.message for d in found)


def test_reading_a_folder(tmp_path: Path) -> None:
    assert read_facts(tmp_path)[0] is None
    write(tmp_path / "n1.json", FACT)
    write(tmp_path / "n2.json", "{")
    write(tmp_path / "notes.txt", "x")
    facts, found = read_facts(tmp_path)
    assert facts is not None and {h: f is not None for h, f in facts.items()} == {"n1": True, "n2": False}
    assert [(d.code, d.file) for d in found] == [("GF820", str(tmp_path / "n2.json"))]


def test_plan_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "Pulumi.x.yaml", stack_text(sections("existing-plugin", {})))
    facts = write(tmp_path / "facts/n1.json", FACT).parent
    assert main(["plan", "-f", str(file), "--facts", str(facts)]) == EXIT_OK
    write(facts / "n1.json", fact({"toolkit.version": None}))
    write(facts / "n2.json", "{")
    capsys.readouterr()
    assert main(["plan", "-f", str(file), "--facts", str(facts), "--json"]) == EXIT_ERRORS
    document = json.loads(capsys.readouterr().out)
    assert document["plan"] is None and document["ok"] is False
    told = sorted((d["code"], d["path"]) for d in document["diagnostics"])
    assert told == [("GF820", ""), ("GF822", "pools"), ("GF831", "pools[0].hosts.n1")]


def test_a_warning_about_facts_is_acknowledged_in_the_stack_file(tmp_path: Path) -> None:
    changes = {"acknowledge": {"GF835": "an engineering sample"}}
    file = write(tmp_path / "Pulumi.x.yaml", stack_text(sections("existing-plugin", changes)))
    facts = write(tmp_path / "facts.json", {"n1": fact({"gpus[0].model": "10de:ffff"})})
    assert find("GF835").severity is Severity.WARNING
    assert main(["plan", "-f", str(file), "--facts", str(facts)]) == EXIT_OK


def test_facts_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "Pulumi.x.yaml", stack_text(sections("existing-plugin", {})))
    with pytest.raises(SystemExit) as end:
        main(["plan", "-f", str(file), "--facts", str(tmp_path / "none")])
    assert end.value.code == EXIT_USAGE
    assert "cannot read" in capsys.readouterr().err
