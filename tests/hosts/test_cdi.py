"""RP-10: CDI in the container runtimes of real hosts. containerd is the real one, 1.6, 1.7 and 2.2."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.hosts.plays import Names, Play, inventory, play
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

OFF = """version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = false
"""
KINDS = {
    "1.6": "containerd1",
    "1.7": "debian13",
    "2.2, the file says false": {
        "description": "containerd 2.2 whose file switches CDI off",
        "gpus": [{"model": "L40S", "count": 1}],
        "runtime": "containerd2",
        "files": {"/etc/containerd/config.toml": OFF},
    },
    "k3s": "k3s",
}
REACHED = [kind for kind in KINDS if kind != "1.6"]
ON = {"gpu_container_toolkit_cdi": True, "gpu_reboot_policy": "if_required"}


class Hosts:
    """One host of each kind, and what each stage did."""

    def __init__(self, twin: HostTwin, names: Names) -> None:
        """Preflight, converge, once more, verify; then without the variable."""
        self.twin, self.names = twin, names
        wanted = inventory(twin)
        ready = [names[kind] for kind in REACHED if kind in names]
        self.stages: dict[str, Play] = {"preflight": play("preflight", wanted, **ON)}
        self.before = {kind: self.cdi(kind) for kind in names}
        self.stages["converge"] = play("site", wanted, limit=ready, **ON)
        self.stages["second"] = play("site", wanted, limit=ready, **ON)
        self.stages["verify"] = play("verify", wanted, limit=ready, **ON)
        self.stages["no longer asked for"] = play("site", wanted, limit=ready)
        self.wanted = wanted

    def cdi(self, kind: str) -> str:
        """What the effective configuration says."""
        dump = self.twin.run(self.names[kind], "containerd config dump").stdout
        found = re.search(r"enable_cdi = (\w+)", dump)
        return found[1] if found else "nothing"


@pytest.fixture(scope="module")
def hosts(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """The hosts after all stages."""
    with HostTwin(tmp_path_factory.mktemp("cdi")) as twin:
        names = Names(KINDS)
        try:
            started = twin.start(len(names), [KINDS[kind] for kind in names])
        except UnavailableError as error:
            pytest.skip(str(error))
        names.update(zip(names, (host.name for host in started), strict=True))
        yield Hosts(twin, names)


def test_rp_10_a_containerd_without_cdi_is_refused(hosts: Hosts) -> None:
    said = hosts.stages["preflight"].messages(hosts.names["1.6"])
    assert re.search(r"GF791 error: .*: containerd 1\.6\.\d+, needs 1\.7\.16", said)
    assert hosts.before["1.6"] == "nothing"


@pytest.mark.parametrize("kind", REACHED)
def test_rp_10_cdi_is_on_and_stays_on(hosts: Hosts, kind: str) -> None:
    name = hosts.names[kind]
    for stage in ("preflight", "converge", "second", "verify", "no longer asked for"):
        assert hosts.stages[stage].failures(name) == "", stage
    assert hosts.stages["second"].changed(name) == []
    assert not [task for task in hosts.stages["no longer asked for"].changed(name) if "toolkit" in task]
    if kind != "k3s":
        assert hosts.before[kind] == "false" and hosts.cdi(kind) == "true"


def test_rp_10_verify_sees_a_file_that_switches_it_off_and_the_role_gives_the_old_one_back(hosts: Hosts) -> None:
    name = hosts.names["1.7"]
    hosts.twin.run(name, "sed -i 's/enable_cdi = true/enable_cdi = false/' /etc/containerd/config.toml")
    done = play("verify", hosts.wanted, limit=[name], **ON)
    assert "GF793" in done.failures(name) and "enable_cdi = false in plugins.io.containerd.grpc.v1.cri" in done.output
    assert play("site", hosts.wanted, limit=[name], **ON).failures(name) == "" and hosts.cdi("1.7") == "true"
    gone = play("site", hosts.wanted, limit=[name], gpu_container_toolkit_state="absent", gpu_node_drained=True)
    assert gone.failures(name) == "" and hosts.cdi("1.7") == "false"
