"""The Debian root of a suite, and read-only layers above it; each is built once into the user's cache."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import machine, paths

SUITE = "bookworm"  # of hosts that ask for no other
# What a server has before anyone prepares it for GPUs; apt and python3-apt are what Ansible's apt module works with.
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "python3-apt", "iproute2", "kmod", "gnupg",
    "ca-certificates", "pciutils", "procps", "unattended-upgrades",
)  # fmt: skip
# Timers would take the dpkg lock at random moments; a scenario that wants a held lock asks for one.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "systemd-networkd-wait-online.service", "e2scrub_all.timer",
          "getty@tty1.service", "console-getty.service", "systemd-resolved.service")  # fmt: skip
RECIPE = 2  # raise it when the steps below change


def version(*parts: object) -> str:
    """Return a short hash that changes with the recipe."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:10]


def root_path(suite: str = SUITE) -> Path:
    """Return where the finished root lies, whether or not it exists."""
    return paths.roots_dir() / f"{suite}-{version(RECIPE, suite, PACKAGES, MASKED)}"


def ensure_root(progress: bool = True, suite: str = SUITE) -> Path:
    """Return the Debian root of a suite, building it with debootstrap when the cache lacks it.

    Raises UnavailableError when this machine cannot build it and TwinError when debootstrap fails.
    """
    target = root_path(suite)
    if target.is_dir():
        return paths.used(target)
    with paths.locked(paths.roots_dir() / ".lock"):
        if target.is_dir():
            return target
        began = time.monotonic()
        if progress:
            print(f"building the Debian root {target.name} (once per user, a few minutes)", flush=True)
        building = target.with_name(target.name + ".building")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        log = target.with_name(target.name + ".log")
        log.unlink(missing_ok=True)
        source = machine.debian_sources(suite)[0]
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
        if machine.KEYRING.exists():
            command.append(f"--keyring={machine.KEYRING}")
        machine.run([*command, suite, str(building), source.uri], env=machine.proxy_environment(), log=log)
        _finish_root(building)
        building.rename(target)
        if progress:
            print(f"Debian root ready after {time.monotonic() - began:.0f} s", flush=True)
    return target


def _finish_root(tree: Path) -> None:
    """Turn a fresh debootstrap tree into a neutral image: no archive, no identity, no random timers."""
    (tree / "etc/apt/sources.list").write_text("")
    shutil.rmtree(tree / "var/cache/apt/archives", ignore_errors=True)
    (tree / "var/cache/apt/archives/partial").mkdir(parents=True)
    for listing in (tree / "var/lib/apt/lists").glob("*_*"):
        listing.unlink()
    for key in (tree / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (tree / "etc/machine-id").write_text("")
    (tree / "var/lib/dbus/machine-id").unlink(missing_ok=True)  # else every host takes over this one
    (tree / "etc/hostname").unlink(missing_ok=True)
    (tree / "etc/resolv.conf").unlink(missing_ok=True)
    (tree / "etc/resolv.conf").write_text("")
    units = tree / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "systemd-networkd.service").unlink(missing_ok=True)
    (wants / "systemd-networkd.service").symlink_to("/lib/systemd/system/systemd-networkd.service")


def ensure_tree(
    target: Path, lowers: Sequence[Path], fill: Callable[[Path, Path], None], progress: bool = True
) -> None:
    """Build the layer `target` over `lowers` when the cache lacks it: `fill(tree, log)` changes the merged tree.

    Raises TwinError when filling fails; a half-made layer is never seen under the final name.
    """
    with paths.locked(target.with_name(target.name + ".lock")):
        if target.is_dir():
            paths.used(target)
            return
        if progress:
            print(f"building the layer {target.name}", flush=True)
        building, work, merged = (target.with_name(f"{target.name}.{word}") for word in ("building", "work", "merged"))
        for folder in (building, work, merged):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        log = target.with_name(target.name + ".log")
        log.unlink(missing_ok=True)
        with _mounted(lowers, building, work, merged):
            fill(merged, log)
        shutil.rmtree(work, ignore_errors=True)
        merged.rmdir()
        building.rename(target)


@contextmanager
def _mounted(lowers: Sequence[Path], upper: Path, work: Path, merged: Path) -> Iterator[None]:
    options = f"lowerdir={':'.join(str(lower) for lower in lowers)},upperdir={upper},workdir={work}"
    machine.run(["mount", "-t", "overlay", "overlay", "-o", options, str(merged)])
    try:
        yield
    finally:
        machine.run(["umount", str(merged)])


def download(names: list[str], folder: Path) -> None:
    """Fetch packages and what they need beyond the root into a folder, with this machine's own apt."""
    root = ensure_root()
    top = folder.with_name(folder.name + ".tree")
    shutil.rmtree(top, ignore_errors=True)
    upper, work, merged = top / "upper", top / "work", top / "merged"
    for made in (upper, work, merged):
        made.mkdir(parents=True)
    with _mounted([root], upper, work, merged), _sources(merged, SUITE) as (options, env):
        log = folder.with_name(folder.name + ".log")
        machine.run(["chroot", str(merged), "apt-get", *options, "update"], env=env, log=log)
        install = ["apt-get", "install", "-y", "--no-install-recommends", "--download-only", *options, *names]
        machine.run(["chroot", str(merged), *install], env=env, log=log)
        for archive in (merged / "var/cache/apt/archives").glob("*.deb"):
            shutil.copyfile(archive, folder / archive.name.replace("%3a", "_"))
    shutil.rmtree(top)


@contextmanager
def _sources(tree: Path, suite: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Lend a tree this machine's apt sources and resolver; yields apt-get options and environment."""
    sources = tree / "etc/apt/sources.list.d/build.list"
    lines = [f"deb {source.uri} {source.suite} main" for source in machine.debian_sources(suite)]
    sources.write_text("\n".join(lines) + "\n")
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    resolver, hosts = tree / "etc/resolv.conf", tree / "etc/hosts"
    resolver.write_text(Path("/etc/resolv.conf").read_text() if Path("/etc/resolv.conf").exists() else "")
    hosts.write_text(Path("/etc/hosts").read_text())
    # The machine's apt options that are not about sources: clocks of test machines may be off.
    options = [f"-oAcquire::{name}={value}" for name, value in _apt_options().items()]
    try:
        yield options, {"DEBIAN_FRONTEND": "noninteractive", **machine.proxy_environment()}
    finally:
        sources.unlink()
        policy.unlink()
        resolver.write_text("")
        hosts.unlink()
        for pattern in ("var/lib/apt/lists/*_*", "var/cache/apt/archives/*.deb", "var/cache/apt/*.bin"):
            for file in tree.glob(pattern):
                file.unlink()


def install(tree: Path, packages: Sequence[str], log: Path, suite: str) -> None:
    """Install real Debian packages in a tree of a suite, without starting anything. Raises TwinError."""
    with _sources(tree, suite) as (options, env):
        machine.run(["chroot", str(tree), "apt-get", *options, "update"], env=env, log=log)
        command = ["apt-get", "install", "-y", "--no-install-recommends", *options, *packages]
        machine.run(["chroot", str(tree), *command], env=env, log=log)


def _apt_options() -> dict[str, str]:
    found = {}
    for name in ("Check-Valid-Until", "Check-Date"):
        value = machine.run(["apt-config", "shell", "value", f"Acquire::{name}"]).strip().partition("=")[2].strip("'\"")
        if value:
            found[name] = value
    return found
