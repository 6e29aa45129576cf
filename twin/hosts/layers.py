"""Read-only layers over a Debian root, in the cache: the GPU layer's tools and kernel, real containerd above."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import yaml

from . import machine, paths, repository, root
from .payloads import tool
from .runtimes import enable
from .scenarios import Scenario

GUEST = paths.PACKAGE / "guest"
# What a server has before the roles come: a kernel, its initramfs tools; a fresh Debian has no compiler and no headers.
INSTALLED = ("initramfs-tools", "linux-image-<kernel>")
# Programs whose answers are simulated, wherever the root has them.
REPLACED = ("modprobe", "rmmod", "lsmod", "modinfo", "depmod", "dmesg")
BOOT_UNIT = """[Unit]
Description=Simulated GPU hardware comes up
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 -S -E /twin/lib/guest boot

[Install]
WantedBy=sysinit.target
"""
LOCK_UNIT = """[Unit]
Description=Something holds the dpkg lock after boot
ConditionPathExists=/twin/apt-lock-seconds

[Service]
ExecStart=/usr/bin/python3 -S -E -c "import fcntl, pathlib, time; f = open('/var/lib/dpkg/lock-frontend', 'w'); \
fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(float(pathlib.Path('/twin/apt-lock-seconds').read_text()))"

[Install]
WantedBy=multi-user.target
"""
# containerd 2 as its release is installed by hand: below /usr/local, without a configuration file.
CONTAINERD2_UNIT = """[Unit]
Description=containerd container runtime
After=network.target twin-boot.service

[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process

[Install]
WantedBy=multi-user.target
"""
LSPCI = '#!/bin/sh\nexec /usr/bin/lspci.real -A linux-sysfs -O sysfs.path=/twin/sys/bus/pci "$@"\n'


def guest_hash() -> str:
    """Return a hash over the code that runs on the hosts."""
    digest = hashlib.sha256((BOOT_UNIT + LOCK_UNIT + LSPCI + repr((REPLACED, INSTALLED))).encode())
    for file in sorted(GUEST.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:10]


def lowers(scenario: Scenario, repo: repository.Repository, progress: bool = True) -> list[str]:
    """Return the lower trees of a scenario's host, top first. Builds what the cache lacks."""
    base = host_layer(repo, scenario.suite, progress)
    return [str(tree) for tree in runtime_layer(scenario.values["runtime"], base, scenario.suite, progress)]


def host_layer(repo: repository.Repository, suite: str, progress: bool = True) -> list[Path]:
    """Return the lower trees of a bare host, top first: GPU layer, Debian root. Builds what the cache lacks."""
    base = root.ensure_root(progress, suite)
    target = paths.roots_dir() / f"host-{root.version(base.name, guest_hash(), repository.version())}"
    root.ensure_tree(target, [base], lambda tree, log: _host(tree, repo, suite, log), progress)
    return [target, base]


def runtime_layer(runtime: str, lowers: list[Path], suite: str, progress: bool = True) -> list[Path]:
    """Return the lower trees with a real runtime's layer on top; stand-ins need none."""
    if runtime not in ("containerd", "containerd2"):
        return lowers
    target = paths.roots_dir() / f"{runtime}-{root.version(lowers[0].name, CONTAINERD2_UNIT)}"

    def fill(tree: Path, log: Path) -> None:
        if runtime == "containerd":
            root.install(tree, ("containerd", "runc"), log, suite)
            return
        root.install(tree, ("runc",), log, suite)
        program, _ = repository.real_program("containerd", progress)
        _write_program(tree / "usr/local/bin/containerd", program.read_bytes())
        unit = tree / "usr/local/lib/systemd/system/containerd.service"
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(CONTAINERD2_UNIT)
        enable(tree, unit.name, f"/{unit.relative_to(tree)}")

    root.ensure_tree(target, lowers, fill, progress)
    return [target, *lowers]


def _host(tree: Path, repo: repository.Repository, suite: str, log: Path) -> None:
    """Fill a tree with the tools of the GPU layer, its boot unit, the simulated kernel and the archive's key."""
    lib = tree / "twin/lib"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(GUEST, lib / "guest", ignore=ignore)
    shutil.copytree(Path(yaml.__file__).parent, lib / "yaml", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    machine.run(["chroot", str(tree), "python3", "-m", "compileall", "-q", "/twin/lib"], log=log)
    for name in REPLACED:
        for path in (tree / "usr/bin" / name, tree / "usr/sbin" / name):
            if path.is_symlink() or path.exists():
                path.unlink()
                _write_program(path, tool(name).content)
    for name, content in (("lspci", LSPCI.encode()), ("journalctl", tool("journalctl").content)):
        path = tree / "usr/bin" / name
        path.rename(path.with_name(f"{name}.real"))
        _write_program(path, content)
    units = tree / "etc/systemd/system"
    (units / "twin-boot.service").write_text(BOOT_UNIT)
    (units / "twin-apt-lock.service").write_text(LOCK_UNIT)
    wants = units / "sysinit.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "twin-boot.service").symlink_to("/etc/systemd/system/twin-boot.service")
    enable(tree, "twin-apt-lock.service", "/etc/systemd/system/twin-apt-lock.service")
    keyring = tree / "usr/share/keyrings/twin-archive-keyring.gpg"
    shutil.copyfile(repo.folder / "debian/archive-keyring.gpg", keyring)
    pool = repo.folder / "debian/pool" / suite / "main"
    names = [name.replace("<kernel>", repository.kernel_name()) for name in INSTALLED]
    debs = [next(iter(sorted(pool.glob(f"{name}_*.deb")))) for name in names]
    for deb in debs:
        shutil.copyfile(deb, tree / "tmp" / deb.name)
    machine.run(["chroot", str(tree), "dpkg", "-i", *(f"/tmp/{deb.name}" for deb in debs)], log=log)
    for deb in debs:
        (tree / "tmp" / deb.name).unlink()


def _write_program(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o755)
