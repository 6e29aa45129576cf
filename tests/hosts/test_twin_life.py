"""The host twin itself: hosts that start, reboot and go without a trace; the parts of it that are real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.plays import Names
from twin.hosts import cgroup, network, scenarios, state
from twin.hosts.engine import HostTwin


def traces(directory: Path) -> dict[str, Any]:
    """Return everything on this machine that belongs to the hosts of a state folder."""
    bridge = network.bridge_name(directory)
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(directory) in line]
    return {
        "bridge": network.exists(bridge),
        "processes": cgroup.all_processes(bridge),
        "groups": [str(mount / bridge) for mount in cgroup.hierarchies() if (mount / bridge).exists()],
        "mounts": mounts,
        "state": state.path(directory).exists(),
        "trees": [entry.name for entry in directory.glob("gpu*")],
        "propagate": [str(path) for path in Path("/run/systemd/nspawn/propagate").glob(f"{bridge}-*")],
    }


NOTHING = {"bridge": False, "processes": [], "groups": [], "mounts": [], "state": False, "trees": [], "propagate": []}


def test_hosts_are_real_and_separate_and_leave_nothing(start_hosts: Any) -> None:
    twin = start_hosts(2, ["t4", "no-gpu"])
    for host in twin.hosts:
        assert twin.run(host, "systemctl is-system-running").stdout == "running\n"
        assert twin.run(host, "hostname").stdout == f"{host.name}\n"
    assert twin.run("gpu01", "python3 -c 'import apt; print(apt.Cache()[\"systemd\"].is_installed)'").stdout == "True\n"
    # One systemd per host, in control groups of its own: units of the same name on two hosts are two things.
    first, second = (set(cgroup.processes(twin.network.bridge, host.name)) for host in twin.hosts)
    assert first and second and not first & second
    for host in twin.hosts:
        assert twin.run(host, "systemd-run --unit=same sleep 1000").rc == 0
    assert twin.run("gpu01", "systemctl stop same").rc == 0
    assert twin.run("gpu02", "systemctl is-active same").stdout == "active\n"
    assert (
        twin.run("gpu02", f"python3 -c 'import socket; socket.create_connection((\"{twin.hosts[0].address}\", 22))'").rc
        == 0
    )
    ids = {twin.run(host, "cat /etc/machine-id").stdout for host in twin.hosts}
    assert len(ids) == 2
    directory = twin.directory
    twin.stop()
    assert traces(directory) == NOTHING


def test_another_process_takes_the_hosts_down(start_hosts: Any) -> None:
    twin = start_hosts(1)
    other = HostTwin(twin.directory)
    assert other.attach()
    assert [host.name for host in other.hosts] == ["gpu01"]
    assert other.run("gpu01", "true").rc == 0
    other.stop()
    assert traces(twin.directory) == NOTHING


def test_a_lost_state_file_is_no_lost_host(start_hosts: Any) -> None:
    twin = start_hosts(1)
    state.path(twin.directory).unlink()
    HostTwin(twin.directory).stop()
    assert traces(twin.directory) == NOTHING


def test_two_sets_run_side_by_side(start_hosts: Any) -> None:
    one, two = start_hosts(1, ["no-gpu"]), start_hosts(1, ["no-gpu"])
    assert one.network.bridge != two.network.bridge
    assert one.network.subnet != two.network.subnet
    assert one.hosts[0].name == two.hosts[0].name
    one.stop()
    assert two.run("gpu01", "systemctl is-system-running").stdout == "running\n"


def test_a_host_is_replaced_under_its_name_and_key(start_hosts: Any) -> None:
    twin = start_hosts(1, ["t4"])
    twin.run("gpu01", "touch /root/mark")
    address = twin.hosts[0].address
    twin.replace("gpu01", "v100")
    assert twin.run("gpu01", "ls /root/mark").rc == 2
    assert twin.hosts[0].address == address
    assert "V100" in twin.run("gpu01", "lspci").stdout


def test_ansible_reaches_the_hosts(start_hosts: Any, tmp_path: Path) -> None:
    twin = start_hosts(2, ["t4"])
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps(twin.inventory(answer=42)))
    ansible = str(Path(sys.executable).with_name("ansible"))
    command = [ansible, "-i", str(inventory), "all", "-o", "-m", "debug", "-a", "var=answer"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.count('"answer": 42') == 2, done.stderr
    done = subprocess.run([ansible, "-i", str(inventory), "all", "-o", "-m", "ping"], capture_output=True, text=True)
    assert done.stdout.count('"ping": "pong"') == 2, done.stdout + done.stderr


def test_the_server_answers_badly_on_request_and_remembers_who_asked(start_hosts: Any) -> None:
    twin = start_hosts(1, ["no-gpu"])
    assert twin.run("gpu01", "apt-get update").rc == 0
    assert {"host": twin.hosts[0].address, "path": "/debian/dists/bookworm/InRelease", "status": 200} in twin.requests()
    twin.spoil_server([{"match": "InRelease$", "status": 503}])
    assert "503" in twin.run("gpu01", "apt-get update -o Acquire::Retries=0").stdout
    twin.spoil_server([])
    assert "503" not in twin.run("gpu01", "apt-get update").stdout


def test_no_host_of_the_outside_is_known(start_hosts: Any) -> None:
    twin = start_hosts(1, ["no-gpu"])
    sources = twin.run("gpu01", "cat /etc/apt/sources.list /etc/apt/sources.list.d/*").stdout
    lines = [line for line in sources.splitlines() if line.startswith("deb ")]
    assert lines and all(f" {twin.url}/" in line for line in lines)
    assert twin.run("gpu01", "ip route show default").stdout == ""


@pytest.mark.parametrize("runtime", ["crio", "docker"])
def test_stand_in_runtimes_run_as_services(start_hosts: Any, runtime: str) -> None:
    twin = start_hosts(1, [{"extends": "t4", "runtime": runtime}])
    assert twin.run("gpu01", f"systemctl is-active {runtime}").stdout == "active\n"
    if runtime == "docker":
        twin.run("gpu01", 'echo \'{"default-runtime": "nvidia"}\' > /etc/docker/daemon.json')
        assert twin.run("gpu01", "systemctl restart docker").rc != 0  # no such runtime


@pytest.mark.long
def test_every_scenario_comes_up(start_hosts: Any) -> None:
    possible = Names({name: name for name in scenarios.names()})
    names = list(possible)
    twin = start_hosts(len(names), names)
    states = {host.scenario.name: twin.run(host, "systemctl is-system-running").stdout for host in twin.hosts}
    assert states == dict.fromkeys(names, "running\n")
    if possible.why:
        pytest.skip(f"all but these came up: {possible.why}")


def test_a_held_lock_is_waited_for(start_hosts: Any) -> None:
    twin = start_hosts(1, [{"extends": "no-gpu", "apt_lock_seconds": 4}])
    twin.run("gpu01", "apt-get update")
    assert "Could not get lock" in twin.run("gpu01", "apt-get -y install make").stderr
    assert twin.run("gpu01", "apt-get -y -o DPkg::Lock::Timeout=30 install make").rc == 0


def test_the_retired_key_is_refused(start_hosts: Any) -> None:
    twin = start_hosts(1, ["old-cuda-key"])
    answer = twin.run("gpu01", "apt-get update")
    assert "NO_PUBKEY" in answer.stdout + answer.stderr
