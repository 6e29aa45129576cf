"""dkms, update-initramfs, mokutil and dmesg, as far as driver packages and roles use them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from . import base, modules

KERNEL_MODULES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")
MOK_KEY = "var/lib/dkms/mok.pub"


# -- dkms --------------------------------------------------------------------------------------------------------------


def _dkms_tree() -> Path:
    return base.ROOT / "var/lib/dkms/nvidia"


def kernels_with_headers() -> list[str]:
    """Return the installed kernels whose headers are installed too: the ones that dkms can build for."""
    return sorted(folder.parent.name for folder in (base.ROOT / "lib/modules").glob("*/build") if folder.exists())


def signer() -> str:
    """Return the name of the key that dkms signs with, making the key on first use."""
    key = base.ROOT / MOK_KEY
    if not key.exists():
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_bytes(b"DKMS module signing key " + os.urandom(16).hex().encode())
        key.with_suffix(".key").write_text("private\n")
    return fingerprint(key)


def fingerprint(key: Path) -> str:
    """Return the SHA-1 of a key file, the way mokutil names keys."""
    return hashlib.sha1(key.read_bytes(), usedforsecurity=False).hexdigest()


def main_dkms(arguments: list[str]) -> int:
    """Behave like dkms add, build, install, remove, autoinstall and status for the module nvidia."""
    if not arguments or arguments[0] == "--version":
        print("dkms-3.0.10")
        return 0
    action, rest = arguments[0], arguments[1:]
    options: dict[str, str] = {}
    words = iter(rest)
    for word in words:
        if word in ("-m", "-v", "-k"):
            options[word] = next(words, "")
        elif re.fullmatch(r"[a-z-]+/[0-9.]+", word):
            options["-m"], options["-v"] = word.split("/")
        elif word in ("--all", "--force"):
            options[word] = "1"
    if action == "status":
        return _status()
    if action == "autoinstall":
        versions = [folder.name for folder in _dkms_tree().glob("*") if folder.name[0].isdigit()]
        return max([_install(version, options.get("-k", base.kernel())) for version in versions], default=0)
    version = options.get("-v", "")
    source = base.ROOT / f"usr/src/nvidia-{version}"
    if action == "add":
        if not source.is_dir():
            print(f"Error! DKMS tree of nvidia/{version} not found: {source}", file=sys.stderr)
            return 3
        (_dkms_tree() / version).mkdir(parents=True, exist_ok=True)
        return 0
    if action == "remove":
        return _remove(version)
    if action == "build":
        return _build(version, options.get("-k", base.kernel()))
    if action == "install":
        return _install(version, options.get("-k", base.kernel()))
    print(f"Error! Unknown action specified: {action}", file=sys.stderr)
    return 1


def _status() -> int:
    for folder in sorted(_dkms_tree().glob("*")) if _dkms_tree().exists() else []:
        built = sorted(entry for entry in folder.glob("*/built.json"))
        if not built:
            print(f"nvidia/{folder.name}: added")
        for entry in built:
            print(f"nvidia/{folder.name}, {entry.parent.name}, x86_64: {json.loads(entry.read_text())['state']}")
    return 0


def _build(version: str, kernel: str) -> int:
    if kernel not in kernels_with_headers():
        print(
            f"Error! Your kernel headers for kernel {kernel} cannot be found.\n"
            f"Please install the linux-headers-{kernel} package or use the --kernelsourcedir option to tell DKMS where "
            "it's located.",
            file=sys.stderr,
        )
        return 1
    if base.failure("dkms_build"):
        log = _dkms_tree() / version / "build/make.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{base.failure('dkms_build')}\n")
        print(
            f"Error! Bad return status for module build on kernel: {kernel} (x86_64)\n"
            f"Consult /var/lib/dkms/nvidia/{version}/build/make.log for more information.",
            file=sys.stderr,
        )
        return 10
    record = _dkms_tree() / version / kernel / "built.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"state": "built"}))
    return 0


def _install(version: str, kernel: str) -> int:
    record = _dkms_tree() / version / kernel / "built.json"
    if not record.exists():
        result = _build(version, kernel)
        if result:
            return result
    source = base.ROOT / f"usr/src/nvidia-{version}"
    flavour = "open" if (source / "kernel-open").exists() else "proprietary"
    facts = json.dumps({"version": version, "flavour": flavour, "signer": signer()})
    folder = base.ROOT / "lib/modules" / kernel / "updates/dkms"
    folder.mkdir(parents=True, exist_ok=True)
    for name in KERNEL_MODULES:
        (folder / f"{name}.ko").write_text(facts)
    record.write_text(json.dumps({"state": "installed"}))
    modules.write_dependencies(kernel)
    return 0


def _remove(version: str) -> int:
    for record in (_dkms_tree() / version).glob("*/built.json"):
        kernel = record.parent.name
        for name in KERNEL_MODULES:
            file = base.ROOT / "lib/modules" / kernel / "updates/dkms" / f"{name}.ko"
            if file.exists() and json.loads(file.read_text())["version"] == version:
                file.unlink()
        modules.write_dependencies(kernel)
    shutil.rmtree(_dkms_tree() / version, ignore_errors=True)
    return 0


# -- initramfs ---------------------------------------------------------------------------------------------------------


def image(kernel: str) -> Path:
    """Return the path of a kernel's initramfs."""
    return base.ROOT / f"boot/initrd.img-{kernel}"


