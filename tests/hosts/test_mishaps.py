"""What goes wrong in the middle of a change: a host is never left worse than it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.conftest import StartHosts
from tests.hosts.plays import Play, inventory, play
from twin.hosts.engine import HostTwin

NEW, OLD = "580.178.04", "580.126.09"
PIN = "/etc/apt/preferences.d/gpufleet-driver"


@pytest.fixture(scope="module")
def twin(start_module_hosts: StartHosts) -> Iterator[HostTwin]:
    """One T4 host, converged at NEW."""
    made = start_module_hosts(1, ["t4"])
    assert site(made, gpu_reboot_policy="if_required").failures("gpu01") == ""
    yield made


def site(twin: HostTwin, playbook: str = "site", **variables: Any) -> Play:
    return play(playbook, inventory(twin), **{"gpu_driver_version": NEW, **variables})


def as_wanted(twin: HostTwin) -> bool:
    return site(twin, "verify").rc == 0


def test_a_module_in_use_leaves_the_daemons_running(twin: HostTwin) -> None:
    """Nothing counts as a workload, so the role tries; the module stays, and what it had stopped runs again."""
    hold = "python3 -S -E /twin/lib/guest hold nv-hostengine cuda >/dev/null 2>&1 < /dev/null & echo $!"
    pid = twin.run("gpu01", hold).stdout.strip()
    try:
        done = site(twin, gpu_driver_version=OLD)
        assert "nvidia_uvm cannot be unloaded" in done.failures("gpu01")
        assert "gpu_reboot_policy" in done.failures("gpu01")
        assert twin.run("gpu01", "systemctl is-active nvidia-persistenced").stdout.strip() == "active"
        assert NEW in twin.run("gpu01", f"cat {PIN}").stdout
        assert as_wanted(twin)
    finally:
        twin.run("gpu01", f"kill {pid}")


def test_a_module_that_does_not_load_keeps_the_pins_of_its_packages(twin: HostTwin) -> None:
    twin.set_scenario("gpu01", {"failures": {"module_load": "made to fail"}})
    done = site(twin, gpu_driver_version=OLD)
    assert "cannot be loaded" in done.failures("gpu01")
    assert f"Pin: version {OLD}-*" in twin.run("gpu01", f"cat {PIN}").stdout
    installed = "dpkg-query -W -f '${db:Status-Abbrev}${Version}' nvidia-open"
    assert twin.run("gpu01", installed).stdout == f"hi {OLD}-1"
    twin.set_scenario("gpu01", {"failures": {"module_load": None}})
    assert site(twin).failures("gpu01") == "" and as_wanted(twin)


def test_an_installer_file_costs_no_host_its_driver(twin: HostTwin) -> None:
    done = site(twin, gpu_driver_method="runfile", gpu_driver_runfile_sha256="a" * 64)
    assert "GF730" in done.failures("gpu01") and done.changed("gpu01") == []
    assert as_wanted(twin)


def test_what_somebody_removed_comes_back(twin: HostTwin) -> None:
    twin.run("gpu01", "dpkg --force-all -P libnvidia-compute-580; rm /etc/ansible/facts.d/gpu.fact")
    found = site(twin, "verify").failures("gpu01")
    assert "there is no libnvidia-ml.so.1" in found and "gpu.fact is missing" in found
    assert site(twin).failures("gpu01") == "" and as_wanted(twin)
    assert "Tesla T4" in twin.run("gpu01", "nvidia-smi -L").stdout


def test_a_file_with_other_sources_is_left_to_its_owner(twin: HostTwin) -> None:
    places, file = twin.places(), "/etc/apt/sources.list.d/site.list"
    lines = f"deb {places['archive']} bookworm main\\ndeb {places['cuda_base']}/debian12/x86_64/ /\\n"
    twin.run("gpu01", f"printf '{lines}' > {file}")
    done = site(twin)
    assert "GF761" in done.failures("gpu01") and done.changed("gpu01") == []
    assert "bookworm main" in twin.run("gpu01", f"cat {file}").stdout
    twin.run("gpu01", f"rm {file}")
    assert as_wanted(twin)


def test_an_old_line_of_the_kernel_log_does_not_outlive_the_module(twin: HostTwin) -> None:
    twin.kernel_log("gpu01", "NVRM: API mismatch: the client has another version")
    assert "GF776" in site(twin, "verify").failures("gpu01")
    assert site(twin, gpu_driver_version=OLD).failures("gpu01") == ""
    assert site(twin).failures("gpu01") == "" and as_wanted(twin)


def test_facts_are_collected_into_a_folder_that_is_made(twin: HostTwin, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "facts"
    assert site(twin, "verify", verify_facts_dir=str(folder)).rc == 0
    assert '"healthy": true' in (folder / "gpu01.json").read_text()
