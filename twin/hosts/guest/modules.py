"""Kernel modules: what is on disk, what is loaded, what refuses to load; modprobe, rmmod, lsmod, modinfo, depmod."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from . import base, nvml, tree

# module -> modules it needs
DEPENDS = {
    "nvidia_uvm": ["nvidia"],
    "nvidia_modeset": ["nvidia"],
    "nvidia_drm": ["nvidia_modeset"],
    "nvidia_peermem": ["nvidia", "ib_core"],
    "nova_drm": ["nova_core"],
    "ib_umad": ["ib_core"],
    "mlx5_ib": ["mlx5_core", "ib_core"],
    "ipmi_devintf": ["ipmi_msghandler"],
}
DRIVERS = ("nouveau", "nova_core", "nvidia")  # modules that bind the GPU itself
CONFIG_DIRS = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d")


class Refused(Exception):  # noqa: N818 - the kernel's answer, not a programming error
    """The kernel would not load or unload the module; the text is what the tool prints."""


def normal(name: str) -> str:
    """Return a module's name with underscores, as the kernel lists it."""
    return name.replace("-", "_")


def on_disk(name: str) -> dict[str, Any] | None:
    """Return a module's file contents (version, flavour, signer) for the running kernel, or None."""
    files = base.module_dir().rglob("*.ko")
    for file in sorted(files, key=lambda found: ("updates" not in found.parts, str(found))):  # depmod's own order
        if normal(file.stem) == normal(name):
            try:
                facts: dict[str, Any] = json.loads(file.read_text())
            except ValueError:
                facts = {}
            return {**facts, "filename": "/" + str(file.relative_to(base.ROOT))}
    return None


def builtin(name: str) -> bool:
    """Tell whether the running kernel has the module built in."""
    file = base.module_dir() / "modules.builtin"
    names = [Path(line).stem for line in file.read_text().split()] if file.exists() else []
    return normal(name) in (normal(entry) for entry in names)


def config_files() -> list[Path]:
    """Return modprobe's configuration files; a name in an earlier folder hides the same name in a later one."""
    chosen: dict[str, Path] = {}
    for folder in CONFIG_DIRS:
        for file in sorted((base.ROOT / folder).glob("*.conf")):
            chosen.setdefault(file.name, file)
    return [chosen[name] for name in sorted(chosen)]


def config(text: str | None = None) -> dict[str, dict[str, str]]:
    """Parse modprobe configuration (default: the host's) into blacklist, install, options and alias by module."""
    if text is None:
        text = "\n".join(file.read_text(errors="replace") for file in config_files())
    found: dict[str, dict[str, str]] = {"blacklist": {}, "install": {}, "options": {}, "alias": {}}
    for line in text.splitlines():
        words = line.split("#")[0].split(None, 2)
        if len(words) >= 2 and words[0] in found:
            found[words[0]][normal(words[1])] = words[2].strip() if len(words) > 2 else ""
    return found


def bound_driver(loaded: dict[str, Any]) -> str | None:
    """Return which loaded module drives the GPUs: the first that came, for it keeps them."""
    for name in loaded:
        if name in DRIVERS:
            return name
    return None


def key_refused(facts: dict[str, Any]) -> bool:
    """Tell whether secure boot rejects the module's signature."""
    boot = base.scenario().get("secure_boot") or {}
    if not boot.get("enabled") or facts.get("signer") == "distribution":
        return False
    return facts.get("signer") not in base.lasting_state()["mok"]["enrolled"]


