"""What a rule says, wherever it is broken: for `gpufleet explain` and for the pages of the documentation."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from gpufleet.catalog import reading
from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import GROUPS
from gpufleet.findings.rule import Rule, general

_THREAD = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


def page(rule: Rule) -> str:
    """The page of the documentation that holds the rule."""
    return f"docs/rules/{GROUPS[rule.code[2]].page}.md"


def sources(rule: Rule) -> list[tuple[str, str]]:
    """Each source as it is written, and what it stands for: an address, or the text of a short name."""
    return [(part, _meaning(part)) for part in rule.source.split("; ")]


def in_full(source: str) -> str:
    """The source of a row with its short names written out: `VM-DOC(page)` is where the pages lie, and the page."""
    found = []
    for part in source.split("; "):
        page = re.search(r"\(.*\)$", part)
        text = _meaning(part).removesuffix("; page in brackets")
        found.append(f"{text or part}{f' {page[0]}' if page and text else ''}")
    return "; ".join(found)


def _meaning(part: str) -> str:
    thread = _THREAD.fullmatch(part)
    if thread is not None:
        return f"https://github.com/{thread[1]}/issues/{thread[2]}"
    return _known().get(re.split(r"[ (]", part)[0], "")


@cache
def _known() -> dict[str, str]:
    """Each short name, and what it stands for."""
    return {row["id"]: row["source"] for row in reading.rows("sources", "sources")}


def as_text(rule: Rule) -> str:
    """The rule for a person."""
    lines = [f"{rule.code} {rule.severity.value}: {general(rule.title)}"]
    lines += [f"    why:    {general(rule.reason)}", f"    do:     {general(rule.remedy)}"]
    for i, (name, meaning) in enumerate(sources(rule)):
        lines.append(f"    {'from:' if i == 0 else '     '}   {name}{f', {meaning}' if meaning else ''}")
    if rule.cases:
        lines.append(f"    cases:  {', '.join(rule.cases)} (docs/cases.md)")
    for name, example in (("wrong", rule.wrong), ("right", rule.right)):
        if example:
            lines += [f"    {name}:", *(f"        {line}".rstrip() for line in example.splitlines())]
    if rule.severity is Severity.WARNING:
        lines.append(f'    accept: {GROUPS[rule.code[2]].accept}: {{{rule.code}: "the reason"}}')
    return "\n".join([*lines, f"    page:   {page(rule)}"])


def as_dict(rule: Rule) -> dict[str, Any]:
    """The rule as JSON; keys without a value are left out."""
    found = {
        "code": rule.code,
        "severity": rule.severity.value,
        "title": general(rule.title),
        "reason": general(rule.reason),
        "remedy": general(rule.remedy),
        "sources": [name for name, _ in sources(rule)],
        "cases": list(rule.cases),
        "needs": list(rule.needs),
        "wrong": rule.wrong,
        "right": rule.right,
        "page": page(rule),
    }
    return {key: value for key, value in found.items() if value}
