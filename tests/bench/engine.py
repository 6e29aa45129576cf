"""With the real engine and API server: preview against a hand-written program, and how fast a change arrives."""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.measure import ROOT, Row, alternate
from twin.engine import Twin, make_project, write_stack


def run() -> list[Row]:
    """Starts a twin of its own."""
    with tempfile.TemporaryDirectory() as folder:
        twin = Twin.start(Path(folder) / "twin", say=lambda _: None)
        try:
            return [_preview(twin, Path(folder)), _arrival(twin, Path(folder))]
        finally:
            twin.stop()


def _preview(twin: Twin, folder: Path) -> Row:
    ours = make_project(folder / "ours", {"aks-dev": (ROOT / "stacks" / "Pulumi.aks-dev.yaml").read_text()})
    theirs = folder / "theirs"
    shutil.copytree(ROOT / "tests" / "bench" / "minimal", theirs)
    (theirs / ".venv").symlink_to(ROOT / ".venv")
    one, other = alternate(
        lambda: twin.pulumi(ours, "aks-dev", "preview").require(),
        lambda: twin.pulumi(theirs, "dev", "preview").require(),
        7,
    )
    return Row(
        "`pulumi preview` of aks-dev", f"{one:.2f} s", f"hand-written {other:.2f} s", f"{one / other:.2f}", "1.15"
    )


STACK = """\
config:
  gpufleet:cluster: {{kind: existing, name: arrive, kubeconfig: {{path: kubeconfig}}}}
  gpufleet:pools: [{{name: t4, hosts: {{arrive-1: {{}}}}, gpu: T4, gpusPerNode: 2, sharing: s}}]
  gpufleet:stack: {{kind: plugin, namespace: arrive}}
  gpufleet:sharing: {{s: {{strategy: timeSlicing, replicas: {replicas}}}}}
"""


def _offers(twin: Twin, count: int) -> bool:
    return twin.allocatable("arrive-1") == count


def _arrival(twin: Twin, folder: Path) -> Row:
    project = make_project(folder / "arrive", {"arrive": STACK.format(replicas=4)})
    twin.add_node("arrive-1", gpus=2, model="T4")
    twin.pulumi(project, "arrive", "up").require()
    twin.wait(lambda: twin.allocatable("arrive-1") == 8, 60, "8 devices")
    totals, same = [], []
    for replicas in (8, 4, 8):
        start = time.perf_counter()
        twin.pulumi(project, "arrive", "up").require()
        same.append(time.perf_counter() - start)
        write_stack(project, "arrive", STACK.format(replicas=replicas))
        start = time.perf_counter()
        twin.pulumi(project, "arrive", "up").require()
        twin.wait(partial(_offers, twin, 2 * replicas), 60, "the new count")
        totals.append(time.perf_counter() - start)
    total, idle = sorted(totals)[1], sorted(same)[1]
    return Row(
        "`pulumi up` after a replica change until the node offers the new count",
        f"{total:.1f} s",
        f"`pulumi up` without change {idle:.1f} s",
        f"{total / idle:.1f}",
        "for orientation",
    )
