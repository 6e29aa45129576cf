"""The examples of rules: completed to a whole input, and judged as the commands judge it."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import shlex
from pathlib import Path
from typing import Any

import yaml
from gpufleet.cli.main import main
from gpufleet.compiled import Compiled
from gpufleet.findings.rule import Rule

from tests.unit.config.samples import BASES, compile_text, put, stack_text
from tests.unit.inventory.fact_cases import BARE, FACT

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
#: Keys that take the place of others.
_INSTEAD = {"autoscale": "count", "nodeSelector": "hosts"}


def found(rule: Rule, text: str, folder: Path) -> set[str]:
    """The codes of what is found in an example of a rule, and `plan` where there is a plan."""
    if rule.code[2] in "56":
        return _linted(text, folder)
    if rule.code[2] == "0":
        judged = compile_text(text)
    else:
        example = yaml.safe_load(text)
        facts = {key: value for key, value in example.items() if key.endswith(".json")}
        if facts:
            return _with_facts(sections(text), facts, folder)
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
    example = yaml.safe_load(text)
    return _completed({k.removeprefix("gpufleet:"): v for k, v in example.items() if not k.endswith(".json")})


def _completed(example: dict[str, Any]) -> dict[str, Any]:
    """The sections of an example with what is left out in it taken from the smallest right stack."""
    pools = example.get("pools", [])
    own = "hosts" in example or any(_OWN & set(pool) for pool in pools)
    kind = example.get("cluster", {}).get("kind") or ("existing" if own else "aks")
    route = example.get("stack", {}).get("kind", "plugin")
    data = copy.deepcopy(BASES[f"{kind if kind in ('aks', 'existing') else 'aks'}-{route}"])
    [first] = data["pools"]
    rows = []
    for i, pool in enumerate(pools):
        base = {k: v for k, v in first.items() if k not in {_INSTEAD.get(key) for key in pool}}
        if "hosts" in base:
            base["hosts"] = {f"n{i + 1}": {}}
        rows.append({**base, **pool})
    for section, value in example.items():
        data[section] = {**data.get(section, {}), **value} if isinstance(value, dict) else value
    return {**data, "pools": rows or data["pools"]}


def _with_facts(data: dict[str, Any], facts: dict[str, Any], folder: Path) -> set[str]:
    file = _write(folder / "Pulumi.x.yaml", stack_text(data))
    (folder / "facts").mkdir()
    for name, changes in facts.items():
        fact = copy.deepcopy(FACT)
        for path, value in BARE.items() if data["pools"][0].get("driver") == "operator" else ():
            put(fact, path, copy.deepcopy(value))
        for key, value in changes.items():
            fact[key] = {**fact[key], **value} if isinstance(value, dict) else value
        _write(folder / "facts" / name, json.dumps(fact))
    return _codes(_run("plan", "-f", str(file), "--facts", str(folder / "facts"))[0])


def _linted(text: str, folder: Path) -> set[str]:
    _write(folder / "Pulumi.a10.yaml", A10_STACK)
    file = folder / "example.yaml"
    file.write_text(text, encoding="latin-1" if text.startswith(LATIN) else "utf-8")
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
