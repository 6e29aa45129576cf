"""What rules need: with a mistake in it they say nothing."""

from __future__ import annotations

import pytest
from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import find, rules
from gpufleet.stackfile.consequences import WORDS, without_consequences

DATA = {"pools": [{"name": "a"}, {"name": "b"}], "teams": [{"name": "x"}, {"name": "y"}]}
#: Of each word: a place of a rule, a mistake that makes the word unknown there, and one that does not.
MISTAKES = {
    "value": ("pools[0].zones", "pools[0].zones", "pools[0].count"),
    "names": ("pools[0].sharing", "sharing", "sharing.half"),
    "profiles": ("sharing.half", "pools[1].sharing", "pools[1].driver"),
    "offers": ("teams[0].quota.gpu", "teams[0].pools[1]", "teams[1].pools[0]"),
    "owner": ("pools[0].driverBranch", "pools[0].driver", "pools[1].driver"),
    "version": ("pools[0].hostDriver.method", "pools[0].driverVersion", "pools[1].driverVersion"),
    "drivers": ("teams[0].images[0]", "pools[1].gpu", "pools[1].taints"),
    "sources": ("pools[0].os", "hosts.mirror.cuda", "teams[0].pools"),
}
NEEDS = {
    "names": ("GF109",),
    "profiles": ("GF303",),
    "offers": ("GF222", "GF225", "GF306", "GF317", "GF430", "GF431", "GF434"),
    "owner": (*(f"GF2{n:02}" for n in range(1, 18)), "GF223", "GF235", "GF236", "GF237", "GF240", "GF241"),
    "version": ("GF802",),
    "drivers": ("GF350", "GF351", "GF352", "GF353", "GF354", "GF356"),
    "sources": ("GF806", "GF807", "GF808"),
}


def at(code: str, path: str) -> Finding:
    return Finding(code, find(code).severity, path, "", "", "")


def said(shape: list[Finding], more: list[Finding]) -> list[tuple[str, str]]:
    return [(d.code, d.path) for d in without_consequences(shape, more, DATA)]


@pytest.mark.parametrize(("word", "code"), [(w, c) for w, codes in NEEDS.items() for c in codes])
def test_a_rule_is_silent_where_what_it_needs_is_wrong(word: str, code: str) -> None:
    path, wrong, other = MISTAKES[word]
    assert said([at("GF103", wrong)], [at(code, path)]) == [("GF103", wrong)]
    assert said([at("GF103", other)], [at(code, path)]) == [("GF103", other), (code, path)]


def test_every_word_is_tested_and_no_rule_needs_more() -> None:
    assert set(MISTAKES) == set(WORDS) == {"value", *NEEDS}
    needed = {word: {code for code, rule in rules().items() if word in rule.needs} for word in NEEDS}
    assert needed == {word: set(codes) for word, codes in NEEDS.items()}


def test_a_rule_looks_at_the_value_itself() -> None:
    path, wrong, other = MISTAKES["value"]
    assert said([at("GF103", wrong)], [at("GF410", path)]) == [("GF103", wrong)]
    assert said([at("GF103", other)], [at("GF410", path)]) == [("GF103", other), ("GF410", path)]


@pytest.mark.parametrize("code", ["GF108", "GF110"])
def test_rules_about_the_raw_text_speak_beside_a_wrong_value(code: str) -> None:
    assert said([at("GF106", "pools[0].name")], [at(code, "pools[0].name")])[1:] == [(code, "pools[0].name")]


@pytest.mark.parametrize("code", ["GF004", "GF006", "GF007", "GF008"])
def test_what_was_not_read_hides_everything_else_about_it(code: str) -> None:
    hiding = at(code, "pools[0]")
    assert said([hiding, at("GF103", "pools[0]"), at("GF102", "pools[0].gpu")], [at("GF108", "pools[0]")]) == [
        (code, "pools[0]")
    ]
    assert said([at("GF104", "cluster")], [at(code, "cluster")]) == [(code, "cluster")]
    assert {c for c, rule in rules().items() if rule.hides} == {"GF004", "GF006", "GF007", "GF008"}
