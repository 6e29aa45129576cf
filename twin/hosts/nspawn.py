"""One host as an nspawn machine: overlay mount, identity, start, stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import cgroup, machine
from .errors import TwinError, UnavailableError


@dataclass
class Machine:
    """Where a host's tree lies and which process runs it."""

    name: str
    directory: Path
    pid: int = 0
    started: int = 0
    lowers: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def tree(self) -> Path:
        """The mounted root file system."""
        return self.directory / "root"

    @property
    def console(self) -> Path:
        """What the host printed on its console."""
        return self.directory / "console.log"

    @property
    def alive(self) -> bool:
        """Tell whether the recorded process still runs."""
        if self.process is not None:
            self.process.poll()  # collect it when it is our child, so that no zombie stays
        return self.pid > 0 and machine.is_running(self.pid, self.started)


def mount(host: Machine) -> None:
    """Mount the host's overlay: its own upper folder over the given lower trees (first wins).

    Raises UnavailableError where the folder's file system cannot hold the upper layer (another overlay, for one).
    """
    upper, work = host.directory / "upper", host.directory / "work"
    for folder in (upper, work, host.tree):
        folder.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={':'.join(host.lowers)},upperdir={upper},workdir={work}"
    try:
        machine.run(["mount", "-t", "overlay", f"gpufleet-{host.name}", "-o", options, str(host.tree)])
    except TwinError as error:
        raise UnavailableError(f"cannot mount an overlay with its upper layer in {upper}: {error}") from None


def write_identity(
    host: Machine, address: str, prefix: int, authorized_key: str, neighbours: Mapping[str, str]
) -> None:
    """Give the mounted tree its name, address, SSH host key and the key that may log in."""
    tree = host.tree
    (tree / "etc/hostname").write_text(host.name + "\n")
    lines = ["127.0.0.1 localhost", *(f"{value} {name}" for name, value in neighbours.items())]
    (tree / "etc/hosts").write_text("\n".join(lines) + "\n")
    (tree / "etc/systemd/network/10-host0.network").write_text(
        f"[Match]\nName=host0\n\n[Network]\nAddress={address}/{prefix}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
    )
    ssh = tree / "root/.ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    (ssh / "authorized_keys").write_text(authorized_key)
    (ssh / "authorized_keys").chmod(0o600)
    key = tree / "etc/ssh/ssh_host_ed25519_key"
    if not key.exists():
        machine.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host.name, "-f", str(key)])
    (tree / "etc/ssh/sshd_config.d/10-twin.conf").write_text(
        "UseDNS no\nHostKey /etc/ssh/ssh_host_ed25519_key\nMaxStartups 100\nMaxSessions 100\n"
    )


PROPAGATE = Path("/run/systemd/nspawn/propagate")
# Enters control groups, then becomes the command, so that the recorded process id is the command's own.
_ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'
# nspawn ends with 133 when the host reboots, for a service manager to start it again; this is that manager.
_KEEP = """trap 'ending=1; kill -TERM $child' TERM
status=133
while [ $status = 133 ] && [ -z "$ending" ]; do
  "$@" &
  child=$!
  wait $child; status=$?
  while kill -0 $child 2>/dev/null; do wait $child; status=$?; done
done
exit $status"""


def machine_name(bridge: str, host: Machine) -> str:
    """Return the name that nspawn knows a host by: unique on this machine, as several checkouts may run."""
    return f"{bridge}-{host.name}"


def entering(groups: Sequence[Path], command: Sequence[str]) -> list[str]:
    """Return a command that enters control groups first; its process id is the command's own."""
    return ["sh", "-c", _ENTER, "enter", *(str(group) for group in groups), "--", *command]


def start(host: Machine, bridge: str, extra: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
    """Start the host with systemd as process 1. Returns at once; sshd answers a few seconds later."""
    groups = cgroup.create(bridge, host.name)
    unique = machine_name(bridge, host)  # nspawn keeps files and names devices by it, for the whole machine
    # nspawn wants this folder of a running systemd; the machine itself may have none.
    PROPAGATE.mkdir(parents=True, exist_ok=True)
    options = {
        "directory": host.tree, "machine": unique, "hostname": host.name, "network-bridge": bridge, "register": "no",
        "console": "pipe", "link-journal": "no", "resolv-conf": "off", "timezone": "off",
    }  # fmt: skip
    nspawn = ["systemd-nspawn", "--quiet", "--boot", "--keep-unit", *(f"--{k}={v}" for k, v in options.items()), *extra]
    command = ["sh", "-c", _KEEP, "keep", *nspawn]
    environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "PATH": machine.search_path(), **(env or {})}
    with host.console.open("ab") as console:
        process = subprocess.Popen(
            entering(groups, command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
        )
    host.process, host.pid = process, process.pid
    started = machine.start_time(process.pid)
    if started is None:
        raise TwinError(f"{host.name}: systemd-nspawn ended at once\n{console_tail(host)}")
    host.started = started


def console_tail(host: Machine, lines: int = 15) -> str:
    """Return the last lines of the host's console."""
    if not host.console.exists():
        return ""
    return "\n".join(host.console.read_text(errors="replace").splitlines()[-lines:])


def stop(hosts: Sequence[Machine], bridge: str, grace: float = 8.0) -> None:
    """Shut the hosts down together: asked first, killed after `grace` seconds.

    Only recorded processes and those in the hosts' own control groups are touched.
    """
    for host in hosts:
        if host.alive:
            os.kill(host.pid, signal.SIGTERM)
    _wait_gone(hosts, grace)
    for host in hosts:
        if host.alive:
            os.kill(host.pid, signal.SIGKILL)
        for pid in cgroup.processes(bridge, host.name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    _wait_gone(hosts, 5.0)
    left = [host.name for host in hosts if host.alive]
    if left:
        raise TwinError(f"still running after SIGKILL: {', '.join(left)}")
    for host in hosts:
        shutil.rmtree(PROPAGATE / machine_name(bridge, host), ignore_errors=True)


def _wait_gone(hosts: Sequence[Machine], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(host.alive for host in hosts) and time.monotonic() < deadline:
        time.sleep(0.05)


def unmount(host: Machine) -> None:
    """Unmount the overlay and delete the host's folder."""
    mounted = {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()}
    # Deepest first: something may be mounted inside the tree.
    inside = [point for point in mounted if point == str(host.tree) or point.startswith(f"{host.tree}/")]
    for point in sorted(inside, key=len, reverse=True):
        machine.run(["umount", point])
    shutil.rmtree(host.directory, ignore_errors=True)
