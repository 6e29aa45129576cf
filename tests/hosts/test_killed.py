"""A run that is killed at any task leaves a host that the next run brings to its state."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.plays import ROOT, inventory, play
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

SEED = 20261130  # the same tasks in every run of this test
ABSENT = {"gpu_driver_state": "absent", "gpu_container_toolkit_state": "absent"}


@pytest.fixture
def twin(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostTwin]:
    """One HGX host, where every role has something to do."""
    with HostTwin(tmp_path_factory.mktemp("fleet")) as running:
        try:
            running.start(1, ["hgx-h100"])
        except UnavailableError as error:
            pytest.skip(str(error))
        yield running


def killed_after(results: int, wanted: dict[str, object], folder: Path, variables: dict[str, object]) -> list[str]:
    """Start site.yml, kill it and what it started after so many results, and return the tasks that it finished."""
    (folder / "hosts.yml").write_text(json.dumps(wanted))
    (folder / "extra.json").write_text(json.dumps(variables))
    record = folder / "record.jsonl"
    record.write_text("")
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(folder / "hosts.yml"), "playbooks/site.yml",
        "-e", f"@{folder / 'extra.json'}",
    ]  # fmt: skip
    env = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "recorder"),
        "ANSIBLE_CALLBACKS_ENABLED": "record",
        "RECORD_FILE": str(record),
    }
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while process.poll() is None and len(record.read_text().splitlines()) < results:
        time.sleep(0.02)  # looks for the next result; the number of results decides, not the time
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    rows = [json.loads(line) for line in record.read_text().splitlines() if line.endswith("}")]
    assert not [row for row in rows if row["kind"] == "failed"], rows[-1]
    return [row["task"] for row in rows]


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_a_run_after_kills_converges(twin: HostTwin, tmp_path: Path, kills: int) -> None:
    choice = random.Random(SEED)
    wanted = inventory(twin)
    host = twin.hosts[0].name
    last: set[str] = set()
    for number in range(kills):
        # Two ways there and one back, so that there is something to do at every kill.
        variables = ABSENT if number % 3 == 2 else {}
        done = killed_after(choice.randint(8, 55), wanted, tmp_path, dict(variables))
        last.add(done[-1] if done else "")
    assert len(last) >= kills // 3, f"the kills fell on few tasks: {sorted(last)}"
    converged = play("site", wanted)
    assert converged.failures(host) == "", converged.output
    again = play("site", wanted)
    assert again.rc == 0 and again.changed(host) == []
    assert play("verify", wanted).rc == 0
    assert twin.run(host, "nvidia-smi -L").stdout.count("GPU ") == 8
