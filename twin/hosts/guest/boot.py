"""What happens at boot, before any service starts: keys, modules from the initramfs and the root, kernel log."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

from . import base, kernel_tools, modules, tree


def main_boot(arguments: list[str]) -> int:
    """Bring the simulated hardware up from scratch, as a power cycle would."""
    for name in ("boot.json", "kmsg"):
        (base.TWIN / name).unlink(missing_ok=True)
    shutil.rmtree(base.TWIN / "holders", ignore_errors=True)
    with base.locked():
        scenario = base.scenario()
        _settle(scenario)
        tree.render()
        _shadow_proc()
        base.kernel_log(f"Linux version {base.kernel()}", 5)
        for line in scenario.get("kernel_log", []):
            base.kernel_log(line)
        _load_modules(scenario)
        tree.render()
    return 0


def _shadow_proc() -> None:
    """Lay the simulated /proc/driver over the kernel's, for programs that know no other place (nvidia-ctk)."""
    if str(base.ROOT) == "/" and Path("/proc/driver").is_dir():
        subprocess.run(["mount", "--bind", "/twin/proc/driver", "/proc/driver"], check=False)


def _settle(scenario: dict[str, Any]) -> None:
    """Apply what waits for a boot: keys that the console operator confirms, MIG and ECC modes."""
    lasting = base.lasting_state()
    mok = lasting["mok"]
    boot = scenario.get("secure_boot") or {}
    for key in boot.get("enrolled", []):
        if key not in mok["enrolled"]:
            mok["enrolled"].append(key)
    if boot.get("confirm_enrollment"):
        mok["enrolled"] += [key for key in mok["pending"] if key not in mok["enrolled"]]
        mok["pending"] = []
    for gpu in scenario["gpus"]:
        kept = lasting["gpus"].setdefault(str(gpu["index"]), {})
        kept["ecc"] = kept.get("ecc_pending", kept.get("ecc", True))
        # The MIG bit lies in the InfoROM on Ampere; on later generations it is treated as lost.
        kept["mig"] = kept.get("mig_pending", kept.get("mig", False)) if gpu["architecture"] == "ampere" else False
        kept.pop("ecc_pending", None)
        kept.pop("mig_pending", None)
    base.save_lasting_state(lasting)


def _load_modules(scenario: dict[str, Any]) -> None:
    """Load what the kernel asks for itself: first from the initramfs, then from the root, then by configuration."""
    image = modules.config(kernel_tools.image_config(base.kernel()))
    in_tree = scenario.get("in_tree_drivers", [])
    for name in in_tree:
        blocked = name in image["blacklist"] or name in image["install"] or image["alias"].get(name) == "off"
        if base.gpus() and not blocked:
            with contextlib.suppress(modules.Refused):
                modules.load(name)  # the image's own configuration decided already
            break
    if scenario.get("infiniband"):
        _quietly("mlx5_core")
    if base.gpus():
        for name in ("nvidia", "nvidia_modeset", "nvidia_drm"):
            if modules.on_disk(name):
                _quietly(name)
    folders = ("etc/modules-load.d", "usr/lib/modules-load.d", "usr/local/lib/modules-load.d", "lib/modules-load.d")
    files = [file for folder in folders for file in sorted((base.ROOT / folder).glob("*.conf"))]
    seen: set[str] = set()
    for file in [*files, base.ROOT / "etc/modules"]:
        if not file.exists() or file.name in seen:
            continue
        seen.add(file.name)
        for line in file.read_text().splitlines():
            name = line.split("#")[0].split(";")[0].strip()
            if name:
                _quietly(name.split()[0])


def _quietly(name: str) -> None:
    with contextlib.suppress(modules.Refused):
        modules.load(name, by_alias=True)
