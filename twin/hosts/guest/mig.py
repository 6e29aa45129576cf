"""MIG mode and instances: what `nvidia-smi -mig`, `nvidia-smi mig` and nvidia-mig-parted share."""

from __future__ import annotations

import uuid
from typing import Any

from . import base, mig_layout, nvml, tree

Gpu = dict[str, Any]
def change(gpu: Gpu, kept: list[dict[str, Any]]) -> None:
    """Replace the instances of a GPU."""
    with base.locked():
        state = base.boot_state()
        state["gpus"].setdefault(str(gpu["index"]), {})["instances"] = kept
        base.save_boot_state(state)
        tree.render()


def create(gpu: Gpu, profiles: list[str], *, compute: bool) -> list[dict[str, Any]]:
    """Create instances. Raises Impossible when they do not fit beside those that exist."""
    present = mig_layout.instances(gpu)
    mig_layout.check_fit(gpu, [entry["profile"] for entry in present] + profiles)
    used = {entry["id"] for entry in present}
    made = []
    for profile in profiles:
        number = next(candidate for candidate in range(1, 64) if candidate not in used)
        used.add(number)
        name = f"{gpu['uuid']}/{number}/{profile}"
        made.append({"id": number, "profile": profile, "compute": compute,
                     "uuid": f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, name)}"})  # fmt: skip
    change(gpu, present + made)
    return made


def set_mode(gpus: list[Gpu], on: bool) -> None:
    """Behave like nvidia-smi -mig: at once where nothing holds the GPU, else pending. Raises Failed."""
    word = "Enabled" if on else "Disabled"
    for gpu in gpus:
        where = nvml.bus_id(gpu)
        if not gpu.get("mig"):
            raise nvml.Failed(
                f"Unable to {word.lower()[:-1]} MIG Mode for GPU {where}: Not Supported\nTreating as warning.", 3
            )
        kept = base.lasting_state()["gpus"].get(str(gpu["index"]), {})
        if kept.get("mig", False) == on and "mig_pending" not in kept:
            raise nvml.Failed(f"MIG Mode is already {word} for GPU {where}", 1)
        busy = bool(base.holders()) or "nvidia_drm" in base.boot_state()["modules"] or base.failure("mig_pending")
        if busy and gpu["architecture"] == "ampere":
            nvml.keep(gpu, mig_pending=on)
            word = "enable" if on else "disable"
            print(f"Warning: MIG mode is in pending {word} state for GPU {where}:In use by another client")
            continue
        nvml.keep(gpu, mig=on)
        _drop_pending(gpu)
        change(gpu, [])
        print(f"{word} MIG Mode for GPU {where}")
    print("All done.")


def _drop_pending(gpu: Gpu) -> None:
    with base.locked():
        lasting = base.lasting_state()
        lasting["gpus"].setdefault(str(gpu["index"]), {}).pop("mig_pending", None)
        base.save_lasting_state(lasting)


def command(gpus: list[Gpu], options: dict[str, str]) -> int:
    """Run `nvidia-smi mig` with -lgip, -lgi, -cgi [-C], -dgi, -dci."""
    capable = [gpu for gpu in gpus if gpu.get("mig") and mig_layout.enabled(gpu)]
    if not capable:
        raise nvml.Failed("No MIG-enabled devices found.", 6)
    if "-lgip" in options:
        for gpu in capable:
            for profile, most in gpu["mig"]["profiles"].items():
                number = mig_layout.profile_id(gpu, profile)
                print(f"|   {gpu['index']}  MIG {profile:<14} {number:>3}     {most}/{most} |")
        return 0
    if "-lgi" in options:
        entries = [(gpu, entry) for gpu in capable for entry in mig_layout.instances(gpu)]
        if not entries:
            raise nvml.Failed("No GPU instances found: Not Found", 6)
        for gpu, entry in entries:
            number = mig_layout.profile_id(gpu, entry["profile"])
            print(f"|   {gpu['index']}  MIG {entry['profile']:<14} {number:>3}     {entry['id']} |")
        return 0
    if "-cgi" in options:
        return _create(capable, options)
    if "-dci" in options or "-dgi" in options:
        for gpu in capable:
            if not mig_layout.instances(gpu):
                raise nvml.Failed("No GPU instances found: Not Found", 6)
            if "-dgi" in options:
                if any(entry["compute"] for entry in mig_layout.instances(gpu)):
                    raise nvml.Failed("Unable to destroy GPU instance: In use by another client", 19)
                change(gpu, [])
                print(f"Successfully destroyed GPU instances from GPU  {gpu['index']}")
            else:
                change(gpu, [{**entry, "compute": False} for entry in mig_layout.instances(gpu)])
                print(f"Successfully destroyed compute instances from GPU  {gpu['index']}")
        return 0
    raise nvml.Failed("Invalid combination of input arguments.", 2)


def _create(gpus: list[Gpu], options: dict[str, str]) -> int:
    for gpu in gpus:
        names = []
        for word in options["-cgi"].split(","):
            match = [name for name in gpu["mig"]["profiles"] if word in (name, str(mig_layout.profile_id(gpu, name)))]
            if not match:
                raise nvml.Failed(
                    f"Unable to create a GPU instance on GPU {gpu['index']} using profile {word}: Invalid Argument", 2
                )
            names.append(match[0])
        try:
            made = create(gpu, names, compute="-C" in options)
        except mig_layout.Impossible as reason:
            raise nvml.Failed(f"Unable to create a GPU instance on GPU {gpu['index']}: {reason}", 19) from None
        for entry in made:
            made_as = f"ID {entry['id']} on GPU {gpu['index']} using profile MIG {entry['profile']}"
            print(f"Successfully created GPU instance {made_as}")
    return 0
