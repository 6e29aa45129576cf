"""One bench process: reads commands as JSON lines from standard input, answers each with one line.

``setup`` makes the CUDA context and warms up, ``memory`` reads the device's memory, ``run`` works from
``start - warm_up`` until the window's end and reports the steps. Times are on the machine's monotonic clock,
which all processes share: that is the barrier.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import time
from typing import IO, Any

from gpufleet.bench.command_loop import CommandLoop
from gpufleet.bench.loops import DriverLoop, Loop
from gpufleet.bench.memory_loop import MemoryLoop
from gpufleet.measure.stats import latencies_ms, steps_in
from gpufleet.measure.workloads import COMMAND, MEMORY, Sizes

_SETUP_STEPS = 3


def make_loop(message: dict[str, Any]) -> Any:
    sizes = Sizes(**message.get("sizes", {}))
    if message["workload"] == COMMAND:
        return CommandLoop(message["command"], message.get("step_pattern"))
    if message["workload"] == MEMORY:
        return MemoryLoop()
    if message["backend"] == "torch":
        from gpufleet.bench.torch_loops import TorchLoop

        return TorchLoop(message["workload"], sizes, message["seed"])
    return DriverLoop(message["workload"], sizes, message.get("calibration"), message["seed"])


def measure(loop: Loop, start: float, window: float, warm_up: float) -> dict[str, Any]:
    """Work through warm-up and window. ``steps`` counts a step by the part of it that lies in the window."""
    end = start + window
    time.sleep(max(0.0, start - warm_up - time.monotonic()))
    cycles: list[tuple[float, float, float]] = []  # end of the step before, begin, end
    before = time.monotonic()
    late = max(0.0, before - (start - warm_up))
    while before < end:
        rest = loop.rest()
        if rest:
            time.sleep(rest)
        begin = time.monotonic()
        loop.step()
        done = time.monotonic()
        cycles.append((before, begin, done))
        before = done
    loop.drain()
    return {
        "steps": steps_in(cycles, start, end),
        "latency_ms": latencies_ms(cycles, start, end),
        "late_s": round(late, 4),
    }


def answer(message: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    action = message["do"]
    if action == "import":
        if message["backend"] == "torch":
            importlib.import_module("torch")
        return {}
    if action == "setup":
        os.environ.update(message.get("env", {}))
        loop = state["loop"] = make_loop(message)
        for _ in range(_SETUP_STEPS if message["workload"] not in (COMMAND, MEMORY) else 1):
            loop.step()
        loop.drain()
        return {"device": loop.describe(), "calibration": loop.calibration, "memory": loop.memory()}
    if action == "memory":
        return {"memory": state["loop"].memory()}
    if action == "take":
        return dict(state["loop"].take(message["mib"]))
    if action == "give":
        state["loop"].give()
        return {"memory": state["loop"].memory()}
    if action == "run":
        return measure(state["loop"], message["start"], message["window"], message["warm_up"])
    raise ValueError(f"unknown command {action!r}")


def serve(commands: IO[str], answers: IO[str]) -> int:
    state: dict[str, Any] = {}
    try:
        for line in commands:
            message = json.loads(line)
            if message["do"] == "exit":
                break
            try:
                reply = answer(message, state)
            except Exception as error:  # the parent reports it; a traceback would tell a user nothing
                reply = {"error": f"{type(error).__name__}: {error}".strip()[:500]}
            answers.write(json.dumps(reply) + "\n")
            answers.flush()
    finally:
        close = getattr(state.get("loop"), "close", None)
        if close:
            close()
    return 0


def main() -> int:
    # What a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return serve(sys.stdin, answers)


def setup_message(workload: str, backend: str, sizes: Sizes, seed: int, **more: Any) -> dict[str, Any]:
    return {
        "do": "setup",
        "workload": workload,
        "backend": backend,
        "sizes": dataclasses.asdict(sizes),
        "seed": seed,
        **more,
    }


if __name__ == "__main__":
    sys.exit(main())
