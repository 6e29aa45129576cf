"""From a bare server to GPUs for containers and back, on many kinds of hosts at once.

A fleet goes through the stages: check mode, converge, reboot where it is due, a run without changes, verify, uninstall
in check mode, uninstall, verify clean. The tests look at what each stage did to each host. There are two fleets: the
common kinds of hosts, and the others in a long test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.hosts.plays import Names, Play, inventory, play
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

VERSION = "580.178.04"
REMOVED = {"gpu_driver_state": "absent", "gpu_container_toolkit_state": "absent", "gpu_node_drained": True}


@dataclass(frozen=True)
class Kind:
    """One kind of host: scenario, variables, and what it is to look like."""

    scenario: str | dict[str, Any]
    variables: dict[str, Any] = field(default_factory=dict)
    gpus: int = 1
    flavour: str = "open"
    version: str = VERSION
    runtime: str = "containerd"
    fabric: str | None = None
    nouveau: bool = False


KINDS = {
    "t4": Kind("t4", nouveau=True),
    "debian13": Kind("debian13", nouveau=True),
    "v100": Kind("v100", gpus=4, flavour="proprietary", nouveau=True),
    "hgx-h100": Kind("hgx-h100", gpus=8, fabric="nvidia-fabricmanager"),
    "a100-pcie": Kind("a100-pcie", {"gpu_container_toolkit_default_runtime": True}, gpus=4),
    "b200": Kind("b200", gpus=8, fabric="nvidia-fabricmanager"),
    "mig-a100": Kind("mig-a100", {"gpu_mig_layout": "all-1g.10gb"}, gpus=8, fabric="nvidia-fabricmanager"),
    "containerd1": Kind("containerd1", gpus=2),
    "containerd2": Kind("containerd2", gpus=2),
    "k3s": Kind("k3s", {"gpu_container_toolkit_default_runtime": True}, runtime="k3s"),
    "docker": Kind(
        {"description": "docker", "gpus": [{"model": "T4", "count": 1}], "runtime": "docker"},
        {"gpu_driver_branch": "595", "gpu_driver_version": "595.91.07", "gpu_driver_components": "compute"},
        version="595.91.07",
        runtime="docker",
    ),
    "crio": Kind({"description": "crio", "gpus": [{"model": "T4", "count": 1}], "runtime": "crio"}, runtime="crio"),
    "runfile": Kind(
        {"description": "by the installer file", "gpus": [{"model": "T4", "count": 1}], "runtime": "containerd"},
        # the stand-in's NVML of an installer file is empty, so that the real nvidia-ctk finds no GPU
        {
            "gpu_driver_method": "runfile",
            "gpu_driver_version": "580.95.05",
            "gpu_container_toolkit_cdi_refresh": False,
        },
        version="580.95.05",
    ),
}
COMMON, OTHERS = "common", "others"
#: Which fleet a kind belongs to: one kind per driver flavour, fabric, MIG and family of runtimes is common.
FLEETS = {
    COMMON: ("t4", "v100", "hgx-h100", "mig-a100", "containerd1", "k3s", "docker"),
    OTHERS: ("debian13", "a100-pcie", "b200", "containerd2", "crio", "runfile"),
}
LONG = {COMMON: (), OTHERS: (pytest.mark.long,)}


def of_each(*kinds: str) -> pytest.MarkDecorator:
    """The test for each of these kinds, on the fleet that has it."""
    cases = [pytest.param(f, k, id=k, marks=LONG[f]) for f, members in FLEETS.items() for k in members if k in kinds]
    return pytest.mark.parametrize(("fleet", "kind"), cases, indirect=["fleet"])


def of_fleet(*fleets: str) -> pytest.MarkDecorator:
    """The test once for each of these fleets."""
    return pytest.mark.parametrize("fleet", [pytest.param(f, marks=LONG[f]) for f in fleets], indirect=True)


STAGES = ("check", "converge", "reboot", "second", "verify", "uncheck", "remove", "gone", "clean")


@dataclass
class Fleet:
    """The hosts by kind, and what each stage did."""

    twin: HostTwin
    names: dict[str, str]
    stages: dict[str, Play]
    seen: dict[str, dict[str, str]]  # host -> what commands said while it was converged

    def changed(self, stage: str, kind: str) -> list[str]:
        return self.stages[stage].changed(self.names[kind])


PEEK = {
    "smi": "nvidia-smi -L",
    "module": "cat /twin/proc/driver/nvidia/version",
    "holds": "apt-mark showhold",
    "fact": "cat /etc/ansible/facts.d/gpu.fact",
    "dump": "containerd config dump",
    "config": "cat /etc/containerd/config.toml",
    "toolkit": "cat /etc/nvidia-container-runtime/config.toml",
    "docker": "docker info",
    "crio": "cat /etc/crio/crio.conf.d/99-nvidia.toml",
    "k3s": "cat /var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "fabric": "systemctl is-active nvidia-fabricmanager",
    "persistenced": "systemctl is-active nvidia-persistenced",
    "versions": "dpkg-query -W -f '${Package} ${Version}\\n' '*nvidia*' 'cuda-drivers*' 'libnvsdm*' nvlsm",
    "cdi": "grep -c nvidia.com/gpu /var/run/cdi/nvidia.yaml",
    "sources": "cat /etc/apt/sources.list.d/gpufleet-*.sources",
    "system": "apt --version; python3 --version; containerd --version; sqv --version 2>&1",
    "cuda key": "gpg --show-keys --with-colons /usr/share/keyrings/gpufleet-cuda.asc | grep ^fpr",
}
LEFT = "find /etc /usr/share/keyrings /var/lib/dpkg/info -name '*gpufleet*' -o -name 'nvidia-open*.list'"


@pytest.fixture(scope="module")
def common(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The common kinds of hosts after all stages."""
    with HostTwin(tmp_path_factory.mktemp("fleet")) as twin:
        yield through_all_stages(FLEETS[COMMON], twin)


