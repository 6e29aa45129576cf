"""The collection from its tarball, in an empty folder: every playbook on a host of an INI inventory.

There is no stack file and no cluster.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.hosts.plays import ROOT, mirror
from tests.unit.roles import collection
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

NEWEST, OTHER = "580.178.04", "580.126.09"  # of branch 580, which the inventory asks for
QUERY = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
#: Playbook and further words, in the order in which they run.
STEPS = {
    "preflight": ("preflight",),
    "site": ("site",),
    "again": ("site",),
    "verify": ("verify",),
    "upgrade": ("upgrade", "-e", f"gpu_driver_version={OTHER}"),
    "rollback": ("rollback", "-e", f"rollback_version={NEWEST}"),
}


@dataclass
class Road:
    """What each step ended with, and the driver that the host had then."""

    runs: dict[str, subprocess.CompletedProcess[str]]
    drivers: dict[str, str]

    def recap(self, step: str) -> str:
        """The lines of the recap."""
        return self.runs[step].stdout.partition("PLAY RECAP")[2]


@pytest.fixture(scope="module")
def road(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Road]:
    """One host of the example inventory after every playbook. The folder has the collection and the inventory."""
    folder = tmp_path_factory.mktemp("empty")
    collection.install(folder, str(collection.build(tmp_path_factory.mktemp("built"))))
    with HostTwin(tmp_path_factory.mktemp("twin")) as twin:
        try:
            [host] = twin.start(1, ["t4"])
        except UnavailableError as error:
            pytest.skip(str(error))
        text = (ROOT / "examples/hosts/hosts.ini").read_text(encoding="utf-8")
        text = text.replace("192.0.2.11", host.address).replace("ansible_user=ops", "ansible_user=root")
        (folder / "hosts.ini").write_text(text)
        login = twin.inventory()["all"]["vars"]
        simulated = {key: login[key] for key in ("ansible_ssh_common_args", "ansible_python_interpreter")} | mirror(
            twin
        )
        (folder / "group_vars").mkdir()
        (folder / "group_vars/inference.yml").write_text(json.dumps(simulated))
        common = ("-i", "hosts.ini", "-e", "gpu_hosts_group=inference", "--limit", "gpu01")
        runs, drivers = {}, {}
        for step, (playbook, *more) in STEPS.items():
            name = f"gpufleet.hosts.{playbook}"
            runs[step] = collection.command(folder, "ansible-playbook", name, *common, *more, limit=1800)
            drivers[step] = twin.run("gpu01", QUERY).stdout.strip()
        yield Road(runs, drivers)


@pytest.mark.parametrize("step", STEPS)
def test_playbooks_end_well(road: Road, step: str) -> None:
    assert road.runs[step].returncode == 0, road.runs[step].stdout[-4000:] + road.runs[step].stderr
    assert "gpu01" in road.recap(step) and "nfs01" not in road.recap(step)


@pytest.mark.parametrize("step", ["preflight", "again", "verify"])
def test_nothing_changes(road: Road, step: str) -> None:
    assert "changed=0" in road.recap(step)


def test_the_driver_follows(road: Road) -> None:
    assert road.drivers == {
        "preflight": "", "site": NEWEST, "again": NEWEST, "verify": NEWEST, "upgrade": OTHER, "rollback": NEWEST,
    }  # fmt: skip
