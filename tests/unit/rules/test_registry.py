"""Rules as units: their texts stand alone, their sources can be found, and checks run in order and in scope."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpufleet.catalog import reading
from gpufleet.findings import registry
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import GROUPS, check, checks, find, finding, rule, rules, run_checks
from gpufleet.findings.rule import Rule
from gpufleet.stackfile.consequences import WORDS

ROOT = Path(__file__).parents[3]
EVERY = pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.code)


def test_groups_and_codes() -> None:
    assert {code[2] for code in rules()} == set(GROUPS)
    assert list(rules()) == sorted(rules())
    assert all(re.fullmatch(r"GF\d{3}", code) for code in rules())


@EVERY
def test_texts(rule: Rule) -> None:
    """Each is a sentence; the reason needs no detail, so that it says something in the documentation."""
    for text in (rule.title, rule.because, rule.remedy, rule.do):
        for _, name, spec, conversion in string.Formatter().parse(text):
            assert name is None or (name.isidentifier() and not spec and conversion is None)
    assert "{" not in rule.reason
    for text in (rule.reason, rule.remedy):
        assert text.strip() == text and text.endswith((".", "}", "]", "`", ">", ")", "'")), text
    if rule.code[2] == "7":
        heading, colon, _ = rule.title.partition(": ")  # the roles' tasks get both parts
        assert colon and "{" not in heading and len(rule.title) > len(f"{heading}: "), rule.title
    else:
        assert rule.title[-1] in ".}`:", rule.title
    assert not re.search(r"\{(why|because|hint)\}", rule.title + rule.remedy)


@EVERY
def test_sources_can_be_found_again(rule: Rule) -> None:
    """A short name of sources.yaml, a repository or thread, a table of the catalogue, or a file of ours."""
    known = {row["id"] for row in reading.rows("sources", "sources")} | set(reading.files())
    known |= {table for file in reading.files() for table in reading.load(file)}
    for part in rule.source.split("; "):
        name = part.partition(" (")[0]
        thread = re.fullmatch(r"[\w.-]+/[\w.-]+(#\d+)?", name) is not None
        assert name in known or (ROOT / name).is_file() or thread, part


@EVERY
def test_cases_are_those_of_the_documentation(rule: Rule) -> None:
    listed = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
    assert all(f'<a id="{case.lower()}"></a>' in listed for case in rule.cases)


@EVERY
def test_needs_are_words(rule: Rule) -> None:
    assert set(rule.needs) <= set(WORDS)
    assert "value" in rule.needs or rule.needs == ()


@EVERY
def test_examples_differ(rule: Rule) -> None:
    assert rule.wrong and rule.right and rule.wrong != rule.right


def test_a_code_is_defined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_rules", dict(rules()))
    texts = {"title": "t.", "reason": "r.", "remedy": "d.", "source": "s"}
    with pytest.raises(ValueError, match="two rules GF201"):
        rule("GF201", Severity.ERROR, **texts)
    with pytest.raises(ValueError, match="does not stand once"):
        rule("GF299", Severity.ERROR, wrong="a a", fix=("a", "b"), **texts)


def test_an_unknown_code_is_a_fault_of_the_caller() -> None:
    for code in ("GF299", "GF799", "x"):
        with pytest.raises(KeyError):
            finding(code, "pools")


def made(code: str, **more: object) -> Rule:
    texts = {"title": "{value} is wrong.", "reason": "Always.", "remedy": "Do {what}.", "source": "s"}
    return Rule(code, Severity.ERROR, **{**texts, **more})  # type: ignore[arg-type]


def test_the_reason_of_one_place_is_shown_instead_of_the_general_one() -> None:
    assert made("GF299").at("a", value=1, what="it").reason == "Always."
    assert made("GF299").at("a", value=1, what="it", because="Of {this}.").reason == "Of {this}."
    more = made("GF299", because="{because} And {what}.", do="Now {what}.").at("a", because="So.", what="x", value=1)
    assert (more.reason, more.remedy) == ("So. And x.", "Now x.")
    with pytest.raises(KeyError):
        made("GF299").at("a", value=1)


def test_checks_run_in_order_and_only_where_what_they_need_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_checks", {})
    plain, owned = made("GF298", remedy="x."), made("GF299", remedy="x.", needs=("value", "owner"))
    ran: list[str] = []

    @check("pool", plain, owned)
    def both(pool: str) -> Iterator[Finding]:
        ran.append("both")
        yield plain.at(pool, value=1)
        yield owned.at(pool, value=2)

    @check("pool", owned)
    def one(pool: str) -> Iterator[Finding]:
        ran.append("one")
        yield owned.at(pool, value=3)

    @check("stack", plain)
    def other(stack: str) -> Iterator[Finding]:
        yield plain.at(stack, value=4)

    assert [c.find for c in checks("pool")] == [both, one]
    assert [d.value for d in run_checks("pool", "pools[0]")] == ["1", "2", "3"]
    assert [d.value for d in run_checks("stack", "")] == ["4"]
    ran.clear()
    assert [d.value for d in run_checks("pool", "pools[0]", lambda word: word != "owner")] == ["1"]
    assert ran == ["both"]


def test_a_check_says_nothing_of_rules_that_it_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_checks", {})
    mine, foreign = made("GF298", remedy="x."), made("GF299", remedy="x.")

    @check("pool", mine)
    def wrong(pool: str) -> Iterator[Finding]:
        yield foreign.at(pool, value=1)

    with pytest.raises(ValueError, match="GF299"):
        run_checks("pool", "pools[0]")


def test_rules_are_found_one_by_one() -> None:
    assert find("GF211").code == "GF211" and find("GF001").hides is False and find("GF004").hides
