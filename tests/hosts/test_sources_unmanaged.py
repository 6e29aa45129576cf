"""Package sources that somebody else manages, and sets that no repository has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.hosts.plays import inventory, play
from twin.hosts.engine import HostTwin

Start = Callable[[int, Sequence[str]], HostTwin]


def test_nothing_is_added_and_the_missing_set_is_named(start_hosts: Start) -> None:
    twin = start_hosts(2, ["a100-pcie"])
    bare, prepared = (host.name for host in twin.hosts)
    places = twin.places()
    for source in (places["cuda_base"] + "/debian12/x86_64/", places["toolkit_base"]):
        line = f"deb [trusted=yes] {source.rstrip('/')}/ /"
        twin.run(prepared, f"echo '{line}' >> /etc/apt/sources.list.d/site.list")
    twin.run(prepared, "apt-get update -qq")
    twin.run(bare, "apt-get update -qq")
    wanted = inventory(twin, gpu_repo_manage=False, gpu_mirror_profile="")
    before = len(twin.requests())
    done = play("preflight", wanted)
    assert twin.requests()[before:] == [], "preflight asks nobody"
    message = done.failures(bare)
    assert "GF736" in message and "nvidia-open" in message and "nvidia-container-toolkit" in message
    assert done.failures(prepared) == ""
    done = play("site", wanted, limit=[prepared])
    assert done.failures(prepared) == ""
    assert "gpufleet" not in twin.run(prepared, "ls /etc/apt/sources.list.d /usr/share/keyrings").stdout
    again = play("site", wanted, limit=[prepared])
    assert again.failures(prepared) == "" and again.changed(prepared) == []


def test_fabric_manager_of_another_version_stops_preflight(start_hosts: Start) -> None:
    twin = start_hosts(1, ["hgx-h100"])
    host = twin.hosts[0].name
    wanted = inventory(twin, gpu_driver_version="535.183.01", gpu_driver_flavour="proprietary")
    done = play("site", wanted)
    message = done.failures(host)
    assert "GF737" in message and "nvidia-fabricmanager-535" in message and "535.216.03" in message
    assert done.changed(host) == []
    assert play("preflight", {**wanted}, gpu_driver_version="535.216.03").failures(host) == ""
