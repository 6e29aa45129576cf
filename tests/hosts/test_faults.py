"""Hosts with something wrong: preflight says so and changes nothing; what the roles can mend, they mend."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.hosts.plays import Names, Play, inventory, play
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError


@dataclass(frozen=True)
class Fault:
    """One faulty host: scenario, variables, codes that preflight reports, and whether the roles can go on."""

    scenario: str | dict[str, Any]
    codes: tuple[str, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)
    converges: bool = True


FAULTS = {
    "secure-boot": Fault("secure-boot", ("GF724",), converges=False),
    "runfile": Fault("runfile", ("GF729",), converges=False),
    "two-containerds": Fault("two-containerds", ("GF744",), converges=False),
    "no-gpu": Fault("no-gpu", ("GF718",), converges=False),
    "sqv": Fault(
        "sqv",
        ("GF733",),
        {"gpu_mirror_profile": "", "gpu_driver_repo_url": "@cuda@", "gpu_preflight_check_repositories": False},
        converges=False,
    ),
    "operator": Fault("runfile", ("GF731",), {"gpu_driver_method": "none"}, converges=False),
    "old-cuda-key": Fault("old-cuda-key"),
    "apt-lock": Fault("apt-lock"),
    "masked": Fault("masked-persistenced"),
    "newer-headers": Fault("newer-headers"),
    "nova": Fault("nova", ("GF726",)),
    "empty-containerd": Fault("empty-containerd"),
    "kubespray": Fault("kubespray", variables={"gpu_runtime_owner": "kubespray"}),
}
MENDED = [name for name, fault in FAULTS.items() if fault.converges]


@dataclass
class Fleet:
    """The hosts by fault, and what was done to them."""

    twin: HostTwin
    names: dict[str, str]
    stages: dict[str, Play]
    untouched: dict[str, bool]  # by preflight

    def run(self, fault: str, command: str) -> str:
        return self.twin.run(self.names[fault], command).stdout


@pytest.fixture(scope="module")
def fleet(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """All faulty hosts: preflight, converge with reboots, once more."""
    with HostTwin(tmp_path_factory.mktemp("fleet")) as twin:
        names = Names({name: fault.scenario for name, fault in FAULTS.items()})
        try:
            hosts = twin.start(len(names), [FAULTS[name].scenario for name in names])
        except UnavailableError as error:
            pytest.skip(str(error))
        names.update(zip(names, (host.name for host in hosts), strict=True))
        cuda = twin.places()["cuda_base"] + "/debian12/x86_64/"
        variables = {
            host: {key: cuda if value == "@cuda@" else value for key, value in FAULTS[name].variables.items()}
            for name, host in names.items()
        }
        wanted = inventory(twin, variables)
        before = {name: twin.run(host, SNAPSHOT).stdout for name, host in names.items()}
        stages = {"preflight": play("preflight", wanted)}
        untouched = {name: twin.run(host, SNAPSHOT).stdout == before[name] for name, host in names.items()}
        limit = [names[name] for name in MENDED]
        stages["converge"] = play("site", wanted, limit=limit, gpu_reboot_policy="if_required")
        stages["second"] = play("site", wanted, limit=limit)
        stages["verify"] = play("verify", wanted, limit=limit)
        yield Fleet(twin, names, stages, untouched)


# Everything below /etc, packages, modules, and the state of units: preflight may change none of it.
SNAPSHOT = (
    "find /etc /usr/share/keyrings /lib/modules -type f -printf '%p %T@ %s\\n' | sort | sha256sum; "
    "dpkg-query -W | sha256sum; cat /twin/proc/modules; "
    "systemctl list-units --no-legend --plain --all '*nvidia*' 'containerd*'"
)


@pytest.mark.parametrize("fault", FAULTS)
def test_preflight_names_the_fault_and_changes_nothing(fleet: Fleet, fault: str) -> None:
    play_, host = fleet.stages["preflight"], fleet.names[fault]
    found = set(re.findall(r"^(GF\d+) (?:error|warning)", play_.messages(host), re.M))
    assert set(FAULTS[fault].codes) <= found
    assert play_.changed(host) == [] and fleet.untouched[fault]
    assert bool(play_.failures(host)) is not FAULTS[fault].converges


@pytest.mark.parametrize("fault", MENDED)
def test_what_can_be_mended_is_mended(fleet: Fleet, fault: str) -> None:
    host = fleet.names[fault]
    for stage in ("converge", "second"):
        assert fleet.stages[stage].failures(host) == "", stage
    left = "GF783" if fault == "kubespray" else ""  # its own tool has still to add the runtime
    found = fleet.stages["verify"].failures(host)
    assert found == "" if not left else re.findall(r"GF\d+ error", found) == [f"{left} error"]
    assert fleet.stages["second"].changed(host) == []
    assert "GPU 0" in fleet.run(fault, "nvidia-smi -L")


def test_a_source_with_the_retired_key_makes_way(fleet: Fleet) -> None:
    assert "cuda.list" not in fleet.run("old-cuda-key", "ls /etc/apt/sources.list.d").split()
    assert fleet.twin.run(fleet.names["old-cuda-key"], "apt-get update").rc == 0


SHA1_ENDS = "2026-02-01"  # in apt's own policy (/usr/share/apt/default-sequoia.config)
ASK = """import pathlib, shutil, subprocess, urllib.request
shutil.rmtree('/var/lib/apt/lists')  # apt falls back on what it fetched earlier, with a warning alone
pathlib.Path('/tmp/cuda.asc').write_bytes(urllib.request.urlopen('{key}').read())
source = pathlib.Path('/etc/apt/sources.list.d/ask.list')
source.write_text('deb [signed-by=/tmp/cuda.asc] {base} /\\n')
done = subprocess.run(['apt-get', 'update'], capture_output=True, text=True)
source.unlink()
print(done.returncode, done.stdout, done.stderr)"""


def test_apt_with_sqv_refuses_the_sha1_key_and_takes_the_new_one(fleet: Fleet) -> None:
    """What GF733 speaks of, by Debian 13's own apt; and the policy that docs/mirrors.md names as a way out."""
    host, places = fleet.names["sqv"], fleet.twin.places()

    def update(directory: str, key: str) -> tuple[int, str]:
        text = ASK.format(key=places[key], base=f"{places['cuda_base']}/{directory}/x86_64/")
        rc, _, said = fleet.twin.run(host, ["python3", "-c", text]).stdout.partition(" ")
        return int(rc), said

    if fleet.twin.run(host, "date +%F").stdout.strip() < SHA1_ENDS:
        pytest.skip(f"the clock of this machine is before {SHA1_ENDS}: apt takes SHA-1 until then")
    rc, said = update("debian12", "cuda_key")
    assert rc != 0 and "SHA1 is not considered secure" in said
    assert update("debian13", "cuda_resigned_key")[0] == 0
    rc, said = update("debian13", "cuda_key")
    assert rc != 0 and "Missing key" in said
    folder = "/etc/crypto-policies/back-ends"
    policy = "[hash_algorithms]\nsha1.second_preimage_resistance = 2030-02-01\n"
    fleet.twin.run(host, f"mkdir -p {folder}; printf '{policy}' > {folder}/apt-sequoia.config")
    try:
        assert update("debian12", "cuda_key")[0] == 0
    finally:
        fleet.twin.run(host, f"rm {folder}/apt-sequoia.config")


