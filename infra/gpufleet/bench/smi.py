"""What nvidia-smi says about the GPU. Reads only; everything may be absent (a container without it)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

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
