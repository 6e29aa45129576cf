"""Measures the twin itself: start times, memory per host, and the floor under every playbook run (raw, ping, setup)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .engine import HostTwin
from .errors import TwinError

ANSIBLE = {
    "ansible raw": ["-m", "ansible.builtin.raw", "-a", "true"],
    "ansible ping": ["-m", "ansible.builtin.ping"],
    "ansible setup, smallest subset": ["-m", "ansible.builtin.setup", "-a", "gather_subset=!all,!min"],
}


def measure(counts: tuple[int, ...] = (2, 10)) -> list[tuple[str, str]]:
    """Start that many hosts of the default scenario in a folder of their own and return what was measured."""
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="gpufleet-hosts-") as folder, HostTwin(Path(folder)) as twin:
        for count in counts:
            began = time.monotonic()
            twin.start(count)
            rows.append((f"start, {count} hosts", f"{time.monotonic() - began:.1f} s"))
        used = [twin.memory_mib(host) for host in twin.hosts]
        rows.append(("memory per host", f"{sum(used) / len(used):.0f} MiB"))
        inventory = Path(folder) / "inventory.json"
        inventory.write_text(json.dumps(twin.inventory()))
        for name, arguments in ANSIBLE.items():
            rows.append((f"{name}, {len(twin.hosts)} hosts", f"{_ansible(inventory, arguments):.1f} s"))
    return rows


def _ansible(inventory: Path, arguments: list[str]) -> float:
    """Return the seconds of the second of two equal runs: connections exist then, as in a playbook's later tasks."""
    program = Path(sys.executable).with_name("ansible")
    env = {**os.environ, "ANSIBLE_PIPELINING": "1", "ANSIBLE_FORKS": "10", "ANSIBLE_LOCALHOST_WARNING": "0"}
    took = 0.0
    for _ in range(2):
        began = time.monotonic()
        done = subprocess.run(
            [str(program), "-i", str(inventory), "all", *arguments], env=env, capture_output=True, text=True
        )
        took = time.monotonic() - began
        if done.returncode != 0:
            raise TwinError(f"{' '.join(arguments)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took