def check_nvidia(facts: dict[str, Any], loaded: dict[str, Any]) -> None:
    """Raise Refused, with the kernel's reasons in the log, when nvidia.ko would not come up on this host."""
    gpus = base.gpus()
    if base.failure("module_load"):
        base.kernel_log(f"NVRM: {base.failure('module_load')}")
        raise Refused("could not insert 'nvidia': Input/output error")
    if not gpus:
        base.kernel_log("NVRM: No NVIDIA GPU found.")
        raise Refused("could not insert 'nvidia': No such device")
    owner = bound_driver(loaded)
    if owner:
        for gpu in gpus:
            base.kernel_log(f"NVRM: GPU {gpu['pci']} is already bound to {owner}.")
        base.kernel_log("NVRM: No NVIDIA devices probed.")
        raise Refused("could not insert 'nvidia': No such device")
    reasons = [nvml.refuse_gpu(gpu, facts["version"], facts["flavour"]) for gpu in gpus]
    for reason in filter(None, reasons):
        base.kernel_log(reason)
    if all(reasons):
        base.kernel_log("NVRM: None of the NVIDIA devices were initialized.")
        raise Refused("could not insert 'nvidia': No such device")
    base.kernel_log(
        f"NVRM: loading NVIDIA UNIX {'Open Kernel Module for x86_64' if facts['flavour'] == 'open' else 'x86_64'}"
        f"{' Kernel Module' if facts['flavour'] != 'open' else ''}  {facts['version']}",
        5,
    )


def load(name: str, *, by_alias: bool = False) -> bool:
    """Load a module with what it needs; True when something changed. Raises Refused with modprobe's text.

    `by_alias` is the kernel's own request for a device: blacklists count then, and only then.
    """
    name = normal(name)
    settings = config()
    if builtin(name):
        return False
    if by_alias and name in settings["blacklist"]:
        return False
    if settings["alias"].get(name) == "off":
        raise Refused(f"FATAL: Module {name} not found in directory {_shown_dir()}")
    install = settings["install"].get(name)
    if install:
        if "false" in install:
            raise Refused(f"ERROR: Error running install command '{install}' for module {name}: retcode 1")
        return False
    state = base.boot_state()
    if name in state["modules"]:
        return False
    facts = on_disk(name)
    if facts is None:
        raise Refused(f"FATAL: Module {name} not found in directory {_shown_dir()}")
    for needed in DEPENDS.get(name, []):
        load(needed)
    if key_refused(facts):
        base.kernel_log("Loading of module with unavailable key is rejected", 4)
        raise Refused(f"ERROR: could not insert '{name}': Key was rejected by service")
    state = base.boot_state()
    if name == "nvidia":
        try:
            check_nvidia(facts, state["modules"])
        except Refused as refusal:
            raise Refused(f"ERROR: {refusal}") from None
    nvidia = state["modules"].get("nvidia")
    if name.startswith("nvidia_") and nvidia and facts.get("version") != nvidia["version"]:
        base.kernel_log(f"{name}: disagrees about version of symbol nvidia_get_rm_ops", 4)
        raise Refused(f"ERROR: could not insert '{name}': Invalid argument")
    entry = {"version": facts.get("version", ""), "flavour": facts.get("flavour", "")}
    entry["options"] = settings["options"].get(name, "")
    state["modules"][name] = entry
    base.save_boot_state(state)
    tree.render()
    return True


def _shown_dir() -> str:
    return f"/lib/modules/{base.kernel()}"


def users(name: str, loaded: dict[str, Any]) -> list[str]:
    """Return the loaded modules that need this one."""
    return [other for other in loaded if name in DEPENDS.get(other, [])]


def use_count(name: str, loaded: dict[str, Any]) -> int:
    """Return how often a module is in use: modules above it and processes that hold the GPUs."""
    count = len(users(name, loaded))
    if name in ("nvidia", "nvidia_uvm"):
        count += sum(1 for holder in base.holders() if name == "nvidia" or holder["kind"] == "cuda")
    return count


def unload(name: str) -> None:
    """Unload one module. Raises Refused with rmmod's text."""
    name = normal(name)
    state = base.boot_state()
    loaded = state["modules"]
    if name not in loaded:
        raise Refused(f"ERROR: Module {name} is not currently loaded")
    above = users(name, loaded)
    if above:
        raise Refused(f"ERROR: Module {name} is in use by: {' '.join(above)}")
    if use_count(name, loaded):
        raise Refused(f"ERROR: Module {name} is in use")
    del loaded[name]
    if name == "nvidia":  # settings live in the driver, and die with it
        state["gpus"], state["fabric"] = {}, {}
    base.save_boot_state(state)
    tree.render()


