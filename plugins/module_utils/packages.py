"""Installed packages, holds, package sources and locks of a host. Reads only."""

from __future__ import annotations

import configparser
import fcntl
import fnmatch
import glob
import os
import re
import struct
from typing import Any, Callable, Iterable, Iterator

from .hardware import read_text

# name-epoch:version-release.architecture
LOCK = re.compile(r"([^#!\s].*?)-(\d+:\S+)$")
APT_MANAGER = "apt"
DNF_MANAGER = "dnf"


def named(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a name fits one of the shell patterns, as a function."""
    match = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or "(?!)").match
    return lambda name: match(name) is not None


def manager(which: Callable[[str], str | None]) -> str | None:
    """ "apt", "dnf" or None; `which(name)` answers with a path or None."""
    if which("apt-get"):
        return APT_MANAGER
    return DNF_MANAGER if which("dnf") else None


def dpkg_packages(status: str, interesting: Callable[[str], bool]) -> dict[str, Any]:
    """Installed packages from the text of dpkg's status file, those that are `interesting(name)`.

    Returns name -> {"version", "hold", "state"}; state is "installed" or the unfinished state that dpkg names. Packages
    whose configuration alone is left are not installed.
    """
    found = {}
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Version): (.*)$", stanza, re.M))
        name = fields.get("Package", "")
        want, _error, state = ([*fields.get("Status", "").split(), "", "", ""])[:3]
        if state in ("", "not-installed", "config-files") or not interesting(name):
            continue
        found[name] = {"version": fields.get("Version", ""), "hold": want == "hold", "state": state}
    return found


def dpkg_unfinished(status: str) -> list[str]:
    """Names of packages that an interrupted run left unpacked or half configured."""
    return re.findall(
        r"^Package: (\S+)\nStatus: \S+ \S+ (?:unpacked|half-configured|half-installed|triggers-pending)$", status, re.M
    )


def rpm_packages(listing: str, locks: str, interesting: Callable[[str], bool]) -> dict[str, Any]:
    """Installed packages that are `interesting(name)`, from `rpm -qa` with name, epoch, version-release between tabs.

    `locks` is the text of versionlock.list. `hold`: the installed version is locked; `lock`: some version is, which
    keeps every other one away.
    """
    locked: dict[str, set[str]] = {}
    for line in locks.splitlines():
        match = LOCK.match(line.strip())
        if match:
            locked.setdefault(match.group(1), set()).add(match.group(2))
    found = {}
    for line in listing.splitlines():
        name, _, rest = line.partition("\t")
        epoch, _, version = rest.partition("\t")
        if version and interesting(name):
            full = version if epoch in ("(none)", "0") else f"{epoch}:{version}"
            exact = full if ":" in full else f"0:{full}"
            held = any(fnmatch.fnmatchcase(exact, entry.rpartition(".")[0]) for entry in locked.get(name, ()))
            found[name] = {"version": full, "hold": held, "lock": name in locked, "state": "installed"}
    return found


def apt_sources(etc: str = "/etc/apt") -> list[dict[str, Any]]:
    """Every package source of apt: [{"file", "uri", "suite", "components", "signed_by", "enabled"}]."""
    sources: list[dict[str, Any]] = []
    for path in sorted([os.path.join(etc, "sources.list"), *glob.glob(os.path.join(etc, "sources.list.d", "*"))]):
        text = read_text(path, 1 << 20)
        if text is None:
            continue
        if path.endswith(".sources"):
            sources += _deb822(path, text)
        elif path.endswith(".list"):
            sources += _one_line(path, text)
    return sources


def _deb822(path: str, text: str) -> Iterator[dict[str, Any]]:
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line[:1] in " \t":
                fields[key] = "{} {}".format(fields.get(key, ""), line.strip())
            else:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        signed = fields.get("signed-by", "")
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield {
                    "file": path,
                    "uri": uri,
                    "suite": suite,
                    "components": fields.get("components", "").split(),
                    "signed_by": None if not signed or "BEGIN PGP" in signed else signed,
                    "enabled": fields.get("enabled", "yes").lower() not in ("no", "false"),
                }


def _one_line(path: str, text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*(.*)$", line.strip())
        if match:
            options = dict(o.split("=", 1) for o in (match.group(1) or "").split() if "=" in o)
            yield {
                "file": path,
                "uri": match.group(2),
                "suite": match.group(3),
                "components": match.group(4).partition("#")[0].split(),
                "signed_by": options.get("signed-by"),
                "enabled": True,
            }


def yum_sources(folder: str = "/etc/yum.repos.d") -> list[dict[str, Any]]:
    """Every repository of dnf: [{"file", "id", "uri", "enabled"}]; mirror lists count as addresses too."""
    sources = []
    for path in sorted(glob.glob(os.path.join(folder, "*.repo"))):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(path)
        except configparser.Error:
            continue
        for section in parser.sections():
            for key in ("baseurl", "mirrorlist", "metalink"):
                for uri in parser.get(section, key, fallback="").split():
                    enabled = parser.get(section, "enabled", fallback="1").strip() in ("1", "true", "yes")
                    sources.append({"file": path, "id": section, "uri": uri, "enabled": enabled})
    return sources


def lock_holder(path: str) -> int:
    """The process id that holds a POSIX lock on the file, 0 when it is free or does not exist."""
    try:
        with open(path, "rb") as handle:
            query = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack("hhqqi", fcntl.fcntl(handle, fcntl.F_GETLK, query))
    except OSError:
        return 0
    return answer[4] if answer[0] != fcntl.F_UNLCK else 0


def unattended_blacklist(folder: str = "/etc/apt/apt.conf.d") -> list[str]:
    """Patterns of Unattended-Upgrade::Package-Blacklist over all of apt's configuration."""
    patterns = []
    for path in sorted(glob.glob(os.path.join(folder, "*"))):
        text = re.sub(r"^\s*(?://|#).*$", "", read_text(path) or "", flags=re.M)
        for block in re.findall(r"Unattended-Upgrade::Package-Blacklist\s*\{([^}]*)\}", text):
            patterns += re.findall(r'"([^"]+)"', block)
    return patterns
