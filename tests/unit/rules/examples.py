"""The examples of rules: completed to a whole input, and judged as the commands judge it."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any

import yaml
from gpufleet.cli.main import main
from gpufleet.compiled import Compiled
from gpufleet.findings.path import join_path
from gpufleet.findings.rule import Rule

from tests.unit.config import samples
from tests.unit.config.samples import compile_text, stack_text
from tests.unit.inventory.host_fact import BARE, fact

LINT = "# gpufleet lint FILE "
LATIN = "# saved as Latin-1"
#: A stack that an example of lint names: a pool whose driver comes with the node image.
A10_STACK = """\
config:
  gpufleet:cluster: {kind: aks, name: dev, location: eastus}
  gpufleet:pools: [{name: a10, vmSize: Standard_NV6ads_A10_v5, count: 1}]
  gpufleet:stack: {kind: plugin}
"""
#: Keys that only pools of existing clusters have.
_OWN = {"gpu", "hosts", "nodeSelector", "os", "architecture", "hostDriver"}
#: What the choice of the base says already.
_SAME = {("cluster", "kind"), ("stack", "kind")}
#: Keys that take the place of others.
_INSTEAD = {"autoscale": "count", "nodeSelector": "hosts"}


def found(rule: Rule, text: str, folder: Path) -> set[str]:
    """The codes of what is found in an example of a rule, and `plan` where there is a plan."""
    if rule.code[2] in "56":
        return _linted(text, folder)
    if rule.code[2] == "0":
        judged = compile_text(text)
    else:
        if ".json:" in text:
            return _with_facts(text, folder)
        if rule.code.startswith("GF81"):
            file = _write(folder / "Pulumi.x.yaml", stack_text(sections(text)))
            return _codes(_run("inventory", "-f", str(file), "--list")[1])
        judged = compiled(text)
    return {d.code for d in judged.found} | ({"plan"} if judged.plan is not None else set())


def compiled(text: str) -> Compiled:
    """The example of a rule of the plan, through the whole road."""
    return compile_text(stack_text(sections(text)))


def sections(text: str) -> dict[str, Any]:
    """The sections of the stack that an example stands for."""
    return samples.sections(*as_changes(text))


def as_changes(text: str) -> tuple[str, dict[str, Any]]:
    """The base of `samples` that an example starts from, and what it changes there."""
    example = {k.removeprefix("gpufleet:"): v for k, v in yaml.safe_load(text).items() if not k.endswith(".json")}
    pools = example.pop("pools", [])
    own = "hosts" in example or any(_OWN & set(pool) for pool in pools)
    kind = example.get("cluster", {}).get("kind") or ("existing" if own else "aks")
    route = example.get("stack", {}).get("kind", "plugin")
    base = f"{kind}-{route}"
    changes: dict[str, Any] = {}
    for section, value in example.items():
        parts = value.items() if isinstance(value, dict) and section != "acknowledge" else ()
        changes |= {join_path((section, key)): part for key, part in parts if (section, key) not in _SAME}
        changes |= {} if parts else {section: value}
    [first] = samples.BASES[base]["pools"]
    for i, pool in enumerate(pools):
        instead = {_INSTEAD[key] for key in pool if key in _INSTEAD} - set(pool)
        if i:
            more = {"hosts": {f"n{i + 1}": {}}} if "hosts" in first else {}
            changes[f"pools[{i}]"] = {k: v for k, v in {**first, **more}.items() if k not in instead} | pool
        else:
            changes |= {f"pools[0].{key}": value for key, value in pool.items() if first.get(key) != value}
            changes |= {f"pools[0].{key}": samples.REMOVE for key in instead}
    return base, changes


def as_facts(text: str) -> dict[str, dict[str, Any]]:
    """By host, what an example changes in the fact of `host_fact`: paths and values."""
    example = yaml.safe_load(text)
    bare = BARE if any(p.get("driver") == "operator" for p in example.get("gpufleet:pools", [])) else {}
    changes: dict[str, dict[str, Any]] = {}
    for name, facts in example.items():
        if name.endswith(".json"):
            own = changes[name.removesuffix(".json")] = {**bare}
            for key, value in facts.items():
                parts = value.items() if isinstance(value, dict) else ()
                own |= {f"{key}.{part}": inside for part, inside in parts} or {key: value}
    return changes


def _with_facts(text: str, folder: Path) -> set[str]:
    file = _write(folder / "Pulumi.x.yaml", stack_text(sections(text)))
    (folder / "facts").mkdir()
    for host, changes in as_facts(text).items():
        _write(folder / "facts" / f"{host}.json", json.dumps(fact(changes)))
    return _codes(_run("plan", "-f", str(file), "--facts", str(folder / "facts"))[0])


def _linted(text: str, folder: Path) -> set[str]:
    _write(folder / "Pulumi.a10.yaml", A10_STACK)
    file = folder / "example.yaml"
    stack, end, rest = text.partition("\n---\n")
    if end and "\nconfig:\n" in stack:  # the stack that the example is checked against
        _write(folder / "Pulumi.lab.yaml", stack)
    else:
        rest = text
    file.write_text(rest, encoding="latin-1" if text.startswith(LATIN) else "utf-8")
    words = shlex.split(text.splitlines()[0].removeprefix(LINT)) if text.startswith(LINT) else []
    words = [str(folder / word) if word.startswith("Pulumi.") else word for word in words]
    document = json.loads(_run("lint", str(file), "--json", *words)[0])
    return {one["code"] for one in document["findings"]} | {"plan"}


def _write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def _codes(text: str) -> set[str]:
    """Codes of findings as they are printed; also `plan` where none is an error."""
    heads = [line.split() for line in text.splitlines() if line.startswith(("error ", "warning ", "note "))]
    return {head[1] for head in heads} | (set() if any(head[0] == "error" for head in heads) else {"plan"})


def _run(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words)
    return out.getvalue(), err.getvalue()
