"""What happens to a converged host, and what the roles say about it: one fleet, one event after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hosts.plays import Play, inventory, play
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

KINDS = ("a100-pcie", "hgx-h100", "mig-a100")


@pytest.fixture(scope="module")
def fleet(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HostTwin, dict[str, Any]]]:
    """Three converged hosts: plain, with a fabric, with MIG."""
    with HostTwin(tmp_path_factory.mktemp("fleet")) as twin:
        try:
            hosts = twin.start(len(KINDS), list(KINDS))
        except UnavailableError as error:
            pytest.skip(str(error))
        wanted = inventory(
            twin, {hosts[2].name: {"gpu_mig_layout": "all-1g.10gb"}}, gpu_driver_version="580.126.09",
            gpu_fabric_ready_timeout=4,
        )  # fmt: skip
        first = play("site", wanted)
        assert first.rc == 0, first.output
        yield twin, wanted


def site(fleet: tuple[HostTwin, dict[str, Any]], host: str, **variables: Any) -> Play:
    return play("site", fleet[1], limit=[host], **variables)


def test_a_live_workload_in_legacy_mode_is_not_disturbed(fleet: tuple[HostTwin, dict[str, Any]]) -> None:
    twin, host = fleet[0], fleet[0].hosts[0].name
    program = "import os, time; os.open('/dev/nvidia0', os.O_PATH); time.sleep(10**6)"
    assert twin.run(host, ["systemd-run", "--unit=work", "python3", "-c", program]).rc == 0
    started = "systemctl show -P ActiveEnterTimestampMonotonic containerd"
    before = twin.run(host, started).stdout
    legacy = {"gpu_container_toolkit_mode": "legacy", "gpu_container_toolkit_default_runtime": True}
    done = site(fleet, host, **legacy)
    assert "GF750" in done.failures(host) and "python3" in done.failures(host) and done.changed(host) == []
    assert twin.run(host, started).stdout == before
    other = site(fleet, host, gpu_driver_version="580.178.04")
    assert "GF756" in other.failures(host) and other.changed(host) == []
    twin.run(host, "systemctl stop work")
    done = site(fleet, host, **legacy)
    assert done.failures(host) == "" and twin.run(host, started).stdout != before
    assert site(fleet, host).failures(host) == ""


def test_a_fabric_that_never_completes_fails_the_health_check(fleet: tuple[HostTwin, dict[str, Any]]) -> None:
    twin, host = fleet[0], fleet[0].hosts[1].name
    twin.set_scenario(host, {"failures": {"fabric": "never"}})
    twin.run(host, "systemctl restart nvidia-fabricmanager")
    done = site(fleet, host)
    assert "GF773" in done.failures(host) and "In Progress" in done.failures(host)
    assert "GF773" in play("verify", fleet[1], limit=[host]).failures(host)
    twin.set_scenario(host, {"failures": {"fabric": ""}})
    twin.run(host, "systemctl restart nvidia-fabricmanager")
    assert site(fleet, host).failures(host) == ""


def test_missing_device_files_fail_the_health_check(fleet: tuple[HostTwin, dict[str, Any]]) -> None:
    twin, host = fleet[0], fleet[0].hosts[0].name
    twin.run(host, "mv /dev/nvidia-uvm /dev/kept-uvm")
    assert "GF775" in site(fleet, host).failures(host)
    twin.run(host, "mv /dev/kept-uvm /dev/nvidia-uvm")
    assert site(fleet, host).failures(host) == ""


def test_the_kernel_log_fails_the_health_check(fleet: tuple[HostTwin, dict[str, Any]]) -> None:
    twin, host = fleet[0], fleet[0].hosts[0].name
    twin.kernel_log(host, "NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.")
    done = site(fleet, host)
    assert "GF776" in done.failures(host) and "no longer answers" in done.failures(host)
    assert not any("Insist" in task for task in done.changed(host))
    twin.run(host, "dmesg -C")
    assert site(fleet, host).failures(host) == ""


def test_a_library_that_changed_under_the_module_is_found(fleet: tuple[HostTwin, dict[str, Any]]) -> None:
    """Somebody brings a newer library past holds and pins: the loaded module stays what it was."""
    twin, host = fleet[0], fleet[0].hosts[0].name
    folder = "/usr/lib/x86_64-linux-gnu"
    new = f"{folder}/libnvidia-ml.so.580.178.04"
    twin.run(host, f"cp {folder}/libnvidia-ml.so.580.126.09 {new} && ln -sf {new} {folder}/libnvidia-ml.so.1")
    found = play("verify", fleet[1], limit=[host])
    assert "GF771" in found.failures(host)
    assert "GF732" in play("preflight", fleet[1], limit=[host]).messages(host)


def test_mig_instances_come_back_after_a_reboot(fleet: tuple[HostTwin, dict[str, Any]]) -> None:
    twin, host = fleet[0], fleet[0].hosts[2].name
    assert twin.run(host, "nvidia-smi -L").stdout.count("MIG 1g.10gb") == 56
    twin.reboot(host)
    assert twin.run(host, "nvidia-smi -L").stdout.count("MIG 1g.10gb") == 56, "the unit applied the layout at boot"
    again = site(fleet, host)
    assert again.failures(host) == "" and again.changed(host) == []
    twin.run(host, "nvidia-smi mig -dci; nvidia-smi mig -dgi")
    assert "GF777" in play("verify", fleet[1], limit=[host]).failures(host)
    assert site(fleet, host).failures(host) == ""
    assert twin.run(host, "nvidia-smi -L").stdout.count("MIG 1g.10gb") == 56
