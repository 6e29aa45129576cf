"""`gpufleet explain`, and the pages of the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gpufleet.cli.main import EXIT_OK, EXIT_USAGE, main
from gpufleet.findings.explain import page, sources
from gpufleet.findings.registry import rules
from gpufleet.findings.rule import general

ROOT = Path(__file__).parents[3]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["explain", *words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_rule_with_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "GF421")
    assert (code, err) == (EXIT_OK, "")
    lines = out.splitlines()
    assert lines[0] == "GF421 error: A pool of zero nodes never scales up for <resource>."
    assert "            Azure/AKS#5161, https://github.com/Azure/AKS/issues/5161" in lines
    wrong, right = out.split("    wrong:\n")[1].split("    right:\n")
    assert "min: 0" in wrong and "min: 1" in right and "min: 0" not in right
    assert lines[-1] == "    page:   docs/rules/pools.md"
    assert "accept" not in out


def test_a_warning_says_how_it_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    assert '    accept: gpufleet:acknowledge: {GF420: "the reason"}' in run(capsys, "gf420")[1].splitlines()
    assert '    accept: gpu_preflight_accept: {GF725: "the reason"}' in run(capsys, "GF725")[1].splitlines()


def test_several_rules_and_rules_about_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "GF701", "GF615")
    assert code == EXIT_OK
    assert re.findall(r"^GF\d{3}", out, re.M) == ["GF701", "GF615"]
    assert "    cases:  BM-46 (docs/cases.md)" in out.splitlines()
    assert "docs/rules/preflight.md" in out and "# gpufleet lint FILE --driver 560.35.05" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    [found] = json.loads(run(capsys, "GF211", "--json")[1])
    keys = "code severity title reason remedy sources needs wrong right page"
    assert list(found) == keys.split()
    assert found["needs"] == ["value", "owner"] and found["sources"] == ["architectures", "driver_branches"]
    assert "driverBranch" in found["wrong"] and found["title"] == "Driver <value> does not drive <gpu>."


def test_all_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == EXIT_OK and [line[:5] for line in out.splitlines()] == list(rules())
    assert [one["code"] for one in json.loads(run(capsys, "--json")[1])] == list(rules())


@pytest.mark.parametrize(("word", "near"), [("GF308", "GF3"), ("GF20", "GF2"), ("G211", "GF211"), ("x", None)])
def test_an_unknown_code(capsys: pytest.CaptureFixture[str], word: str, near: str | None) -> None:
    code, out, err = run(capsys, "GF211", word)
    assert (code, out) == (EXIT_USAGE, "")
    assert f"there is no rule {word.upper()}" in err and "GF211;" not in err
    assert (f"did you mean {near}" in err) if near else ("`gpufleet explain` lists all" in err)


def test_nothing_is_left_to_be_filled_in() -> None:
    for rule in rules().values():
        for text in (rule.title, rule.reason, rule.remedy):
            assert not re.search(r"\{\w*\}", general(text)), rule.code
            assert not re.search(r"<(why|because|hint|choices|remedy_text)>", general(text)), rule.code


def test_every_rule_is_on_its_page() -> None:
    for rule in rules().values():
        text = (ROOT / page(rule)).read_text(encoding="utf-8")
        assert f"\n## {rule.code}\n" in text and all(name in text for name, _ in sources(rule))
        for example in (rule.wrong, rule.right):
            assert all(f"    {line}".rstrip() in text for line in example.splitlines())
