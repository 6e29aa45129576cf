"""``python -m twin up | down | status`` in checkouts of their own: start, reuse, repair, end without a trace."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from twin import controlplane, ports, processes
from twin.controlplane import Layout
from twin.engine import CHECKOUT, wait

STACK = """\
# a comment that stays
config:
  gpufleet:cluster: {kind: existing, name: cmd, site: cmd, kubeconfig: {path: elsewhere.conf, context: cmd-admin}}
  gpufleet:pools:
    - {name: t4,    hosts: {cmd-1: {}}, gpu: T4, gpusPerNode: 1, sharing: notebooks}
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing:
    notebooks: {strategy: timeSlicing, replicas: 4}
"""


class Checkout:
    """A copy of what `make up` needs, with one stack, and questions about what runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        shutil.copytree(CHECKOUT / "twin", folder / "twin", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("__main__.py", "Pulumi.yaml", "infra", ".venv"):
            (folder / name).symlink_to(CHECKOUT / name)
        (folder / "stacks").mkdir()
        self.stack_file = folder / "stacks" / "Pulumi.cmd.yaml"
        self.stack_file.write_text(STACK)
        self.layout = Layout(folder / ".twin" / "clusters" / "cmd")

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "twin", *words]

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), cwd=self.folder, env={**os.environ, **env}, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip

    def up(self, *words: str, **env: str) -> str:
        done = self.run("up", "--stack", "cmd", *words, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def in_shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command in a shell that has sourced the twin's `env`."""
        return subprocess.run(
            ["sh", "-c", f"set -e; . .twin/env; {command}"], cwd=self.folder, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip

    def pids(self) -> dict[str, int]:
        return controlplane.running(self.layout)

    def processes(self) -> list[str]:
        """Every process of the machine whose command line or working folder names this checkout."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    where = str((entry / "cwd").readlink())
                except OSError:
                    continue
                if str(self.folder) in words or where.startswith(str(self.folder)):
                    found.append(f"{entry.name} {words}")
        return found


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Callable[[str], Checkout]]:
    made: list[Checkout] = []

    def make(name: str) -> Checkout:
        made.append(Checkout(tmp_path / name))
        return made[-1]

    yield make
    for one in made:
        one.run("down")


def test_life_of_a_twin(checkout: Callable[[str], Checkout]) -> None:
    here = checkout("here")

    said = here.up()
    assert "started etcd, apiserver, controller-manager, scheduler, kwok, advertiser" in said
    assert "cmd: the cluster agrees with the stack file (1 of 1 nodes agree)." in said
    assert "source .twin/clusters/cmd/env" in said
    assert here.stack_file.read_text() == STACK
    first = here.pids()
    assert set(first) == set(controlplane.ORDER)
    contexts = yaml.safe_load(here.layout.kubeconfig.read_text())["contexts"]
    assert [context["name"] for context in contexts] == ["twin", "cmd-admin"]

    sourced = here.in_shell('pulumi stack ls --json; gpufleet status -s cmd >&2; echo "$KUBECONFIG" >&2')
    assert sourced.returncode == 0, sourced.stderr
    assert [stack["name"] for stack in json.loads(sourced.stdout)] == ["cmd"]
    assert str(here.layout.kubeconfig) in sourced.stderr
    assert here.in_shell("pulumi preview -s cmd --non-interactive --expect-no-changes").returncode == 0

    again = here.in_shell(shlex.join(here.command("up", "--stack", "cmd")))  # from a shell that uses the twin
    assert again.returncode == 0, again.stdout + again.stderr
    said = again.stdout
    assert "runs already" in said
    assert "unchanged" in said
    assert here.pids() == first

    plugin = _plugin_pod(here)
    os.kill(first["apiserver"], signal.SIGKILL)
    wait(lambda: "apiserver" not in here.pids(), 10, "the API server is gone")
    status = here.run("status")
    assert status.returncode == 1
    assert re.search(r"apiserver +does not run", status.stdout)
    said = here.up()
    assert "started apiserver (" in said
    second = here.pids()
    assert {name for name in first if first[name] != second[name]} == {"apiserver"}

    for pid in second.values():
        os.kill(pid, signal.SIGKILL)
    said = here.up()
    assert "1 of 1 nodes agree" in said
    assert _plugin_pod(here) == plugin  # the cluster's memory outlived all of them

    status = here.run("status")
    assert status.returncode == 0
    assert re.search(r"node cmd-1 +1 x T4 +nvidia.com/gpu: 4", status.stdout)

    down = here.run("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert here.processes() == []
    assert not (here.folder / ".twin").exists()
    assert here.run("down").stdout == "Nothing to do: there is no twin in this checkout.\n"
    assert here.run("status").returncode == 1


def _plugin_pod(here: Checkout) -> str:
    from kubernetes import client

    pods = client.CoreV1Api(controlplane.api_client(here.layout)).list_pod_for_all_namespaces().items
    (pod,) = [pod for pod in pods if pod.metadata.owner_references[0].kind == "DaemonSet"]
    return str(pod.metadata.uid)


@pytest.mark.long
def test_two_checkouts_side_by_side(checkout: Callable[[str], Checkout]) -> None:
    both = [checkout("one"), checkout("two")]
    running = [
        subprocess.Popen(one.command("up", "--stack", "cmd", "--no-deploy"), cwd=one.folder, stdout=subprocess.PIPE)
        for one in both
    ]
    outputs = [process.communicate(timeout=240)[0].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    ports = [controlplane.state(one.layout)["ports"] for one in both]
    assert not set(ports[0].values()) & set(ports[1].values())
    assert both[0].run("down").returncode == 0
    assert both[0].processes() == []
    assert set(both[1].pids()) == set(controlplane.ORDER)
    assert both[1].run("status").returncode == 0


class Stranger(BaseHTTPRequestHandler):
    """Somebody else's server, which says that all is well, as another twin's would."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_port_that_somebody_took_meanwhile(checkout: Callable[[str], Checkout]) -> None:
    here = checkout("here")
    here.up("--no-deploy")
    before = here.pids()
    processes.stop([processes.read(here.layout.run)["kwok"]])
    port = controlplane.state(here.layout)["ports"]["kwok"]
    wait(lambda: ports.is_free(port), 20, f"port {port} is given back")  # the kernel does it after the process has gone
    with HTTPServer(("127.0.0.1", port), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here.up("--no-deploy")
        server.shutdown()
    assert controlplane.state(here.layout)["ports"]["kwok"] != port
    assert set(here.pids()) == set(controlplane.ORDER)
    assert not set(before.values()) & set(here.pids().values())


def kill_when(here: Checkout, record: str) -> None:
    """Kill `up` without warning as soon as it has started a certain process."""
    with (here.folder / "up.log").open("wb") as log:
        process = subprocess.Popen(here.command("up", "--stack", "cmd"), cwd=here.folder, stdout=log, stderr=log)
    end = time.monotonic() + 120
    while not (here.layout.run / f"{record}.json").exists():
        assert process.poll() is None, (here.folder / "up.log").read_text()
        assert time.monotonic() < end
        time.sleep(0.01)
    process.kill()
    process.wait()


@pytest.mark.parametrize("record", ["etcd", pytest.param("kwok", marks=pytest.mark.long)])
def test_a_start_that_is_killed_leaves_nothing_that_down_does_not_find(
    checkout: Callable[[str], Checkout], record: str
) -> None:
    here = checkout("here")
    kill_when(here, record)
    down = here.run("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert here.processes() == []
    assert not (here.folder / ".twin").exists()


@pytest.mark.long
def test_a_deployment_that_is_killed_is_taken_up_again(checkout: Callable[[str], Checkout]) -> None:
    here = checkout("here")
    kill_when(here, "pulumi")
    assert "1 of 1 nodes agree" in here.up()


@pytest.mark.long
def test_a_cluster_that_is_lost_is_made_anew(checkout: Callable[[str], Checkout]) -> None:
    here = checkout("here")
    here.up()
    for pid in here.pids().values():
        os.kill(pid, signal.SIGKILL)
    wait(lambda: not here.pids(), 10, "everything is gone")
    shutil.rmtree(here.layout.root)
    assert "1 of 1 nodes agree" in here.up()
    assert here.in_shell("pulumi preview -s cmd --non-interactive --expect-no-changes").returncode == 0


def test_a_start_that_fails_shows_the_log_and_no_traceback(checkout: Callable[[str], Checkout], tmp_path: Path) -> None:
    here = checkout("here")
    assets = tmp_path / "assets"
    assets.mkdir()
    broken = (
        '#!/bin/sh\n[ "$1" = --version ] && { echo "etcd Version: 3.6.0"; exit 0; }\necho the disk is on fire; exit 7\n'
    )
    (assets / "etcd").write_text(broken)
    (assets / "etcd").chmod(0o755)
    failed = here.run("up", "--stack", "cmd", KUBEBUILDER_ASSETS=str(assets))
    assert failed.returncode == 1
    assert "etcd ended at once" in failed.stderr
    assert "the disk is on fire" in failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr
    assert here.run("down").returncode == 0
    assert here.processes() == []


def test_a_machine_without_go_is_told_what_to_install(checkout: Callable[[str], Checkout], tmp_path: Path) -> None:
    here = checkout("here")
    empty = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "cache"), "PULUMI_HOME": str(tmp_path / "pulumi")}
    failed = here.run("up", "--stack", "cmd", **empty, KUBEBUILDER_ASSETS="")
    assert failed.returncode == 1
    assert "https://go.dev/dl/" in failed.stderr
    assert "kwok 0.8.0" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (here.folder / ".twin").exists()


def test_a_stack_that_is_not_there_is_answered_with_those_that_are(checkout: Callable[[str], Checkout]) -> None:
    failed = checkout("here").run("up", "--stack", "cdm")
    assert failed.returncode == 1
    assert "there is no stack 'cdm'" in failed.stderr
    assert "Stacks: cmd" in failed.stderr


def test_simulated_hosts_are_not_taken_down_with_it(checkout: Callable[[str], Checkout]) -> None:
    here = checkout("here")
    (here.folder / ".twin" / "hosts" / "gpu01" / "run").mkdir(parents=True)
    (here.folder / ".twin" / "state").mkdir()
    down = here.run("down")
    assert "make hosts-down" in down.stdout
    assert (here.folder / ".twin" / "hosts" / "gpu01" / "run").exists()
    assert not (here.folder / ".twin" / "state").exists()
