"""Turns a mounted tree into the host that a scenario describes, before it boots."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import machine, repository, runtimes, scenarios
from .scenarios import Scenario

ARCHIVE_KEYRING = "/usr/share/keyrings/twin-archive-keyring.gpg"


def apply(tree: Path, scenario: Scenario, host: str, url: str, repo: Path, log: Path) -> None:
    """Write the scenario and install what it says is already there. Raises TwinError when an installation fails.

    `url` is the address of the package server, reachable from here as from the host; it serves the folder `repo`.
    """
    values = scenario.values
    (tree / "twin/scenario.json").write_text(scenarios.dump(scenario, host))
    (tree / "etc/apt/sources.list").write_text(
        f"deb [signed-by={ARCHIVE_KEYRING}] {url}/debian {scenario.suite} main non-free\n"
    )
    if values["apt_lock_seconds"]:
        (tree / "twin/apt-lock-seconds").write_text(str(values["apt_lock_seconds"]))
    runtimes.install(tree, values["runtime"])
    wanted = list(values["packages"])
    if values["kernel"]["headers"] != "none":
        newer = values["kernel"]["headers"] == "newer"
        kernel = repository.table()["newer_kernel"] if newer else repository.kernel_name()
        wanted = [*([f"linux-image-{kernel}"] if newer else []), f"linux-headers-{kernel}", *wanted]
    if wanted:
        _install(tree, wanted, vendor_sources(url, scenario.suite), log, keep=values["keep_sources"])
    if values["runfile"]:
        _run_installer(tree, values["runfile"], repo, log)
    retired = (repo / "compute/cuda/repos/debian12/x86_64/7fa2af80.pub").read_text()
    for path, content in values["files"].items():
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content.replace("@PACKAGE_SERVER@", url).replace("@RETIRED_KEY@", retired))
        if path in values["modes"]:
            target.chmod(int(str(values["modes"][path]), 8))
    for unit in values["masked_units"]:
        mask = tree / "etc/systemd/system" / unit
        mask.unlink(missing_ok=True)
        mask.symlink_to("/dev/null")
    release = scenarios.OS_RELEASE[values["os"]]
    if release is not None:  # last: nothing above should believe it
        (tree / "etc/os-release").unlink(missing_ok=True)
        (tree / "etc/os-release").write_text(release)


def vendor_sources(url: str, suite: str) -> str:
    """Return apt source lines for the CUDA and the toolkit repository; unverified, for this is not what is tested."""
    directory = repository.table()["distribution"][suite]["cuda_directory"]
    return (
        f"deb [trusted=yes] {url}/compute/cuda/repos/{directory}/x86_64/ /\n"
        f"deb [trusted=yes] {url}/libnvidia-container/stable/deb/amd64/ /\n"
    )


def _install(tree: Path, packages: list[str], sources: str, log: Path, *, keep: bool) -> None:
    """Install packages in the tree from the local repositories, with nothing started."""
    source = tree / "etc/apt/sources.list.d/earlier.list"
    source.write_text(sources)
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        machine.run(["chroot", str(tree), "apt-get", "-q", "update"], env=env, log=log)
        command = ["apt-get", "-q", "-y", "--allow-downgrades", "install", *packages]
        machine.run(["chroot", str(tree), *command], env=env, log=log)
    finally:
        policy.unlink()
        if not keep:
            source.unlink()
            shutil.rmtree(tree / "var/lib/apt/lists", ignore_errors=True)
            (tree / "var/lib/apt/lists/partial").mkdir(parents=True)


def _run_installer(tree: Path, version: str, repo: Path, log: Path) -> None:
    """Run the vendor's installer in the tree. The driver stays on disk; what it loaded is gone at boot."""
    name = f"NVIDIA-Linux-x86_64-{version}.run"
    target = tree / "root" / name
    shutil.copyfile(repo / "tesla" / version / name, target)
    machine.run(["chroot", str(tree), "/usr/bin/python3", "-S", "-E", "/twin/lib/guest", "render"], log=log)
    try:
        machine.run(["chroot", str(tree), "sh", f"/root/{name}", "--silent", "--dkms"], log=log)
    finally:
        target.unlink()
