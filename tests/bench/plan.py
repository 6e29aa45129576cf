"""`gpufleet plan`: start-up against its own libraries, and growth with the number of pools."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from gpufleet.compiled import compile_source
from gpufleet.stackfile.source import parse

from tests.bench.measure import Row, alternate, command

#: pydantic loads what makes models when the first one is made.
ONE_MODEL = "import yaml\nfrom pydantic import BaseModel\nclass Model(BaseModel):\n    n: int\nModel(n=1)"

HEAD = """\
config:
  gpufleet:cluster: {kind: aks, name: big, location: eastus, version: "1.36"}
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing:
    four: {strategy: timeSlicing, replicas: 4}
    two: {strategy: timeSlicing, replicas: 2, renameByDefault: true}
  gpufleet:pools:
"""


def stack(pools: int) -> str:
    """A stack file of that many pools, every third one spot, with taints and both profiles."""
    rows = []
    for i in range(pools):
        spot = "spot: true, " if i % 3 == 0 else ""
        sharing = ("four", "two")[i % 2]
        rows.append(
            f"    - {{name: p{i}, vmSize: Standard_NC4as_T4_v3, {spot}autoscale: {{min: 1, max: 4}},"
            f' taints: ["team-{i % 100}=yes:NoSchedule"], sharing: {sharing}}}'
        )
    return HEAD + "\n".join(rows) + "\n"


def seconds(pools: int, rounds: int) -> float:
    """Median seconds of CPU time from text to JSON: growth is to be seen, not what else the machine does."""
    text, taken = stack(pools), []
    for _ in range(rounds):
        start = time.process_time()
        compiled = compile_source("big", *parse(text))
        assert compiled.plan is not None and len(compiled.plan.pools) == pools
        compiled.plan.as_json()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def run() -> list[Row]:
    """Start-up and growth."""
    python = Path(sys.executable)
    plan = command([python.parent / "gpufleet", "plan", "-s", "aks-dev"])
    base = command([python, "-c", "import yaml, pydantic"])
    mine, theirs = alternate(plan, base, 25)
    again, one = alternate(plan, command([python, "-c", ONE_MODEL]), 25)
    rows = [
        Row(
            "`gpufleet plan -s aks-dev`, whole process",
            f"{mine * 1000:.0f} ms",
            f'`python -c "import yaml, pydantic"` {theirs * 1000:.0f} ms',
            f"{mine / theirs:.2f}",
            "2",
        ),
        Row(
            "the same against pydantic at work",
            f"{again * 1000:.0f} ms",
            f"`import yaml` and a pydantic model of one field {one * 1000:.0f} ms",
            f"{again / one:.2f}",
            "for orientation",
        ),
    ]
    seconds(10, 1)
    ten, hundred, thousand = seconds(10, 9), seconds(100, 5), seconds(1000, 3)
    rows.append(
        Row(
            "plan of 100 pools (CPU)",
            f"{hundred * 1000:.0f} ms",
            f"10 pools {ten * 1000:.1f} ms",
            f"{hundred / ten:.1f}",
            "10",
        )
    )
    rows.append(
        Row(
            "plan of 1,000 pools (CPU)",
            f"{thousand:.2f} s",
            f"100 pools {hundred * 1000:.0f} ms",
            f"{thousand / hundred:.1f}",
            "10; 2 s",
        )
    )
    return rows
