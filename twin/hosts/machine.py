"""What this machine can do and what it is configured with: programs, privileges, apt sources, processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from .errors import TwinError, UnavailableError

# program -> Debian package that brings it
PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "dpkg-deb": "dpkg",
    "gpg": "gnupg",
}
MIRROR_VARIABLE = "GPUFLEET_DEBIAN_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def run(
    command: Sequence[str],
    *,
    input: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
) -> str:
    """Run a command and return its standard output; with `log`, write both streams there instead.

    Raises TwinError with the command and the last lines it printed when it fails.
    """
    full = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    if log is None:
        done = subprocess.run(command, input=input, env=full, cwd=cwd, capture_output=True, text=True)
        text = done.stdout + done.stderr
    else:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as handle:
            done = subprocess.run(
                command, input=input, env=full, cwd=cwd, stdout=handle, stderr=subprocess.STDOUT, text=True
            )
        text = log.read_text(errors="replace")
    if done.returncode != 0:
        tail = "\n".join(text.strip().splitlines()[-15:])
        raise TwinError(f"{' '.join(command)}: exit status {done.returncode}\n{tail}")
    return done.stdout or ""


def search_path() -> str:
    """Return PATH with the sbin folders, which a plain user's PATH may lack."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing_programs() -> dict[str, str]:
    """Return program -> package for each program of PROGRAMS that is not installed."""
    return {name: package for name, package in PROGRAMS.items() if shutil.which(name, path=search_path()) is None}


def ensure_programs() -> None:
    """Install missing programs through apt when root; otherwise raise UnavailableError that says what to install."""
    missing = missing_programs()
    if not missing:
        return
    packages = sorted(set(missing.values()))
    if os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        try:
            run(command, env={"DEBIAN_FRONTEND": "noninteractive"})
        except TwinError:
            run(["apt-get", "update"])
            run(command, env={"DEBIAN_FRONTEND": "noninteractive"})
        missing = missing_programs()
    if missing:
        raise UnavailableError(
            f"not found: {', '.join(sorted(missing))}; install the Debian packages {' '.join(packages)}"
        )


def check() -> None:
    """Raise UnavailableError with the precise reason when this machine cannot run host twins."""
    if os.geteuid() != 0:
        raise UnavailableError("host twins need root (overlay mounts, a bridge, systemd-nspawn); run as root")
    ensure_programs()
    if "\toverlay\n" not in Path("/proc/filesystems").read_text():
        raise UnavailableError("this kernel has no overlay file system (see /proc/filesystems)")


@dataclass(frozen=True)
class AptSource:
    """One Debian archive as this machine's apt knows it: base address and suite."""

    uri: str
    suite: str


def debian_sources(suite: str) -> list[AptSource]:
    """Return the archives for `suite`, its updates and its security suite, from this machine's own apt configuration.

    Another suite than this machine's own is looked for in the same archives. The environment variable
    GPUFLEET_DEBIAN_MIRROR replaces them. Raises UnavailableError when apt names none or the archive has no such suite.
    """
    override = os.environ.get(MIRROR_VARIABLE)
    if override:
        source = AptSource(override.rstrip("/"), suite)
        if why := _missing(source):
            raise UnavailableError(why)
        return [source]
    known = _known_sources()
    if found := of_suite(known, suite):
        return found
    like = alike(known, _own_suite(), suite)
    if not like:
        raise UnavailableError(
            f"apt on this machine has no source for Debian {suite}; set {MIRROR_VARIABLE} to the address of an archive"
        )
    if why := _missing(like[0]):
        raise UnavailableError(f"{why}; set {MIRROR_VARIABLE} to the address of an archive that has it")
    return [like[0], *(source for source in like[1:] if not _missing(source))]


def of_suite(known: Sequence[AptSource], suite: str) -> list[AptSource]:
    """Return the suite's archive, then its updates and its security suite; nothing without the first."""
    found = [source for source in known if source.suite in (suite, f"{suite}-updates", f"{suite}-security")]
    found.sort(key=lambda source: source.suite != suite)
    return found if found and found[0].suite == suite else []


def alike(known: Sequence[AptSource], own: str, suite: str) -> list[AptSource]:
    """Return where `suite` lies in archives that are laid out as they are for the machine's `own` suite."""
    return [AptSource(source.uri, suite + source.suite.removeprefix(own)) for source in of_suite(known, own)]


def _known_sources() -> list[AptSource]:
    listing = run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    )
    found: list[AptSource] = []
    for line in listing.splitlines():
        uri, _, rest = line.partition(" ")
        release, _, component = rest.partition(" ")
        source = AptSource(uri.rstrip("/"), release)
        if component == "main" and source not in found:
            found.append(source)
    return found


def _own_suite() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    return next((line.partition("=")[2].strip("\"'") for line in lines if line.startswith("VERSION_CODENAME=")), "")


def _missing(source: AptSource) -> str:
    """Return why an archive does not have a suite, "" when it does."""
    address = f"{source.uri}/dists/{source.suite}/Release"
    proxies = {name.removesuffix("_proxy"): value for name, value in proxy_environment().items()}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({**urllib.request.getproxies(), **proxies}))
    try:
        opener.open(urllib.request.Request(address, method="HEAD"), timeout=20).close()
    except (OSError, ValueError, HTTPException) as error:
        return f"{source.uri} has no Debian {source.suite}: {error}"
    return ""


def proxy_environment() -> dict[str, str]:
    """Return http_proxy and https_proxy as apt is configured, so that debootstrap takes the same way out."""
    found: dict[str, str] = {}
    for scheme in ("http", "https"):
        text = run(["apt-config", "shell", "value", f"Acquire::{scheme}::Proxy"])
        value = text.strip().partition("=")[2].strip("'\"")
        if value and value != "DIRECT":
            found[f"{scheme}_proxy"] = value
    return found


def start_time(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot, or None when it does not run (or is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_running(pid: int, started: int) -> bool:
    """Tell whether the process with this id is still the one that was recorded."""
    return start_time(pid) == started