def image_config(kernel: str) -> str:
    """Return the modprobe configuration inside a kernel's initramfs; a kernel without image has none."""
    file = image(kernel)
    return str(json.loads(file.read_text())["modprobe"]) if file.exists() else ""


def main_update_initramfs(arguments: list[str]) -> int:
    """Behave like update-initramfs -u, -c and -d, with -k VERSION or -k all: the image keeps today's modprobe.d."""
    chosen = ""
    words = iter(arguments)
    deleting = "-d" in arguments
    for word in words:
        if word == "-k":
            chosen = next(words, "")
        elif word.startswith("-k"):
            chosen = word[2:]
    installed = sorted(file.name.removeprefix("vmlinuz-") for file in (base.ROOT / "boot").glob("vmlinuz-*"))
    newest = installed[-1:]  # like the original: without -k only the newest kernel's image
    names = installed if chosen == "all" else [chosen] if chosen else newest
    for name in names:
        if deleting:
            image(name).unlink(missing_ok=True)
            continue
        print(f"update-initramfs: Generating /boot/initrd.img-{name}")
        text = "\n".join(file.read_text(errors="replace") for file in modules.config_files())
        image(name).write_text(json.dumps({"modprobe": text}))
    return 0


def main_lsinitramfs(arguments: list[str]) -> int:
    """List what an initramfs holds: its modprobe configuration, line by line, as one file."""
    names = [word for word in arguments if not word.startswith("-")]
    for name in names:
        file = base.ROOT / name.lstrip("/")
        if not file.exists():
            print(f"lsinitramfs: '{name}': no such file", file=sys.stderr)
            return 1
        print("etc/modprobe.d")
        settings = modules.config(json.loads(file.read_text())["modprobe"])
        for entry in settings["blacklist"]:
            print(f"etc/modprobe.d/blacklist:{entry}")
    return 0


# -- secure boot -------------------------------------------------------------------------------------------------------


def main_mokutil(arguments: list[str]) -> int:
    """Behave like mokutil --sb-state, --test-key, --import, --list-enrolled and --list-new."""
    boot: dict[str, Any] = base.scenario().get("secure_boot") or {}
    if not boot.get("uefi", True):
        print("EFI variables are not supported on this system", file=sys.stderr)
        return 1
    if "--sb-state" in arguments:
        print(f"SecureBoot {'enabled' if boot.get('enabled') else 'disabled'}")
        return 0
    mok = base.lasting_state()["mok"]
    if "--list-enrolled" in arguments or "--list-new" in arguments:
        for entry in mok["enrolled" if "--list-enrolled" in arguments else "pending"]:
            print(f"[key]\nSHA1 Fingerprint: {':'.join(re.findall('..', entry))}\n")
        return 0
    names = [word for word in arguments if not word.startswith("-")]
    if not names or not (base.ROOT / names[0].lstrip("/")).exists():
        print(f"Failed to get file status, {names[0] if names else ''}", file=sys.stderr)
        return 255
    mark = fingerprint(base.ROOT / names[0].lstrip("/"))
    if "--test-key" in arguments:
        if mark in mok["enrolled"]:
            print(f"{names[0]} is already enrolled")
            return 1
        pending = mark in mok["pending"]
        print(f"{names[0]} is already in the enrollment request" if pending else f"{names[0]} is not enrolled")
        return 1 if pending else 0
    if "--import" in arguments:
        with base.locked():
            state = base.lasting_state()
            if mark not in state["mok"]["pending"] + state["mok"]["enrolled"]:
                state["mok"]["pending"].append(mark)
            base.save_lasting_state(state)
        return 0
    print(f"mokutil: not simulated: {' '.join(arguments)}", file=sys.stderr)
    return 1
