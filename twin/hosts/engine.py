"""The host twin for tests and for the command line: start hosts, run commands on them, change them, stop them."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cgroup, layers, limits, machine, network, nspawn, paths, recover, repository, root, serve, setup, state
from . import scenarios as scenario_files
from .errors import TwinError
from .scenarios import Scenario

START_LIMIT = 60.0  # seconds for sshd of the last host to answer; more by the number of hosts
LOCK = Path("/run/lock/gpufleet-hosts.lock")  # one subnet is chosen at a time on this machine
ScenarioLike = str | Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What a command on a host gave back."""

    rc: int
    stdout: str
    stderr: str


@dataclass
class Host:
    """One host of the twin."""

    name: str
    address: str
    scenario: Scenario
    machine: nspawn.Machine
    ssh_args: list[str]

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
        self.repository: repository.Repository | None = None
        self.hosts: list[Host] = []
        self._state: state.TwinState | None = None

    def __enter__(self) -> HostTwin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self, count: int, scenarios: Sequence[ScenarioLike] = (), nspawn_args: Sequence[str] = ()) -> list[Host]:
        """Start `count` hosts and wait until each answers SSH. Hosts left from an earlier run are stopped first.

        `scenarios` has one scenario (name, file or content) per host; the last one serves all further hosts, none means
        `t4`. `nspawn_args` are added to each host's command.
        """
        if count < 1:
            raise TwinError(f"{count} hosts: at least one is needed")
        wanted = [scenario_files.load(entry) for entry in scenarios] or [scenario_files.load(scenario_files.DEFAULT)]
        machine.check()
        for suite in sorted({root.SUITE, *(scenario.suite for scenario in wanted)}):
            root.ensure_root(self.progress, suite)
        repo = self.repository = repository.ensure(self.progress)
        lowers = [layers.lowers(scenario, repo, self.progress) for scenario in wanted]
        self.stop()
        self.directory.mkdir(parents=True, exist_ok=True)
        with paths.locked(LOCK):
            self.network = network.create(self.directory)
            limits.raise_for(count)
        self._state = state.TwinState(self.network.bridge, self.network.subnet, nspawn_args=list(nspawn_args))
        self._save()
        try:
            self._state.server = serve.start(repo.folder, self.network.gateway, self.network.bridge, self.directory)
            self._save()
            self._ensure_key()
            for index in range(count):
                place = min(index, len(wanted) - 1)
                scenario = wanted[place]
                name = f"gpu{index + 1:02d}"
                box = nspawn.Machine(name, self.directory / name, lowers=lowers[place])
                address = self.network.address(index)
                self.hosts.append(Host(name, address, scenario, box, self._ssh_args()))
                self._state.hosts.append(state.HostState(name, address, scenario.name, box.lowers))
            self._save()
            self._launch(self.hosts)
        except BaseException:
            self.stop()
            raise
        return self.hosts

    def _launch(self, hosts: Sequence[Host]) -> None:
        """Mount, set up and boot hosts, and wait for them."""
        assert self.network is not None and self._state is not None
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(self._prepare, hosts))
        self._write_known_hosts()
        for host in hosts:
            nspawn.start(host.machine, self.network.bridge, self._state.nspawn_args)
            entry = self._entry(host.name)
            entry.pid, entry.started, entry.scenario = host.machine.pid, host.machine.started, host.scenario.name
            entry.lowers = host.machine.lowers
            self._save()
        self.wait_ready(hosts)

    def _prepare(self, host: Host) -> None:
        assert self.network is not None
        nspawn.mount(host.machine)
        neighbours = {other.name: other.address for other in self.hosts}
        key = (self.directory / "ssh/id_ed25519.pub").read_text()
        nspawn.write_identity(host.machine, host.address, self.network.prefix, key, neighbours)
        repo = self.repository or repository.ensure(self.progress)
        log = host.machine.directory / "setup.log"
        setup.apply(host.machine.tree, host.scenario, host.name, self.url, repo.folder, log)
        self._save_scenario(host)

    def replace(self, host: Host | str, scenario: ScenarioLike | None = None) -> Host:
        """Throw one host away and start it afresh, with the same name and address; by default in the same scenario."""
        target = self._host(host)
        assert self.network is not None
        nspawn.stop([target.machine], self.network.bridge)
        nspawn.unmount(target.machine)
        if scenario is not None:
            target.scenario = scenario_files.load(scenario)
            target.machine.lowers = layers.lowers(target.scenario, repository.ensure(self.progress), self.progress)
        self._launch([target])
        return target

    def wait_ready(self, hosts: Sequence[Host], limit: float = START_LIMIT) -> None:
        """Wait until each host answers SSH and systemd has finished its start. Raises TwinError with the console."""
        deadline = time.monotonic() + limit + 4 * len(hosts)
        for host in hosts:
            while True:
                result = self.run(host, "systemctl is-system-running --wait", timeout=20)
                if result.stdout.strip() in ("running", "degraded"):
                    break
                if not host.machine.alive or time.monotonic() > deadline:
                    tail = nspawn.console_tail(host.machine)
                    raise TwinError(f"{host.name} ({host.address}) did not come up: {result.stderr.strip()}\n{tail}")
                time.sleep(0.1)

    def reboot(self, host: Host | str, limit: float = START_LIMIT) -> None:
        """Reboot a host the way an operator does, and wait until it is up with a new boot id."""
        target = self._host(host)
        ask = "cat /proc/sys/kernel/random/boot_id"
        before = self.run(target, ask).stdout
        self.run(target, "systemctl reboot", timeout=10)
        deadline = time.monotonic() + limit
        while self.run(target, ask, timeout=10).stdout in ("", before):
            if time.monotonic() > deadline:
                raise TwinError(f"{target.name} did not come back\n{nspawn.console_tail(target.machine)}")
            time.sleep(0.1)
        self.wait_ready([target], limit)

    # -- use ---------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address of the package server, without a slash at its end."""
        assert self.network is not None and self._state is not None and self._state.server is not None
        port = self._state.server.port
        return f"http://{self.network.gateway}" + ("" if port == 80 else f":{port}")

    def _host(self, host: Host | str) -> Host:
        return self.host(host) if isinstance(host, str) else host

    def host(self, name: str) -> Host:
        """Return a host by name. Raises TwinError when there is none."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise TwinError(f"no host {name!r}; running: {', '.join(host.name for host in self.hosts) or 'none'}")

    def run(self, host: Host | str, command: str | Sequence[str], timeout: float = 120) -> Result:
        """Run a command on a host through SSH as root; a list is quoted for the shell. Never raises on a bad exit."""
        target = self._host(host)
        text = command if isinstance(command, str) else shlex.join(command)
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR"]
        full = ["ssh", *target.ssh_args, *options, f"root@{target.address}", text]
        try:
            done = subprocess.run(full, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return Result(124, "", f"no answer within {timeout:g} s")
        return Result(done.returncode, done.stdout, done.stderr)

    def set_scenario(self, host: Host | str, changes: Mapping[str, Any]) -> None:
        """Change a running host's hardware or failures: `changes` is laid over its scenario, mappings key by key.

        What the host's tools read changes at once (`failures`, `ecc_errors`, `gpus`, ...); what a start installs
        (`runtime`, `packages`, `files`, ...) does not. `None` as a failure's value takes it back.
        """
        target = self._host(host)
        values = scenario_files.merge(target.scenario.values, changes)
        target.scenario = Scenario(target.scenario.name, scenario_files.check(target.scenario.name, values))
        target.path("/twin/scenario.json").write_text(scenario_files.dump(target.scenario, target.name))
        self._save_scenario(target)
        result = self.run(target, "python3 -S -E /twin/lib/guest render")
        if result.rc != 0:
            raise TwinError(f"{target.name}: {result.stderr}")

    def kernel_log(self, host: Host | str, line: str) -> None:
        """Write one line to a host's kernel log, as a failing GPU does (`NVRM: Xid (PCI:0000:17:00): 79, ...`)."""
        result = self.run(host, ["python3", "-S", "-E", "/twin/lib/guest", "kernel-log", line])
        if result.rc != 0:
            raise TwinError(f"kernel log: {result.stderr}")

    def spoil_server(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Make the package server answer badly (server.py lists the rules); no rules make it whole again."""
        (self.directory / serve.RULES).write_text(json.dumps(list(rules)))

    def requests(self) -> list[dict[str, Any]]:
        """Return what hosts asked of the package server: host, path, status."""
        log = self.directory / "requests.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def inventory(self, **variables: Any) -> dict[str, Any]:
        """Return an Ansible inventory (the structure of a YAML inventory file) with `variables` for all hosts."""
        common = " ".join(shlex.quote(part) for part in self._ssh_args())
        hosts = {host.name: {"ansible_host": host.address} for host in self.hosts}
        shared = {
            "ansible_user": "root",
            "ansible_ssh_common_args": common,
            "ansible_python_interpreter": "/usr/bin/python3",
            **variables,
        }
        return {"all": {"hosts": hosts, "vars": shared}}

    def places(self) -> dict[str, str]:
        """Return what roles have to be told: roots of the simulated files, addresses and keys of the repositories."""
        repo = self.repository or repository.ensure(progress=False)
        url = self.url
        return {
            "sysfs_root": "/twin/sys",
            "proc_root": "/twin/proc",
            "dev_root": "/dev",
            "package_server": url,
            "cuda_base": f"{url}/compute/cuda/repos",
            "cuda_key": f"{url}/compute/cuda/repos/debian12/x86_64/3bf863cc.pub",
            "cuda_fingerprint": repo.fingerprints["cuda"],
            "cuda_resigned_key": f"{url}/compute/cuda/repos/debian13/x86_64/8793F200.pub",
            "cuda_resigned_fingerprint": repo.fingerprints["resigned"],
            "cuda_retired_key": f"{url}/compute/cuda/repos/debian12/x86_64/7fa2af80.pub",
            "toolkit_base": f"{url}/libnvidia-container/stable/deb/amd64",
            "toolkit_key": f"{url}/libnvidia-container/gpgkey",
            "toolkit_fingerprint": repo.fingerprints["toolkit"],
            "runfile_base": f"{url}/tesla",
            "archive": f"{url}/debian",
        }

    def memory_mib(self, host: Host | str) -> float:
        """Return the memory of a host in MiB (proportional set size of its processes)."""
        assert self.network is not None
        return cgroup.memory_kib(self.network.bridge, self._host(host).name) / 1024

    # -- stop --------------------------------------------------------------------------------------------------------

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
            self.hosts.append(Host(entry.name, entry.address, self._saved_scenario(entry), box, self._ssh_args()))
        return True

    def stop(self) -> None:
        """Stop the hosts and remove overlays, mounts, the server and the bridge. Safe to call when nothing runs."""
        if self._state is None and not self.attach():
            recover.remove(self.directory)
            return
        assert self._state is not None
        nspawn.stop([host.machine for host in self.hosts], self._state.bridge)
        for host in self.hosts:
            nspawn.unmount(host.machine)
        if self._state.server is not None:
            serve.stop(self._state.server, self.directory)
        cgroup.remove(self._state.bridge)
        with paths.locked(LOCK):
            network.remove(self._state.bridge)
            limits.restore()
        state.path(self.directory).unlink(missing_ok=True)
        self._state, self.network, self.hosts = None, None, []

    # -- own files ---------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        assert self._state is not None
        state.save(self.directory, self._state)

    def _entry(self, name: str) -> state.HostState:
        assert self._state is not None
        return next(entry for entry in self._state.hosts if entry.name == name)

    def _save_scenario(self, host: Host) -> None:
        (host.machine.directory / "scenario.json").write_text(json.dumps(host.scenario.values))

    def _saved_scenario(self, entry: state.HostState) -> Scenario:
        file = self.directory / entry.name / "scenario.json"
        values = json.loads(file.read_text()) if file.exists() else dict(scenario_files.DEFAULTS)
        return Scenario(entry.scenario, values)

    def _ensure_key(self) -> None:
        key = self.directory / "ssh" / "id_ed25519"
        if not key.exists():
            key.parent.mkdir(parents=True, exist_ok=True)
            key.parent.chmod(0o700)
            machine.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpufleet-twin", "-f", str(key)])

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