def main_modprobe(arguments: list[str]) -> int:
    """Behave like modprobe for the options that roles and units use."""
    flags = [word for word in arguments if word.startswith("-")]
    words = [word for word in arguments if not word.startswith("-") and "=" not in word]
    quiet = any(flag in ("-q", "--quiet") or re.fullmatch(r"-[a-z]*q[a-z]*", flag) for flag in flags)
    dry = any(flag in ("-n", "--dry-run", "--show", "-D", "--show-depends") for flag in flags)
    by_alias = any(flag in ("-b", "--use-blacklist") for flag in flags)
    removing = any(flag in ("-r", "--remove") for flag in flags)
    many = any(flag in ("-a", "--all", "-ab") for flag in flags) or removing
    result = 0
    for name in words if many else words[:1]:
        try:
            with base.locked():
                if dry:
                    if not builtin(name) and on_disk(name) is None:
                        raise Refused(f"FATAL: Module {name} not found in directory {_shown_dir()}")
                elif removing:
                    _remove(normal(name))
                else:
                    load(name, by_alias=by_alias)
        except Refused as refusal:
            if not quiet:
                print(f"modprobe: {refusal}", file=sys.stderr)
            result = 1
    return result


def _remove(name: str) -> None:
    if name not in base.boot_state()["modules"]:
        if on_disk(name) is None:
            raise Refused(f"FATAL: Module {name} not found.")
        return
    unload(name)
    for needed in DEPENDS.get(name, []):  # modprobe -r also drops what nobody needs any more
        loaded = base.boot_state()["modules"]
        if needed in loaded and not use_count(needed, loaded):
            _remove(needed)


def main_rmmod(arguments: list[str]) -> int:
    """Behave like rmmod."""
    result = 0
    for name in [word for word in arguments if not word.startswith("-")]:
        try:
            with base.locked():
                unload(name)
        except Refused as refusal:
            print(f"rmmod: {refusal}", file=sys.stderr)
            result = 1
    return result


def main_lsmod(arguments: list[str]) -> int:
    """Behave like lsmod."""
    print(f"{'Module':<24}{'Size':>8}  Used by")
    loaded = base.boot_state()["modules"]
    for name in reversed(list(loaded)):
        print(f"{name:<24}{16384:>8}  {use_count(name, loaded)} {','.join(users(name, loaded))}".rstrip())
    return 0


def main_modinfo(arguments: list[str]) -> int:
    """Behave like modinfo, with -F and -k."""
    field = None
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-F", "--field"):
            field = rest.pop(0)
        elif word in ("-k", "--set-version"):
            rest.pop(0)
        elif word.startswith("-F"):
            field = word[2:]
        else:
            words.append(word)
    result = 0
    for name in words:
        facts = on_disk(name)
        if facts is None:
            print(f"modinfo: ERROR: Module {name} not found.", file=sys.stderr)
            result = 1
            continue
        license_ = "Dual MIT/GPL" if facts.get("flavour") == "open" else "NVIDIA"
        shown = {"filename": facts["filename"], "version": facts.get("version", ""), "license": license_,
                 "signer": facts.get("signer", ""), "vermagic": f"{base.kernel()} SMP mod_unload"}  # fmt: skip
        if field:
            print(shown.get(field, ""))
        else:
            for key, value in shown.items():
                print(f"{key + ':':<16}{value}")
    return result


def main_depmod(arguments: list[str]) -> int:
    """Write modules.dep for the running kernel, or for the one named."""
    names = [word for word in arguments if not word.startswith("-")]
    write_dependencies(names[0] if names else base.kernel())
    return 0


def write_dependencies(kernel: str) -> None:
    """List a kernel's modules in modules.dep, which units of the container toolkit read and watch."""
    folder = base.ROOT / "lib/modules" / kernel
    if folder.is_dir():
        files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.ko"))
        (folder / "modules.dep").write_text("".join(f"{file}:\n" for file in files))
        (folder / "modules.dep.bin").write_text("")
