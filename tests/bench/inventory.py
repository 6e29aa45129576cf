"""Stack file of 1,000 hosts -> inventory, and -> the text that Ansible prints."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from gpufleet.compiled import compile_source
from gpufleet.inventory.inventory import inventory
from gpufleet.inventory.show import as_json, listing
from gpufleet.stackfile.source import parse

from tests.bench.measure import Row

HEAD = """\
config:
  gpufleet:cluster: {kind: existing, name: big, kubeconfig: {path: big.conf}}
  gpufleet:stack: {kind: plugin}
  gpufleet:hosts:
    ssh: {user: ops}
    mirror: {toolkit: {url: "https://m.example.com/toolkit"}}
  gpufleet:sharing: {four: {strategy: timeSlicing, replicas: 4, timeSlice: short}}
  gpufleet:pools:
"""


def stack(hosts: int, per_pool: int = 50) -> str:
    """A stack file of that many hosts, in pools of `per_pool`."""
    lines = []
    for i in range(0, hosts, per_pool):
        names = ", ".join(f"gpu{n:04}: {{address: 10.0.{n // 250}.{n % 250 + 1}}}" for n in range(i, i + per_pool))
        lines.append(
            f'    - {{name: p{i}, gpu: T4, gpusPerNode: 4, driverBranch: "580", os: ubuntu-24.04, sharing: four,'
            f" hosts: {{{names}}}}}"
        )
    return HEAD + "\n".join(lines) + "\n"


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _whole(text: str, hosts: int) -> str:
    compiled = compile_source("big", *parse(text))
    assert compiled.fleet is not None and compiled.plan is not None
    found = inventory(compiled.fleet, "/big.conf")
    assert len(found.hosts) == hosts
    return as_json(listing(found))


def inventory_rows() -> list[Row]:
    """Plan to inventory alone, and the whole road from the text of the stack file to the printed inventory."""
    small, large = stack(100), stack(1000)
    compiled = compile_source("big", *parse(large))
    assert compiled.fleet is not None
    planned = compiled.fleet
    alone = statistics.median(_seconds(lambda: inventory(planned)) for _ in range(9))
    # By turns, so that a busy machine slows both; a small one is the mean of ten.
    rounds = [
        (_seconds(lambda: [_whole(small, 100) for _ in range(10)]) / 10, _seconds(lambda: _whole(large, 1000)))
        for _ in range(7)
    ]
    hundred, thousand = (statistics.median(times) for times in zip(*rounds, strict=True))
    return [
        Row("plan to inventory, 1,000 hosts", f"{alone * 1000:.1f} ms", "-", "-", "2 s"),
        Row(
            "stack file to printed inventory, 1,000 hosts",
            f"{thousand * 1000:.0f} ms",
            f"100 hosts {hundred * 1000:.0f} ms",
            f"{thousand / hundred:.1f}",
            "10; 2 s",
        ),
    ]


def run() -> list[Row]:
    """All rows."""
    return inventory_rows()
