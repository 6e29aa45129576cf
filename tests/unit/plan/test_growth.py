"""A fleet twice as large takes twice the work: counted in lines of this project executed, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from gpufleet.compiled import Compiled, compile_source
from gpufleet.fleet.resolve import resolve
from gpufleet.plan.compile import compile_plan
from gpufleet.rules.check import check
from gpufleet.stackfile.source import Source

from tests.unit.config.samples import compile_data, sections

INFRA = str(Path(__file__).parents[3] / "infra")


def lines_executed(work: Callable[[], Any]) -> int:
    """Lines of infra/ that run; a loop counts once per turn. The same in every run, on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call":
            return trace if frame.f_code.co_filename.startswith(INFRA) else None
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def fleet(base: str, pools: int) -> dict[str, Any]:
    """Pools with taints, labels and profiles; one profile for five of them, one team for ten."""
    kinds = max(pools // 5, 1)
    data = sections(base)
    data["sharing"] = {f"p{i}": {"strategy": "timeSlicing", "replicas": 2 + i % 40} for i in range(kinds)}
    first = data["pools"][0]
    data["pools"] = []
    for i in range(pools):
        pool = {
            **first,
            "name": f"a{i}",
            "sharing": f"p{i % kinds}",
            "taints": [f"k{i % 7}=v:NoSchedule", "s:NoExecute"],
        }
        if "hosts" in pool:
            pool["hosts"] = {f"n{i}": {"address": f"10.0.{i // 250}.{i % 250}"}, f"m{i}": {}}
        else:
            pool |= {"spot": i % 2 == 0, "labels": {"team": f"t{i}"}}
        data["pools"].append(pool)
    data["teams"] = [
        {"name": f"t{i}", "namespace": f"t{i}", "pools": [f"a{10 * i + j}" for j in range(10)], "quota": {"gpu": 5}}
        for i in range(pools // 10)
    ]
    return data


BASES = ("aks-plugin", "aks-operator", "existing-plugin", "existing-operator")


def work(data: dict[str, Any]) -> Compiled:
    return compile_source("fleet", Source(data=data), [])


@pytest.mark.parametrize("base", BASES)
def test_plan_is_linear(base: str) -> None:
    small, large = fleet(base, 40), fleet(base, 160)
    for data in (small, large):
        assert compile_data(data).plan is not None  # fills the caches as well
    counts = [lines_executed(lambda data=data: work(data)) for data in (small, large)]
    assert counts[1] / counts[0] < 4.2, counts
    assert counts[0] > 1000


@pytest.mark.parametrize("base", BASES)
def test_reporting_is_linear(base: str) -> None:
    """A thousand pools with a mistake each: as many reports, and no more work for each."""

    def broken(pools: int) -> dict[str, Any]:
        data = fleet(base, pools)
        for i, pool in enumerate(data["pools"]):
            pool["taints"] = ["sku=gpu:NO"]
            if i % 4 == 0:
                pool["colour"] = "red"
            if i % 4 == 1:
                pool |= {"driverBranch": "570", "driverVersion": "580.95.05"}
            if i % 4 == 2:
                del pool["name"]
        return data

    small, large = broken(40), broken(160)
    found = [len(work(data).found) for data in (small, large)]
    assert found[1] == pytest.approx(4 * found[0], abs=8)
    counts = [lines_executed(lambda data=data: work(data)) for data in (small, large)]
    assert counts[1] / counts[0] < 4.4, counts


def test_the_counter_sees_loops() -> None:
    """A quadratic part would show: the check of one stack for each of its pools."""
    stacks = [compile_data(fleet("aks-plugin", n)).stack for n in (5, 20)]
    assert all(stacks)
    counts = [
        lines_executed(lambda stack=stack: [check(resolve(stack)) for _ in stack.pools])  # type: ignore[union-attr,arg-type]
        for stack in stacks
    ]
    assert counts[1] / counts[0] > 8
    assert lines_executed(lambda: compile_plan("x", resolve(stacks[0]))) == lines_executed(  # type: ignore[arg-type]
        lambda: compile_plan("x", resolve(stacks[0]))  # type: ignore[arg-type]
    )
