"""Whatever a stack file holds: no exception, no doubled report, a plan exactly when there is no error."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

from gpufleet.compiled import Compiled
from gpufleet.findings.finding import Severity
from gpufleet.plan.render import render
from gpufleet.stackfile.source import parse
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.config.samples import BASES, compile_data, compile_text, sections
from tests.unit.plan.strategies import CALM, stacks

SHIPPED = [p.read_text() for p in sorted(Path(__file__).parents[3].joinpath("stacks").glob("Pulumi.*.yaml"))]
VALID = [*(sections(b) for b in BASES), *(dict(parse(t)[0].data) for t in SHIPPED)]

_WORDS = ("kind", "name", "pools", "sharing", "driver", "hosts", "min", "quota", "", "a.b/c", 'q"uo', "values")
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(_WORDS),
    st.sampled_from(("aks", "existing", "plugin", "operator", "timeSlicing", "sku=gpu:NoSchedule", "580", "{x}", "%s")),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.sampled_from(_WORDS), st.text(max_size=5)), inner)
    ),
    max_leaves=8,
)
SECTIONS = ("cluster", "pools", "stack", "sharing", "teams", "acknowledge", "kubeconfig", "polls")


def holds(compiled: Compiled) -> None:
    """What is true of every outcome."""
    failed = any(d.severity is Severity.ERROR for d in compiled.found)
    assert compiled.failed == failed == (compiled.plan is None) == (compiled.stack is None)
    # A map's key and value, and several conflicts between keys of one map, share a path; their reasons differ.
    doubled = [k for k, n in Counter((d.code, d.path, d.reason) for d in compiled.found).items() if n > 1]
    assert doubled == []
    assert json.loads(json.dumps([d.as_dict() for d in compiled.found])) is not None
    assert render(compiled.name, compiled.plan, compiled.found).endswith(".")


@CALM
@given(st.dictionaries(st.sampled_from(SECTIONS), values))
def test_arbitrary_sections(data: dict[str, Any]) -> None:
    holds(compile_data(data))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [p for k, v in inner for p in _paths(v, (*path, k))]


@CALM
@given(st.data())
def test_valid_stacks_with_anything_changed(data: st.DataObject) -> None:
    stack = copy.deepcopy(data.draw(st.sampled_from(VALID)))
    for _ in range(data.draw(st.integers(1, 4))):
        places = _paths(stack)
        if not places:
            break
        *parents, last = data.draw(st.sampled_from(places))
        container: Any = stack
        for key in parents:
            container = container[key]
        match data.draw(st.sampled_from(("set", "drop", "rename", "add"))):
            case "set":
                container[last] = data.draw(values)
            case "drop":
                del container[last]
            case "rename" if isinstance(container, dict):
                container[f"{last}{data.draw(st.sampled_from('sxX_'))}"] = container.pop(last)
            case "add" if isinstance(container, dict):
                container[data.draw(st.sampled_from(_WORDS))] = data.draw(values)
            case _:
                container[last] = None
    holds(compile_data(stack))


@CALM
@given(st.text())
def test_arbitrary_text(text: str) -> None:
    holds(compile_text(text))
    holds(compile_text("config:\n  gpufleet:pools: " + text))


@CALM
@given(st.sampled_from(SHIPPED), st.data())
def test_shipped_texts_with_something_cut_or_put_in(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    put_in = data.draw(
        st.sampled_from(("", "\t", "- ", ": ", "{", "}", "&a ", "*a", "<<: ", "!!int ", "? ", '"', "yes", "\n", "010"))
    )
    cut = data.draw(st.integers(0, 20))
    changed = text[:at] + put_in + text[at + cut :]
    compiled = compile_text(changed)
    holds(compiled)
    last = len(changed.splitlines())
    assert all(d.line is not None and 1 <= d.line <= last for d in compiled.found)


@CALM
@given(stacks())
def test_a_stack_without_errors_always_plans(stack: dict[str, Any]) -> None:
    compiled = compile_data(stack)
    holds(compiled)
    assert [d for d in compiled.found if d.severity is Severity.ERROR] == []
    assert compiled.plan is not None
    assert [p.name for p in compiled.plan.pools] == [p["name"] for p in stack["pools"]]