def test_a_masked_daemon_runs(fleet: Fleet) -> None:
    assert fleet.run("masked", "systemctl is-enabled nvidia-persistenced").strip() == "enabled"
    assert fleet.run("masked", "systemctl is-active nvidia-persistenced").strip() == "active"


def test_the_module_is_built_for_the_running_kernel(fleet: Fleet) -> None:
    kernel = fleet.run("newer-headers", "uname -r").strip()
    assert f"/lib/modules/{kernel}/" in fleet.run("newer-headers", "modinfo -F filename nvidia")


def test_nova_is_blacklisted_and_gone_after_the_reboot(fleet: Fleet) -> None:
    assert "nova_core" not in fleet.run("nova", "cat /twin/proc/modules")
    assert any("Reboot" in task for task in fleet.stages["converge"].changed(fleet.names["nova"]))


def test_an_empty_containerd_file_was_seeded(fleet: Fleet) -> None:
    config = fleet.run("empty-containerd", "cat /etc/containerd/config.toml")
    assert "sandbox_image" in config and "runtimes.nvidia]" in config
    assert fleet.run("empty-containerd", "systemctl is-active containerd").strip() == "active"


def test_kubesprays_file_is_left_alone(fleet: Fleet) -> None:
    config = fleet.run("kubespray", "cat /etc/containerd/config.toml")
    assert config.startswith("# Ansible managed") and "nvidia" not in config
    assert "containerd_additional_runtimes" in fleet.stages["converge"].messages(fleet.names["kubespray"])