@pytest.fixture(scope="module")
def others(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The other kinds of hosts after all stages."""
    with HostTwin(tmp_path_factory.mktemp("fleet")) as twin:
        yield through_all_stages(FLEETS[OTHERS], twin)


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> Fleet:
    """The fleet of the test."""
    found: Fleet = request.getfixturevalue(request.param)
    return found


def through_all_stages(kinds: tuple[str, ...], twin: HostTwin) -> Fleet:
    """Start a host of each kind and take all of them through the stages."""
    names = Names({kind: KINDS[kind].scenario for kind in kinds})
    try:
        hosts = twin.start(len(names), [KINDS[kind].scenario for kind in names])
    except UnavailableError as error:
        pytest.skip(str(error))
    names.update(zip(names, (host.name for host in hosts), strict=True))
    variables = {host: dict(KINDS[kind].variables) for kind, host in names.items()}
    if "runfile" in names:
        said = twin.run(names["runfile"], f'python3 -c "{FETCH.format(**twin.places())}"').stdout
        variables[names["runfile"]]["gpu_driver_runfile_sha256"] = said.split()[0]
    wanted = inventory(twin, variables)
    stages: dict[str, Play] = {}
    stages["check"] = play("site", wanted, check=True)
    stages["converge"] = play("site", wanted)
    stages["reboot"] = play("site", wanted, gpu_reboot_policy="if_required")
    stages["second"] = play("site", wanted)
    stages["verify"] = play("verify", wanted)
    seen = {name: {key: twin.run(name, command).stdout for key, command in PEEK.items()} for name in names.values()}
    stages["uncheck"] = play("site", wanted, check=True, **REMOVED)
    stages["remove"] = play("site", wanted, **REMOVED)
    stages["gone"] = play("site", wanted, **REMOVED)
    stages["clean"] = play("verify", wanted, **REMOVED)
    for name in names.values():
        seen[name]["left"] = twin.run(name, LEFT).stdout
        seen[name]["bare"] = twin.run(name, "cat /etc/containerd/config.toml").stdout
    return Fleet(twin, names, stages, seen)


FETCH = (
    "import urllib.request as u; "
    "print(u.urlopen('{runfile_base}/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run.sha256sum').read().decode())"
)


@pytest.mark.parametrize("stage", STAGES)
@of_each(*KINDS)
def test_every_stage_works(fleet: Fleet, kind: str, stage: str) -> None:
    assert fleet.stages[stage].failures(fleet.names[kind]) == ""


@of_each(*KINDS)
def test_check_mode_reports_what_the_run_changes(fleet: Fleet, kind: str) -> None:
    assert fleet.changed("check", kind) == fleet.changed("converge", kind) != []
    assert fleet.changed("uncheck", kind) == fleet.changed("remove", kind) != []


@of_each(*KINDS)
def test_a_second_run_changes_nothing(fleet: Fleet, kind: str) -> None:
    assert fleet.changed("second", kind) == []
    assert fleet.changed("gone", kind) == []


@of_each(*KINDS)
def test_only_a_host_that_nouveau_holds_is_rebooted(fleet: Fleet, kind: str) -> None:
    rebooted = any("Reboot the host" in task for task in fleet.changed("reboot", kind))
    assert rebooted is KINDS[kind].nouveau
    first = fleet.stages["converge"]
    assert not any("Reboot" in task for task in first.changed(fleet.names[kind]))
    assert ("GF778" in first.messages(fleet.names[kind])) is KINDS[kind].nouveau


@of_each(*KINDS)
def test_the_driver_is_there_at_its_exact_version_and_held(fleet: Fleet, kind: str) -> None:
    seen, wanted = fleet.seen[fleet.names[kind]], KINDS[kind]
    assert seen["smi"].count("GPU ") == wanted.gpus
    assert wanted.version in seen["module"] and ("Open Kernel Module" in seen["module"]) is (wanted.flavour == "open")
    driver = [line.split() for line in seen["versions"].splitlines() if re.search(r" \d{3}\.\d+", line)]
    assert {version for _name, version in driver} <= {f"{wanted.version}-1"}
    assert {name for name, _version in driver} <= set(seen["holds"].split())
    assert seen["persistenced"].strip() == "active"


@of_each(*(kind for kind in KINDS if KINDS[kind].fabric))
def test_fabric_manager_runs_at_the_drivers_version(fleet: Fleet, kind: str) -> None:
    seen = fleet.seen[fleet.names[kind]]
    assert seen["fabric"].strip() == "active"
    assert f"nvidia-fabricmanager {VERSION}-1" in seen["versions"]
    assert ("nvlsm " in seen["versions"]) is (kind == "b200")


@of_each(*(kind for kind in KINDS if not KINDS[kind].fabric))
def test_no_fabric_manager_without_nvswitch(fleet: Fleet, kind: str) -> None:
    assert "fabricmanager" not in fleet.seen[fleet.names[kind]]["versions"]


@of_fleet(COMMON)
def test_proprietary_and_compute_packages_by_branch(fleet: Fleet) -> None:
    v100 = fleet.seen[fleet.names["v100"]]["versions"]
    assert "cuda-drivers-580 " in v100 and "nvidia-open" not in v100
    docker = fleet.seen[fleet.names["docker"]]["versions"]
    assert "nvidia-dkms-open 595.91.07-1" in docker and "libnvidia-gl" not in docker and "-595 " not in docker


@of_each(*KINDS)
def test_the_toolkit_is_pinned_and_its_policy_set(fleet: Fleet, kind: str) -> None:
    seen = fleet.seen[fleet.names[kind]]
    four = {
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "libnvidia-container-tools",
        "libnvidia-container1",
    }
    assert four <= set(seen["holds"].split())
    assert "nvidia-container-toolkit 1.20.0-1" in seen["versions"]
    assert "\naccept-nvidia-visible-devices-envvar-when-unprivileged = false" in "\n" + seen["toolkit"]
    assert (int(seen["cdi"] or 0) > 0) is KINDS[kind].variables.get("gpu_container_toolkit_cdi_refresh", True)


@of_each(*(kind for kind in KINDS if KINDS[kind].runtime == "containerd"))
def test_containerd_knows_the_runtime(fleet: Fleet, kind: str) -> None:
    dump = fleet.seen[fleet.names[kind]]["dump"]
    assert re.search(r"runtimes\.nvidia\.options\]", dump) and "runtimes.runc.options]" in dump
    default = 'default_runtime_name = "nvidia"' in dump.replace("'", '"')
    assert default is (kind == "a100-pcie")


@of_fleet(COMMON)
def test_local_changes_of_a_containerd_file_stay(fleet: Fleet) -> None:
    seen = fleet.seen[fleet.names["containerd1"]]
    assert 'sandbox_image = "registry.example/pause:3.9"' in seen["config"]
    assert seen["dump"].count("SystemdCgroup = true") == 2  # ours has the cgroup driver of runc
    assert "BEGIN gpufleet" in seen["config"] and "gpufleet" not in seen["bare"]
    assert 'sandbox_image = "registry.example/pause:3.9"' in seen["bare"]


@of_fleet(OTHERS)
def test_debian_13_is_debian_13(fleet: Fleet) -> None:
    """apt 3 with sqv, the directory's own key, and containerd 1.7, which reads version 2 and knows no conf.d."""
    seen = fleet.seen[fleet.names["debian13"]]
    for part in ("apt 3.", "Python 3.13.", "/containerd 1.7.", "sqv 1."):
        assert part in seen["system"]
    places = fleet.twin.places()
    assert f"URIs: {places['cuda_base']}/debian13/x86_64/\n" in seen["sources"]
    assert seen["cuda key"].replace(":", " ").split() == ["fpr", places["cuda_resigned_fingerprint"]]
    assert seen["config"].startswith("version = 2\n") and seen["dump"].count("\nversion = 2\n") == 1
    assert '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]' in seen["dump"]
    assert "BEGIN gpufleet" in seen["config"] and seen["bare"] and "gpufleet" not in seen["bare"]


@of_each("docker", "crio", "k3s")
def test_other_runtimes_know_it_too(fleet: Fleet, kind: str) -> None:
    seen = fleet.seen[fleet.names[kind]][kind]
    if kind == "docker":
        assert json.loads(seen)["Runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
    elif kind == "crio":
        assert "[crio.runtime.runtimes.nvidia]" in seen
    else:
        assert "nvidia-container-runtime" in seen and "default_runtime_name" in seen


@of_fleet(COMMON)
def test_the_mig_layout_is_applied(fleet: Fleet) -> None:
    assert fleet.seen[fleet.names["mig-a100"]]["smi"].count("MIG 1g.10gb") == 8 * 7


@of_each(*KINDS)
def test_the_fact_file_says_what_is_there(fleet: Fleet, kind: str) -> None:
    fact, wanted = json.loads(fleet.seen[fleet.names[kind]]["fact"]), KINDS[kind]
    assert fact["driver"]["version"] == fact["driver"]["library"] == wanted.version
    assert fact["driver"]["flavour"] == wanted.flavour and fact["driver"]["owner"] == "host"
    assert len(fact["gpus"]) == wanted.gpus and fact["healthy"] is True and fact["reboot_required"] == []
    assert fact["last_good"]["version"] == wanted.version
    assert fact["runtime"]["owner"] == wanted.runtime and fact["runtime"]["handler"] == "nvidia"


@of_fleet(COMMON, OTHERS)
def test_only_the_mirror_is_asked(fleet: Fleet) -> None:
    for name in fleet.names.values():
        assert "nvidia.com" not in fleet.seen[name]["sources"] and "github.io" not in fleet.seen[name]["sources"]


@of_each(*KINDS)
def test_uninstalling_leaves_nothing_of_ours(fleet: Fleet, kind: str) -> None:
    assert fleet.seen[fleet.names[kind]]["left"].split() == []
