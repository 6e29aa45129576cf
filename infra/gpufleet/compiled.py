"""From a stack file to a checked plan: the one road that the CLI and the Pulumi program share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpufleet.findings.acknowledge import acknowledge
from gpufleet.findings.finding import Finding, Severity, errors
from gpufleet.fleet.model import Fleet
from gpufleet.fleet.resolve import resolve
from gpufleet.plan.compile import compile_plan
from gpufleet.plan.model import Plan
from gpufleet.rules.check import check
from gpufleet.stackfile.consequences import without_consequences
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.project import stack_name
from gpufleet.stackfile.references import check_references, without_effect
from gpufleet.stackfile.source import Source, from_engine, known_sections, read_file
from gpufleet.stackfile.validate import validate

#: Further rules of a command. They get None where the stack file is not understood completely.
MoreRules = Callable[[Fleet | None], list[Finding]]


@dataclass(frozen=True)
class Compiled:
    """`plan`, `fleet` and `stack` are None where there are errors; `found` holds everything that was found."""

    name: str
    stack: Stack | None
    fleet: Fleet | None
    plan: Plan | None
    found: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether anything forbids to go on."""
        return bool(errors(self.found))


def compile_source(name: str, source: Source, read: list[Finding], also: MoreRules | None = None) -> Compiled:
    """Checks everything and plans what can be planned. Never raises on bad input."""
    source, unknown = known_sections(source)
    loaded = validate(source, [*read, *unknown])
    rules = check_references(source)
    fleet = resolve(loaded.stack) if loaded.stack is not None else None
    if fleet is not None:
        rules += [loaded.place(d) for d in check(fleet)]
    if also is not None:
        rules += [loaded.place(d) for d in also(fleet if loaded.complete else None)]
    acknowledged = loaded.stack.acknowledge if loaded.stack else {}
    said = without_consequences(loaded.found, rules, source.data)
    if loaded.complete and not errors(said):
        said += [loaded.place(d) for d in without_effect(acknowledged, said)]
    found = acknowledge(_in_order(said), acknowledged)
    if errors(found) or fleet is None or not loaded.complete:
        return Compiled(name, None, None, None, tuple(found))
    told = tuple(d for d in found if d.severity is not Severity.ERROR)
    return Compiled(name, loaded.stack, fleet, compile_plan(name, fleet, told), tuple(found))


def _in_order(found: list[Finding]) -> list[Finding]:
    """Errors first, each kind in the order of the file; what is said twice is said once."""
    rank = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    unique = {(d.code, d.path, d.value, d.reason): d for d in reversed(found)}
    kept = [d for d in found if unique.get((d.code, d.path, d.value, d.reason)) is d]
    return sorted(kept, key=lambda d: (rank[d.severity], d.line or 0))


def compile_file(
    path: Path, name: str | None = None, shown_as: str | None = None, also: MoreRules | None = None
) -> Compiled:
    """Reads and plans a stack file.

    Raises:
        OSError: the file cannot be opened.
    """
    source, read = read_file(path, shown_as)
    return compile_source(name or stack_name(path), source, read, also)


def compile_engine(
    name: str, config: Mapping[str, str], secrets: frozenset[str], file: Path | None, shown_as: str | None = None
) -> Compiled:
    """Plans what the Pulumi engine hands over. Problems of the YAML text itself are taken from the file."""
    source = from_engine(config, secrets, file, shown_as)
    read = read_file(file, source.file)[1] if file is not None and file.is_file() else []
    return compile_source(name, source, read)
