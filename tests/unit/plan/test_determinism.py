"""The same input gives the same bytes, in every process, whatever the order of keys in the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpufleet.compiled import compile_file
from gpufleet.stackfile.source import parse
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.config.samples import compile_data, compile_text
from tests.unit.config.test_together import TEN_AKS, TEN_EXISTING
from tests.unit.plan.strategies import CALM, stacks

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(ROOT.joinpath("stacks").glob("Pulumi.*.yaml"))

_PRINT_ALL = """
import json, sys
from pathlib import Path
from gpufleet.compiled import compile_engine
from tests.unit.config.samples import compile_text
for text in json.load(sys.stdin):
    compiled = compile_text(text)
    print(json.dumps([d.as_dict() for d in compiled.found]))
    print(compiled.plan.as_json() if compiled.plan else None)
    from gpufleet.stackfile.source import parse
    config = {f"gpufleet:{k}": json.dumps(v, default=str) for k, v in parse(text)[0].data.items()}
    engine = compile_engine("x", config, frozenset(), None)
    print(json.dumps([d.as_dict() for d in engine.found]))
"""


def _run(seed: str) -> str:
    texts = [*(p.read_text() for p in SHIPPED), TEN_AKS, TEN_EXISTING, _MANY_RUNTIMES]
    done = subprocess.run(
        [sys.executable, "-c", _PRINT_ALL],
        input=json.dumps(texts),
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


#: Several profiles, each with pools whose default runtimes differ: one diagnostic per profile.
_MANY_RUNTIMES = json.dumps(
    {
        "config": {
            "gpufleet:cluster": {"kind": "existing", "name": "x", "kubeconfig": {"path": "k"}},
            "gpufleet:stack": {"kind": "plugin"},
            "gpufleet:sharing": {f"p{i}": {"strategy": "timeSlicing", "replicas": 2 + i} for i in range(6)},
            "gpufleet:pools": [
                {
                    "name": f"q{i}-{kind}".lower(),
                    "hosts": {f"n{i}-{kind}".lower(): None},
                    "gpu": "T4",
                    "gpusPerNode": 1,
                    "sharing": f"p{i}",
                    "nvidiaDefaultRuntime": kind,
                }
                for i in range(6)
                for kind in (True, False)
            ],
        }
    }
)


def test_no_process_differs_from_another() -> None:
    """Sets of texts iterate in another order in each process; nothing that is printed may depend on it."""
    outputs = {_run(seed) for seed in ("0", "1", "4711")}
    assert len(outputs) == 1
    assert len(next(iter(outputs))) > 10_000


def _shuffled(value: Any, draw: Any) -> Any:
    if isinstance(value, dict):
        return {k: _shuffled(value[k], draw) for k in draw(st.permutations(list(value)))}
    if isinstance(value, list):
        return [_shuffled(v, draw) for v in value]
    return value


@CALM
@given(stacks(), st.data())
def test_the_order_of_keys_does_not_matter(stack: dict[str, Any], data: st.DataObject) -> None:
    stack["stack"]["images"] = {"registry": "mirror", "pullSecrets": ["a"]}
    if stack["stack"]["kind"] == "operator":
        stack["stack"]["values"] = {
            **stack["stack"].get("values", {}),
            "operator": {"nodeSelector": {"d": "1", "c": "2"}},
            "extraObjects": [],
            "driver": {"rdma": {}, "manager": {}},
        }
    again = compile_data(_shuffled(stack, data.draw))
    plan = compile_data(stack).plan
    assert plan is not None
    assert again.plan is not None
    told = [sorted(json.dumps(w) for w in p.warnings) for p in (plan, again.plan)]
    assert told[0] == told[1]
    assert {**again.plan.as_dict(), "warnings": None} == {**plan.as_dict(), "warnings": None}
    bytes_ = [json.dumps({**p.as_dict(), "warnings": None}) for p in (plan, again.plan)]
    assert bytes_[0] == bytes_[1]


@CALM
@given(stacks())
def test_compiling_twice_changes_nothing(stack: dict[str, Any]) -> None:
    before = json.dumps(stack)
    first, second = compile_data(stack), compile_data(stack)
    assert json.dumps(stack) == before, "the input is not touched"
    assert first == second
    assert first.plan is not None
    assert second.plan is not None
    assert first.plan.as_json() == second.plan.as_json()


@pytest.mark.parametrize("file", SHIPPED, ids=lambda p: p.stem)
def test_a_plan_survives_json(file: Path) -> None:
    plan = compile_file(file).plan
    assert plan is not None
    document = json.loads(plan.as_json())
    assert json.loads(json.dumps(plan.as_dict())) == document
    assert (document["version"], document["stack"]) == (2, file.stem.removeprefix("Pulumi."))
    assert list(document) == [
        "version", "stack", "cluster", "route", "pools", "profiles", "plugin", "operator", "teams", "images",
        "images_unknown", "warnings",
    ]  # fmt: skip


def test_comments_and_spelling_of_yaml_do_not_matter() -> None:
    for file in SHIPPED:
        text = file.read_text()
        data = parse(text)[0].data
        flow = json.dumps({"config": {f"gpufleet:{k}": v for k, v in data.items()}}, default=str)
        plans = [compile_text(t, "x").plan for t in (flow, text)]
        assert all(plans)
        assert len({repr(replace(plan, warnings=())) for plan in plans if plan}) == 1  # warnings name lines
