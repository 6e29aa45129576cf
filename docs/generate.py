"""Writes what is derived from code and tables: `python docs/generate.py`; with --check it only compares."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import gpufleet.places  # noqa: F401  makes the kinds of clusters and the methods known
from gpufleet.advise.docs import BLOCKS, fill
from gpufleet.catalog import gpu_models
from gpufleet.catalog.reading import rows
from gpufleet.findings.explain import sources
from gpufleet.findings.registry import GROUPS, rules
from gpufleet.findings.rule import Rule, general
from gpufleet.stackfile.schema import stack_schema

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "docs" / "rules"
_CODE = re.compile(r"(`[^`]*`)")


def _markdown(template: str) -> str:
    """A text with placeholders: in italics, and inside code as `<value>`."""
    parts = [
        general(part) if part.startswith("`") else re.sub(r"&lt;(\w+)>", r"*\1*", general(part).replace("<", "&lt;"))
        for part in _CODE.split(template)
    ]
    return "".join(parts)


def _source(rule: Rule) -> str:
    return "; ".join(f"[{name}]({text})" if text.startswith("https:") else name for name, text in sources(rule))


def _section(rule: Rule) -> list[str]:
    """One rule: what it says, why, what to do, where that is known from, and its examples."""
    lines = ["", f"## {rule.code}", "", f"{rule.severity.value.capitalize()}: **{_markdown(rule.title)}**", ""]
    lines += [f"- Why: {_markdown(rule.reason)}", f"- Do: {_markdown(rule.remedy)}", f"- Source: {_source(rule)}"]
    if rule.cases:
        cases = ", ".join(f"[{case}](../cases.md#{case.lower()})" for case in rule.cases)
        lines.append(f"- Problems of users: {cases}")
    for name, example in (("Wrong", rule.wrong), ("Right", rule.right)):
        if example:
            lines += ["", f"{name}:", "", *(f"    {line}".rstrip() for line in example.splitlines())]
    return lines


def rule_pages() -> dict[Path, str]:
    """One page per group of rules, and a page that lists the groups and the sources."""
    pages, table = {}, []
    for digit, group in GROUPS.items():
        mine = [rule for rule in rules().values() if rule.code[2] == digit]
        head = [f"# {group.title}", "", "Generated from the rules; do not edit. [All groups](README.md)"]
        head += ABOUT.get(digit, ())
        body = [line for rule in mine for line in _section(rule)]
        pages[RULES / f"{group.page}.md"] = "\n".join([*head, *body]) + "\n"
        table.append(f"| {mine[0].code} to {mine[-1].code} | [{group.title}]({group.page}.md) | {len(mine)} |")
    used = {name.split(" ")[0].split("(")[0] for rule in rules().values() for name, _ in sources(rule)}
    meanings = [f"| {row['id']} | {row['source']} |" for row in rows("sources", "sources") if row["id"] in used]
    pages[RULES / "README.md"] = INDEX.format(groups="\n".join(table), sources="\n".join(meanings))
    return pages


#: What a page says before its rules, by the group's digit.
ABOUT = {
    "7": (
        "",
        "An error stops the run before any change. A warning is shown; you can accept it with a reason",
        """(`gpu_preflight_accept: {GF710: "moves to 595 in March"}`). A note is only shown.""",
        "",
        "GF701 to GF769 come from `playbooks/preflight.yml`; GF770 and higher come from the health check and",
        "`playbooks/verify.yml`. Examples are variables of the roles, or what is seen on the host. A line with `#`",
        "says on which host.",
    )
}

INDEX = """# Rules

Generated from the rules; do not edit. `gpufleet explain GF307` prints one of them.

Every finding has a code, which never changes its meaning. An error stops everything before any change. A note
informs. A warning can be accepted in the stack file, by its code and a reason that a reviewer can judge:

    gpufleet:acknowledge: {{GF420: "a dev pool, four nodes at most"}}

A warning about a host (GF7) is accepted in the inventory, with the variable `gpu_preflight_accept`.

Words in *italics* stand for what a finding names. Examples show only the keys that matter; the rest of the stack is
right.

| codes | group | rules |
| --- | --- | --- |
{groups}

## Short names of sources

| name | source |
| --- | --- |
{sources}

Other names are public threads (`owner/repository#number`), tables of the [catalogue](../catalogue.md), and files of
this repository.
"""


def mig_tables() -> str:
    """Markdown: GPUs that share one table of profiles in one row, largest count per GPU behind each profile."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for model in gpu_models().values():
        if model.mig_profiles:
            other = {p: f"{p} (or {model.mig_renamed[p]})" if p in model.mig_renamed else p for p in model.mig_profiles}
            profiles = ", ".join(f"{other[p]} {count}" for p, count in model.mig_profiles.items())
            key = (profiles, ", ".join(model.mig_aks.values()) or "-", model.mig_min_driver or "not known")
            rows.setdefault(key, []).append(model.id)
    head = ["| GPU | profiles, each with the most per GPU | cut by AKS | lowest driver |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *(f"| {', '.join(gpus)} | {' | '.join(key)} |" for key, gpus in rows.items())])


def _pages() -> dict[Path, str]:
    """Pages with generated blocks, filled."""
    blocks = {**BLOCKS, "mig.md": {"mig": mig_tables}}
    return {path: fill(path.read_text(encoding="utf-8"), blocks[path.name]) for path in map(_doc, blocks)}


def _doc(name: str) -> Path:
    return ROOT / "docs" / name


def outputs() -> dict[Path, str]:
    """File -> text that it should hold."""
    return {
        ROOT / "stacks" / "schema.json": json.dumps(stack_schema(), indent=2) + "\n",
        **rule_pages(),
        **_pages(),
    }


def main() -> int:
    """0 when everything is current."""
    stale = [p for p, text in outputs().items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{'stale' if '--check' in sys.argv else 'written'}: {path.relative_to(ROOT)}")
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(outputs()[path], encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
