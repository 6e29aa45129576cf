"""All rules and their checks. A module of rules is imported when one of its codes is asked for.

    GF410 = rule("GF410", Severity.WARNING, title="...", reason="...", remedy="...", source="...")

    @check("pool", GF410)
    def all_zones(pool: FleetPool) -> Iterator[Finding]:
        if len(pool.zones) == 3:
            yield GF410.at(f"{pool.path}.zones", value=pool.zones)

`run_checks("pool", pool, known)` runs the checks of a scope in the order in which they were defined.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from textwrap import dedent
from typing import Any, NamedTuple, TypeVar

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.rule import Rule

Subject = TypeVar("Subject")


#: Where a stack file accepts warnings.
IN_STACK = "gpufleet:acknowledge"


class Group(NamedTuple):
    """The codes of one hundred: their page in the documentation and the package whose modules define them.

    `accept` is the key under which a warning is accepted with a reason.
    """

    page: str
    title: str
    package: str
    accept: str = IN_STACK


#: By the first digit of a code.
GROUPS = {
    "0": Group("reading", "Reading the stack file", "gpufleet.stackfile.rules"),
    "1": Group("shape", "Keys and values of the stack file", "gpufleet.stackfile.rules"),
    "2": Group("driver", "Driver owner and hardware", "gpufleet.rules"),
    "3": Group("sharing", "Sharing", "gpufleet.rules"),
    "4": Group("pools", "Pools, autoscaler, teams", "gpufleet.rules"),
    "5": Group("lint-configuration", "Lint: configuration", "gpufleet.lint.rules"),
    "6": Group("lint-workloads", "Lint: workloads and other objects", "gpufleet.lint.rules"),
    "7": Group("preflight", "Hosts: preflight and verify", "gpufleet.hosts.rules", "gpu_preflight_accept"),
    "8": Group("hosts", "Hosts: stack file, inventory, facts", "gpufleet.rules"),
    "9": Group("advice", "Advice", "gpufleet.rules"),
}

_rules: dict[str, Rule] = {}


@dataclass(frozen=True)
class Check:
    """A function that looks for breaches of some rules in one thing of a scope."""

    scope: str
    rules: tuple[Rule, ...]
    find: Callable[[Any], Iterable[Finding]]


_checks: dict[str, list[Check]] = {}


def rule(code: str, severity: Severity, *, right: str = "", fix: tuple[str, str] | None = None, **texts: Any) -> Rule:
    """Makes a rule and registers it; the arguments are the fields of `Rule`.

    Args:
        right: the right example as a whole, or
        fix: what to replace in the wrong example, and by what.

    Raises:
        ValueError: the code is taken, or the wrong example does not hold what is to be replaced exactly once.
    """
    if code in _rules:
        raise ValueError(f"there are two rules {code}")
    wrong = dedent(texts.pop("wrong", "")).strip("\n")
    if fix is not None:
        if wrong.count(fix[0]) != 1:
            raise ValueError(f"{code}: {fix[0]!r} does not stand once in the wrong example")
        right = wrong.replace(*fix)
    made = _rules[code] = Rule(code, severity, wrong=wrong, right=dedent(right).strip("\n"), **texts)
    return made


def look_up(code: str) -> Rule | None:
    """The rule of a code, None where there is none."""
    if code not in _rules and (group := GROUPS.get(code[2:3])) is not None:
        load(group.package)
    return _rules.get(code)


def find(code: str) -> Rule:
    """The rule of a code.

    Raises:
        KeyError: there is none (a bug of the caller).
    """
    found = look_up(code)
    if found is None:
        raise KeyError(code)
    return found


def finding(code: str, path: str, **details: Any) -> Finding:
    """A finding for callers that know the code only; the arguments are those of `Rule.at`."""
    return find(code).at(path, **details)


def rules() -> Mapping[str, Rule]:
    """All rules by code, in the order of codes."""
    for package in dict.fromkeys(group.package for group in GROUPS.values()):
        load(package)
    return dict(sorted(_rules.items()))


def check(
    scope: str, *about: Rule
) -> Callable[[Callable[[Subject], Iterable[Finding]]], Callable[[Subject], Iterable[Finding]]]:
    """Registers a function as the check of one rule, or of several that are decided together.

    Args:
        scope: what the function gets: "pool", "stack", or any other word that callers of `run_checks` use.
        about: the rules that it may find broken.
    """

    def register(function: Callable[[Subject], Iterable[Finding]]) -> Callable[[Subject], Iterable[Finding]]:
        _checks.setdefault(scope, []).append(Check(scope, about, function))
        return function

    return register


def checks(scope: str) -> tuple[Check, ...]:
    """The checks of a scope, in the order of definition."""
    return tuple(_checks.get(scope, ()))


def scopes() -> tuple[str, ...]:
    """The scopes that have checks."""
    return tuple(_checks)


def run_checks(scope: str, subject: object, known: Callable[[str], bool] = lambda word: True) -> list[Finding]:
    """What the checks of a scope find in one thing.

    Args:
        scope: which checks.
        subject: what they look at.
        known: whether a word that rules need is known of the subject. A check none of whose rules can be decided does
            not run; of one that runs, what cannot be decided is left out.

    Raises:
        ValueError: a check finds a rule broken that it does not name (a bug of the check).
    """
    found: list[Finding] = []
    for one in checks(scope):
        about = {r.code: all(known(word) for word in r.needs) for r in one.rules}
        for d in one.find(subject) if any(about.values()) else ():
            if d.code not in about:
                raise ValueError(f"the check {one.find.__name__} does not name {d.code}")
            if about[d.code]:
                found.append(d)
    return found


def load(package: str) -> None:
    """Imports the modules of a package of rules, in the order of its `SUBJECTS`."""
    for name in getattr(importlib.import_module(package), "SUBJECTS", ()):
        importlib.import_module(f"{package}.{name}")
