"""Timing of alternating commands, and tables of ratios."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """One line of a result table; `aim` is what the value should not pass, as text."""

    what: str
    value: str
    against: str
    ratio: str
    aim: str


def alternate(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median wall seconds of both, run in turns so that a noisy moment hits both; one round before is not counted."""
    times: tuple[list[float], list[float]] = ([], [])
    for round_ in range(rounds + 1):
        for taken, call in zip(times, (one, other), strict=True):
            start = time.perf_counter()
            call()
            if round_:
                taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def command(words: Sequence[str | Path], **env: str) -> Callable[[], None]:
    """A call that runs a command in the checkout and fails with its output."""
    full = {**os.environ, **env}
    full.pop("PYTHONDONTWRITEBYTECODE", None)

    def call() -> None:
        done = subprocess.run([str(w) for w in words], cwd=ROOT, env=full, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")

    return call


def table(rows: Sequence[Row]) -> str:
    """Markdown."""
    lines = ["| what | measured | against | ratio | aim |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {r.what} | {r.value} | {r.against} | {r.ratio} | {r.aim} |" for r in rows]
    return "\n".join(lines)
