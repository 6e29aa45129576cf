"""What nvidia-smi says about the GPU. Reads only; everything may be absent (a container without it)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Sequence

_FIELDS = (
    "index", "name", "uuid", "driver_version", "compute_mode", "mig.mode.current", "persistence_mode",
    "memory.total", "memory.used", "power.limit", "clocks.max.sm", "clocks.max.memory", "ecc.mode.current",
)  # fmt: skip


class SmiError(RuntimeError):
    """nvidia-smi is missing or refused; the text holds its words."""


def run(arguments: Sequence[str], timeout: float = 60) -> str:
    """Standard output of ``nvidia-smi ARGUMENTS``. ``GPUFLEET_NVIDIA_SMI`` names another program."""
    program = os.environ.get("GPUFLEET_NVIDIA_SMI") or shutil.which("nvidia-smi")
    if not program:
        raise SmiError("nvidia-smi is not on PATH")
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SmiError(f"nvidia-smi: {error}") from None
    if done.returncode:
        words = (done.stdout + done.stderr).strip().replace("\n", " ")
        raise SmiError(f"nvidia-smi {' '.join(arguments)}: exit code {done.returncode}: {words[:300]}")
    return done.stdout


def _select(gpu: str | None) -> list[str]:
    return ["-i", gpu] if gpu else []


def query(gpu: str | None = None) -> dict[str, str]:
    """State of the GPU (the first one without ``gpu``). Raises SmiError."""
    text = run([*_select(gpu), f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader"])
    values = [part.strip() for part in text.strip().splitlines()[0].split(",")]
    return dict(zip(_FIELDS, values, strict=True))


def memory_used_mib(gpu: str | None = None) -> int | None:
    """MiB in use on the GPU, None where nvidia-smi cannot tell."""
    try:
        text = run([*_select(gpu), "--query-gpu=memory.used", "--format=csv,noheader,nounits"])
        return int(text.split()[0])
    except (SmiError, ValueError, IndexError):
        return None


def time_slice(gpu: str | None = None) -> str | None:
    """The set time-slice length (``Default``, ``Short``...), None where it cannot be read."""
    try:
        text = run(["compute-policy", *_select(gpu), "-l"])
    except SmiError:
        return None
    return parse_time_slice(text)


def parse_time_slice(text: str) -> str | None:
    """The length in the table that ``nvidia-smi compute-policy -l`` prints."""
    found = re.search(r"time-?slice[^A-Za-z0-9]+([A-Za-z]+)", text, re.IGNORECASE)
    return found.group(1).capitalize() if found else None


def running_processes(gpu: str | None = None) -> list[str]:
    """``pid, name`` of the processes that use the GPU. Raises SmiError."""
    text = run([*_select(gpu), "--query-compute-apps=pid,process_name", "--format=csv,noheader"])
    return [line.strip() for line in text.splitlines() if line.strip()]


#: What ``nvidia-smi dmon`` calls it -> our word: parts of the time that the GPU works, that a multiprocessor has work
#: (GPM, from Hopper on), that the device memory is read or written (GPM).
_ACTIVITY = {"sm": "gpu", "gract": "gpu", "smutil": "sm", "dram": "dram"}
_GPM = ("--gpm-metrics", "1,2,10")


@contextlib.contextmanager
def activity(seconds: float, before: float, gpu: str | None = None) -> Iterator[dict[str, float]]:
    """While the body works for ``before + seconds``: how busy the GPU is in the last ``seconds``, as parts of 1.

    The mapping is filled when the body has ended; it stays empty where nvidia-smi cannot tell. Reads once a second,
    so windows of less than 4 s give nothing.
    """
    found: dict[str, float] = {}
    rows, skip = int(before + seconds), int(before) + 2
    program = os.environ.get("GPUFLEET_NVIDIA_SMI") or shutil.which("nvidia-smi")
    if program is None or rows - skip < 2:
        yield found
        return
    command = [program, "dmon", *_select(gpu), "-s", "u", *_GPM, "-d", "1", "-c", str(rows)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        yield found
        return
    try:
        yield found
        text, _ = process.communicate(timeout=5)
        found.update(parse_activity(text, skip))
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def parse_activity(text: str, skip: int) -> dict[str, float]:
    """Means over the rows of ``nvidia-smi dmon`` without the first ``skip``: ``gpu``, ``sm``, ``dram``."""
    names: list[str] = []
    rows: list[list[str]] = []
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["#", "gpu"]:
            names = words[1:]
        elif words and words[0].isdigit() and len(words) == len(names):
            rows.append(words)
    found: dict[str, float] = {}
    for column, name in enumerate(names):
        word = _ACTIVITY.get(name)
        values = [float(row[column]) for row in rows[skip:] if re.fullmatch(r"\d+(\.\d+)?", row[column])]
        if word and values:
            found[word] = round(statistics.fmean(values) / 100, 4)
    return found
