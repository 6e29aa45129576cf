"""site.yml over ten hosts of the twin: the first run, and a run without changes against the floor of SSH."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measure import ROOT, Row, alternate, command
from tests.hosts.plays import Play, inventory, play
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

HOSTS = 10
KINDS = ["hgx-h100", "a100-pcie", "v100", "t4"]  # the last one serves the other hosts
ROUNDS = 5
BIN = Path(sys.executable).parent


def _tasks(done: Play, names: list[str]) -> str:
    counts = sorted(done.tasks(name) for name in names)
    return f"{counts[0]} to {counts[-1]} tasks a host" if counts[0] != counts[-1] else f"{counts[0]} tasks a host"


def _must(done: Play, names: list[str]) -> Play:
    wrong = [f"{name}: {done.failures(name)}" for name in names if done.failures(name)]
    if done.rc != 0 or wrong:
        sys.exit("\n".join(wrong) or done.output)
    return done


def run() -> list[Row]:
    """All rows; one that says why where this machine cannot start hosts."""
    with tempfile.TemporaryDirectory() as folder, HostTwin(Path(folder) / "hosts") as twin:
        try:
            names = [host.name for host in twin.start(HOSTS, KINDS)]
        except UnavailableError as error:
            return [Row("hosts", "not measured", str(error), "-", "-")]
        wanted = inventory(twin)
        start = time.perf_counter()
        first = _must(play("site", wanted, gpu_reboot_policy="if_required"), names)
        converge = time.perf_counter() - start
        second = _must(play("site", wanted), names)
        changed = [name for name in names if second.changed(name)]
        if changed:
            sys.exit(f"the second run changed {', '.join(changed)}: there is nothing to measure")
        hosts = Path(folder) / "hosts.json"
        hosts.write_text(json.dumps(wanted), encoding="utf-8")
        env = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        site = command([BIN / "ansible-playbook", "-i", hosts, "playbooks/site.yml"], **env)
        raw = command([BIN / "ansible", "-i", hosts, "gpu_hosts", "-m", "raw", "-a", "true"], **env)
        whole, floor = alternate(site, raw, ROUNDS)
    return [
        Row(
            f"site.yml, first run, {HOSTS} hosts (reboots included)",
            f"{converge:.0f} s",
            _tasks(first, names),
            "-",
            "-",
        ),
        Row(
            f"site.yml, nothing to change, {HOSTS} hosts",
            f"{whole:.2f} s, {_tasks(second, names)}",
            f"ansible -m raw -a true {floor:.2f} s",
            f"{whole / floor:.1f}",
            "6",
        ),
    ]
