"""The host twin for tests and for the command line: start hosts, run commands on them, change them, stop them."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import cgroup, machine, network, nspawn, paths, root, state
from .errors import TwinError

START_LIMIT = 60.0  # seconds for sshd of the last host to answer


@dataclass(frozen=True)
class Result:
    """What a command on a host gave back."""

    rc: int
    stdout: str
    stderr: str


@dataclass
class Host:
    """One running host."""

    name: str
    address: str
    scenario: str
    machine: nspawn.Machine
    ssh_args: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        """Return where a path of the host lies on this machine (through the mounted overlay)."""
        return self.machine.tree / inside.lstrip("/")


class HostTwin:
    """A set of hosts on one bridge, kept in one state folder.

    Used as a context manager it stops what it started. Methods raise UnavailableError where this machine cannot run
    hosts, and TwinError for everything else.
    """

    def __init__(self, directory: Path | None = None, progress: bool = False) -> None:
        """Use `directory` for state (default: the checkout's `.twin/hosts`); `progress` prints what takes long."""
        self.directory = (directory or paths.default_state_dir()).resolve()
        self.progress = progress
        self.network: network.Network | None = None
        self.hosts: list[Host] = []
        self._state: state.TwinState | None = None

    def __enter__(self) -> HostTwin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self, count: int, scenarios: Sequence[str] = ()) -> list[Host]:
        """Start `count` hosts and wait until each answers SSH. Hosts left from an earlier run are stopped first.

        `scenarios` names one scenario per host; the last one serves all further hosts.
        """
        machine.check()
        tree = root.ensure_root(self.progress)
        self.stop()
        self.directory.mkdir(parents=True, exist_ok=True)
        with paths.locked(Path("/run/lock/gpufleet-hosts.lock")):
            self.network = network.create(self.directory)
        self._state = state.TwinState(self.network.bridge, self.network.subnet)
        state.save(self.directory, self._state)
        try:
            self._start_hosts(count, list(scenarios), tree)
        except BaseException:
            self.stop()
            raise
        return self.hosts

    def _start_hosts(self, count: int, scenarios: list[str], tree: Path) -> None:
        assert self.network is not None and self._state is not None
        public_key = self._ensure_key()
        names = [f"gpu{number:02d}" for number in range(1, count + 1)]
        addresses = {name: self.network.address(index) for index, name in enumerate(names)}
        for index, name in enumerate(names):
            scenario = scenarios[min(index, len(scenarios) - 1)] if scenarios else ""
            directory = self.directory / name
            lowers = [str(tree)]
            host = Host(name, addresses[name], scenario, nspawn.Machine(name, directory, lowers=lowers))
            host.ssh_args = self._ssh_args()
            self.hosts.append(host)
            self._state.hosts.append(state.HostState(name, host.address, scenario, lowers))
        state.save(self.directory, self._state)
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(lambda host: self._prepare(host, public_key, addresses), self.hosts))
        self._write_known_hosts()
        for host, entry in zip(self.hosts, self._state.hosts, strict=True):
            nspawn.start(host.machine, self.network.bridge)
            entry.pid, entry.started = host.machine.pid, host.machine.started
            state.save(self.directory, self._state)
        self.wait_ssh(self.hosts)

    def _prepare(self, host: Host, public_key: str, addresses: dict[str, str]) -> None:
        assert self.network is not None
        nspawn.mount(host.machine)
        nspawn.write_identity(host.machine, host.address, self.network.prefix, public_key, addresses)

    def _ensure_key(self) -> str:
        key = self.directory / "ssh" / "id_ed25519"
        if not key.exists():
            key.parent.mkdir(parents=True, exist_ok=True)
            key.parent.chmod(0o700)
            machine.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpufleet-twin", "-f", str(key)])
        return key.with_suffix(".pub").read_text()

    def _ssh_args(self) -> list[str]:
        folder = self.directory / "ssh"
        return [
            "-F", "/dev/null", "-i", str(folder / "id_ed25519"), "-o", f"UserKnownHostsFile={folder / 'known_hosts'}",
            "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", "-o", "PreferredAuthentications=publickey",
        ]  # fmt: skip

    def _write_known_hosts(self) -> None:
        lines = []
        for host in self.hosts:
            key = host.path("/etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
            lines.append(f"{host.address},{host.name} {key[0]} {key[1]}")
        (self.directory / "ssh" / "known_hosts").write_text("\n".join(lines) + "\n")

    def wait_ssh(self, hosts: Sequence[Host], limit: float = START_LIMIT) -> None:
        """Wait until each host answers SSH and systemd has finished its start. Raises TwinError with the console."""
        deadline = time.monotonic() + limit
        for host in hosts:
            while True:
                result = self.run(host, "systemctl is-system-running --wait", timeout=20)
                if result.rc == 0 or "degraded" in result.stdout:
                    break
                if not host.machine.alive or time.monotonic() > deadline:
                    tail = nspawn.console_tail(host.machine)
                    raise TwinError(f"{host.name} ({host.address}) did not come up: {result.stderr.strip()}\n{tail}")
                time.sleep(0.1)

    # -- use -----------------------------------------------------------------------------------------------------

    def host(self, name: str) -> Host:
        """Return a host by name. Raises TwinError when there is none."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise TwinError(f"no host {name!r}; running: {', '.join(host.name for host in self.hosts) or 'none'}")

    def run(self, host: Host | str, command: str | Sequence[str], timeout: float = 120) -> Result:
        """Run a command on a host through SSH as root; a list is quoted for the shell. Never raises on a bad exit."""
        target = self.host(host) if isinstance(host, str) else host
        text = command if isinstance(command, str) else shlex.join(command)
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR"]
        full = ["ssh", *target.ssh_args, *options, f"root@{target.address}", text]
        try:
            done = subprocess.run(full, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return Result(124, "", f"no answer within {timeout:g} s")
        return Result(done.returncode, done.stdout, done.stderr)

    def inventory(self, **variables: Any) -> dict[str, Any]:
        """Return an Ansible inventory (the structure of a YAML inventory file) with `variables` for all hosts."""
        common = " ".join(shlex.quote(part) for part in self._ssh_args())
        hosts = {host.name: {"ansible_host": host.address, "twin_scenario": host.scenario} for host in self.hosts}
        shared = {
            "ansible_user": "root",
            "ansible_ssh_common_args": common,
            "ansible_python_interpreter": "/usr/bin/python3",
            **variables,
        }
        return {"all": {"hosts": hosts, "vars": shared}}

    def memory_mib(self, host: Host) -> float:
        """Return the memory of a host in MiB (proportional set size of its processes)."""
        assert self.network is not None
        return cgroup.memory_kib(self.network.bridge, host.name) / 1024

    # -- stop ----------------------------------------------------------------------------------------------------

    def attach(self) -> bool:
        """Take over hosts that another process started from the same state folder; False when nothing is recorded."""
        found = state.load(self.directory)
        if found is None:
            return False
        self._state = found
        self.network = network.Network(found.bridge, found.subnet)
        self.hosts = []
        for entry in found.hosts:
            box = nspawn.Machine(entry.name, self.directory / entry.name, entry.pid, entry.started, entry.lowers)
            self.hosts.append(Host(entry.name, entry.address, entry.scenario, box, self._ssh_args()))
        return True

    def stop(self) -> None:
        """Stop the hosts and remove overlays, mounts and the bridge. Safe to call when nothing runs."""
        if self._state is None and not self.attach():
            return
        assert self._state is not None
        nspawn.stop([host.machine for host in self.hosts])
        for host in self.hosts:
            nspawn.unmount(host.machine)
        cgroup.remove(self._state.bridge)
        network.remove(self._state.bridge)
        state.path(self.directory).unlink(missing_ok=True)
        self._state, self.network, self.hosts = None, None, []