def test_a_server_that_fails_leaves_the_host_as_it_was(fleet: Fleet) -> None:
    """A repository that breaks between preflight and installation: nothing half applied, and the next run works."""
    host = fleet.twin.replace(fleet.names["apt-lock"], "t4").name
    wanted = inventory(fleet.twin)
    fleet.twin.spoil_server([{"match": "pool", "status": 503}])
    try:
        broken = play("site", wanted, limit=[host])
    finally:
        fleet.twin.spoil_server([])
    assert "failed" in broken.failures(host)
    assert fleet.twin.run(host, "dpkg-query -W nvidia-open").rc != 0
    left = fleet.twin.run(host, "ls /etc/modprobe.d /etc/apt/preferences.d /etc/apt/sources.list.d").stdout
    assert "gpufleet" not in left, "the configuration is as before"
    again = play("site", wanted, limit=[host], gpu_reboot_policy="if_required")
    assert again.failures(host) == ""


def test_a_broken_drop_in_is_refused_before_any_restart(fleet: Fleet) -> None:
    """Somebody breaks the file of containerd: the role stops, and containerd keeps running on what it has."""
    name = fleet.names["masked"]
    file = "/etc/containerd/config.toml"
    fleet.twin.run(name, f"cp {file} /root/saved && sed -i '1i version = 2' {file}")
    done = play("site", inventory(fleet.twin), limit=[name])
    assert "GF747" in done.failures(name) and done.changed(name) == []
    assert fleet.twin.run(name, "systemctl is-active containerd").stdout.strip() == "active"
    fleet.twin.run(name, f"cp /root/saved {file}")


def test_drift_is_found(fleet: Fleet) -> None:
    """verify.yml ends with an error for each thing that somebody changed by hand."""
    name = fleet.names["newer-headers"]
    fleet.twin.run(name, "apt-mark unhold nvidia-open && rm /etc/modprobe.d/gpufleet-blacklist.conf")
    fleet.twin.run(name, "systemctl disable --now nvidia-persistenced")
    done = play("verify", inventory(fleet.twin), limit=[name])
    assert done.rc != 0 and done.changed(name) == []
    for code in ("GF774", "GF779", "GF784"):
        assert code in done.failures(name)
    mended = play("site", inventory(fleet.twin), limit=[name])
    assert mended.failures(name) == "" and mended.changed(name)
    assert play("verify", inventory(fleet.twin), limit=[name]).rc == 0


CRICTL = """#!/bin/sh
echo '{"config": {"containerd": {"runtimes": {"runc": {}}}}}'
"""


def test_a_runtime_that_the_cri_does_not_list_is_drift(fleet: Fleet) -> None:
    """crictl says what containerd has loaded, which is not what its file says before a restart."""
    name = fleet.names["empty-containerd"]
    fleet.twin.run(name, f"printf %s {shlex.quote(CRICTL)} > /usr/local/bin/crictl && chmod +x /usr/local/bin/crictl")
    try:
        done = play("verify", inventory(fleet.twin), limit=[name])
    finally:
        fleet.twin.run(name, "rm /usr/local/bin/crictl")
    assert "the CRI does not list nvidia" in done.failures(name) and done.changed(name) == []


def test_units_that_wait_for_each_other_at_boot(fleet: Fleet) -> None:
    """containerd after the CDI unit, which somebody ordered after the target: systemd names what it gives up."""
    name = fleet.names["empty-containerd"]
    orders = {"nvidia-cdi-refresh.path": "multi-user.target", "containerd.service": "nvidia-cdi-refresh.path"}
    files = {f"/etc/systemd/system/{unit}.d/own.conf": after for unit, after in orders.items()}
    for file, after in files.items():
        fleet.twin.run(name, f"install -D /dev/null {file} && printf '[Unit]\nAfter={after}\n' > {file}")
    fleet.twin.run(name, "systemctl daemon-reload")
    try:
        done = play("verify", inventory(fleet.twin), limit=[name])
    finally:
        fleet.twin.run(name, f"rm {' '.join(files)}; systemctl daemon-reload")
    assert "GF790" in done.failures(name) and "nvidia-cdi-refresh.path" in done.failures(name)
    assert done.changed(name) == []
    assert play("verify", inventory(fleet.twin), limit=[name]).rc == 0
