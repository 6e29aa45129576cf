"""Running the playbooks on hosts of the twin, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from twin.hosts import root, scenarios
from twin.hosts.engine import HostTwin, ScenarioLike
from twin.hosts.errors import UnavailableError

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1800  # seconds for one playbook; a stuck one ends with what it printed


@dataclass
class Play:
    """One run of a playbook."""

    rc: int
    output: str
    rows: list[dict[str, Any]]

    def of(self, host: str, kind: str = "") -> list[dict[str, Any]]:
        """Results of one host."""
        return [row for row in self.rows if row["host"] == host and kind in ("", row["kind"])]

    def changed(self, host: str) -> list[str]:
        """Names of the tasks that changed something on a host, sorted, each once."""
        return sorted({row["task"] for row in self.of(host) if row["changed"]})

    def failures(self, host: str) -> str:
        """What failed on a host, as text; "" when nothing did."""
        bad = [row for row in self.of(host) if row["kind"] in ("failed", "unreachable")]
        return "\n".join(f"{row['task']}: {row['msg']}" for row in bad)

    def messages(self, host: str) -> str:
        """Everything that tasks said about a host."""
        return "\n".join(row["msg"] for row in self.of(host) if row["msg"])

    def tasks(self, host: str) -> int:
        """How many tasks ran on a host, skipped ones left out."""
        return sum(1 for row in self.of(host) if row["kind"] != "skipped")


class Names(dict[str, str]):
    """Kind -> host. A test that asks for a kind whose root this machine cannot have is skipped, with the reason."""

    def __init__(self, kinds: Mapping[str, ScenarioLike]) -> None:
        """Look which kinds can be had, with their hosts still unknown; a root that the cache lacks is built."""
        super().__init__()
        self.why: dict[str, str] = {}
        for kind, scenario in kinds.items():
            suite = scenarios.load(scenario).suite
            try:
                if suite != root.SUITE:  # without that one nothing starts at all
                    root.ensure_root(suite=suite)
                self[kind] = ""
            except UnavailableError as error:
                self.why[kind] = str(error)

    def __missing__(self, kind: str) -> str:
        pytest.skip(self.why[kind])


def mirror(twin: HostTwin, **more: Any) -> dict[str, Any]:
    """Variables that point the roles at the twin's hardware and package server."""
    places = twin.places()
    profile = {
        "cuda_url": places["cuda_base"] + "/<directory>/<architecture directory>/",
        # the key is in each directory, under the vendor's name for it
        "cuda_key_fingerprints": [places["cuda_fingerprint"], places["cuda_resigned_fingerprint"]],
        "toolkit_url": places["toolkit_base"],
        "toolkit_key_url": places["toolkit_key"],
        "toolkit_key_fingerprints": [places["toolkit_fingerprint"]],
        "runfile_url": places["runfile_base"] + "/<version>/NVIDIA-Linux-<machine>-<version>.run",
        **more,
    }
    return {
        "gpu_sysfs_root": places["sysfs_root"],
        "gpu_proc_root": places["proc_root"],
        "gpu_mirror_profile": "twin",
        "gpu_mirror_profiles": {"twin": profile},
        "gpu_preflight_min_free_mib": 100,
    }


def inventory(twin: HostTwin, hosts: Mapping[str, Mapping[str, Any]] | None = None, **variables: Any) -> dict[str, Any]:
    """An inventory of all hosts in the group gpu_hosts; `hosts` has variables of single ones."""
    found = twin.inventory(**{**mirror(twin), **variables})
    for name, values in (hosts or {}).items():
        found["all"]["hosts"][name].update(values)
    found["all"]["children"] = {"gpu_hosts": {"hosts": {name: {} for name in found["all"]["hosts"]}}}
    return found


def play(
    playbook: str,
    hosts: Mapping[str, Any],
    *arguments: str,
    check: bool = False,
    limit: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    **variables: Any,
) -> Play:
    """Run playbooks/<playbook>.yml over an inventory. Never raises on a bad end."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        (files / "hosts.yml").write_text(json.dumps(hosts))
        (files / "extra.json").write_text(json.dumps(variables))
        record = files / "record.jsonl"
        record.touch()
        command = [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            str(files / "hosts.yml"),
            f"playbooks/{playbook}.yml",
            *(["--check"] if check else []),
            *(["--limit", ",".join(limit)] if limit else []),
            *(["-e", f"@{files / 'extra.json'}"] if variables else []),
            *arguments,
        ]
        full = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "recorder"),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "RECORD_FILE": str(record),
            "ANSIBLE_NOCOLOR": "1",
            **(env or {}),
        }
        done = subprocess.run(command, cwd=ROOT, env=full, capture_output=True, text=True, timeout=LIMIT, check=False)
        rows = [json.loads(line) for line in record.read_text().splitlines()]
    return Play(done.returncode, done.stdout + done.stderr, rows)
