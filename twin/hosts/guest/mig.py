"""MIG mode and instances: what `nvidia-smi -mig`, `nvidia-smi mig` and nvidia-mig-parted share."""

from __future__ import annotations

import re
import uuid
from typing import Any

from . import base, tree

Gpu = dict[str, Any]
# compute slices of the profile, memory slices -> profile id that -lgip shows; by slices of the whole GPU
PROFILE_IDS = {7: {(1, 1): 19, (1, 2): 15, (2, 2): 14, (3, 4): 9, (4, 4): 5, (7, 8): 0},
               4: {(1, 1): 14, (2, 2): 5, (4, 4): 0}}  # fmt: skip


class Impossible(Exception):  # noqa: N818 - the driver's answer
    """The instances do not fit on the GPU."""


def compute_slices(profile: str) -> int:
    """Return the compute slices of a profile name."""
    return int(profile.split("g.", maxsplit=1)[0])


def _gib(profile: str) -> int:
    found = re.search(r"g\.(\d+)gb", profile)
    return int(found.group(1)) if found else 0


def memory_slices(gpu: Gpu, profile: str) -> int:
    """Return the memory slices of a profile: its memory in units of the smallest profile's."""
    unit = min(_gib(name) for name in gpu["mig"]["profiles"])
    return round(_gib(profile) / unit)


def profile_id(gpu: Gpu, profile: str) -> int:
    """Return the number of a profile, as -lgip shows it."""
    names = list(gpu["mig"]["profiles"])
    if "+" in profile or "-" in profile:
        return 20 + names.index(profile)
    ids = PROFILE_IDS.get(gpu["mig"]["slices"], {})
    return ids.get((compute_slices(profile), memory_slices(gpu, profile)), 40 + names.index(profile))


def nvml_facts(gpu: Gpu, profile: str) -> str:
    """Return what NVML says of a profile: compute slices, memory in MiB, index of the profile in the interface."""
    slices, memory = compute_slices(profile), memory_slices(gpu, profile)
    full = memory_slices(gpu, max(gpu["mig"]["profiles"], key=_gib))
    index = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}.get(slices, 0)
    if slices == 1 and "+me" in profile:
        index = 7
    elif slices == 1 and memory == 2:
        index = 9
    return f"{slices} {gpu['memory_mib'] * memory // full} {index}"


def instances(gpu: Gpu) -> list[dict[str, Any]]:
    """Return the GPU instances that exist now."""
    found: list[dict[str, Any]] = base.boot_state()["gpus"].get(str(gpu["index"]), {}).get("instances", [])
    return found


def devices(gpu: Gpu) -> list[dict[str, Any]]:
    """Return the MIG devices: instances that have a compute instance."""
    return [entry for entry in instances(gpu) if entry["compute"]]


def enabled(gpu: Gpu) -> bool:
    """Tell whether MIG mode is on now."""
    return bool(base.lasting_state()["gpus"].get(str(gpu["index"]), {}).get("mig"))


def check_fit(gpu: Gpu, profiles: list[str]) -> None:
    """Raise Impossible when these profiles together do not fit on one GPU."""
    known = gpu["mig"]["profiles"]
    for profile in profiles:
        if profile not in known:
            raise Impossible(f"profile {profile} does not exist on {gpu['name']}")
    if sum(compute_slices(name) for name in profiles) > gpu["mig"]["slices"]:
        raise Impossible("Insufficient Resources")
    total = memory_slices(gpu, max(known, key=_gib))
    if sum(memory_slices(gpu, name) for name in profiles) > total:
        raise Impossible("Insufficient Resources")
    for name in set(profiles):
        if profiles.count(name) > known[name]:
            raise Impossible("Insufficient Resources")


def change(gpu: Gpu, kept: list[dict[str, Any]]) -> None:
    """Replace the instances of a GPU."""
    with base.locked():
        state = base.boot_state()
        state["gpus"].setdefault(str(gpu["index"]), {})["instances"] = kept
        base.save_boot_state(state)
        tree.render()


def create(gpu: Gpu, profiles: list[str], *, compute: bool) -> list[dict[str, Any]]:
    """Create instances. Raises Impossible when they do not fit beside those that exist."""
    present = instances(gpu)
    check_fit(gpu, [entry["profile"] for entry in present] + profiles)
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
    """Behave like nvidia-smi -mig: at once where nothing holds the GPU, else pending. Raises smi.Failed."""
    from . import smi, smi_report

    word = "Enabled" if on else "Disabled"
    for gpu in gpus:
        where = smi_report.bus_id(gpu)
        if not gpu.get("mig"):
            raise smi.Failed(
                f"Unable to {word.lower()[:-1]} MIG Mode for GPU {where}: Not Supported\nTreating as warning.", 3
            )
        kept = base.lasting_state()["gpus"].get(str(gpu["index"]), {})
        if kept.get("mig", False) == on and "mig_pending" not in kept:
            raise smi.Failed(f"MIG Mode is already {word} for GPU {where}", 1)
        busy = bool(base.holders()) or "nvidia_drm" in base.boot_state()["modules"] or base.failure("mig_pending")
        if busy and gpu["architecture"] == "ampere":
            smi.keep(gpu, mig_pending=on)
            word = "enable" if on else "disable"
            print(f"Warning: MIG mode is in pending {word} state for GPU {where}:In use by another client")
            continue
        smi.keep(gpu, mig=on)
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
    from . import smi

    capable = [gpu for gpu in gpus if gpu.get("mig") and enabled(gpu)]
    if not capable:
        raise smi.Failed("No MIG-enabled devices found.", 6)
    if "-lgip" in options:
        for gpu in capable:
            for profile, most in gpu["mig"]["profiles"].items():
                print(f"|   {gpu['index']}  MIG {profile:<14} {profile_id(gpu, profile):>3}     {most}/{most} |")
        return 0
    if "-lgi" in options:
        entries = [(gpu, entry) for gpu in capable for entry in instances(gpu)]
        if not entries:
            raise smi.Failed("No GPU instances found: Not Found", 6)
        for gpu, entry in entries:
            number = profile_id(gpu, entry["profile"])
            print(f"|   {gpu['index']}  MIG {entry['profile']:<14} {number:>3}     {entry['id']} |")
        return 0
    if "-cgi" in options:
        return _create(capable, options)
    if "-dci" in options or "-dgi" in options:
        for gpu in capable:
            if not instances(gpu):
                raise smi.Failed("No GPU instances found: Not Found", 6)
            if "-dgi" in options:
                if any(entry["compute"] for entry in instances(gpu)):
                    raise smi.Failed("Unable to destroy GPU instance: In use by another client", 19)
                change(gpu, [])
                print(f"Successfully destroyed GPU instances from GPU  {gpu['index']}")
            else:
                change(gpu, [{**entry, "compute": False} for entry in instances(gpu)])
                print(f"Successfully destroyed compute instances from GPU  {gpu['index']}")
        return 0
    raise smi.Failed("Invalid combination of input arguments.", 2)


def _create(gpus: list[Gpu], options: dict[str, str]) -> int:
    from . import smi

    for gpu in gpus:
        names = []
        for word in options["-cgi"].split(","):
            match = [name for name in gpu["mig"]["profiles"] if word in (name, str(profile_id(gpu, name)))]
            if not match:
                raise smi.Failed(
                    f"Unable to create a GPU instance on GPU {gpu['index']} using profile {word}: Invalid Argument", 2
                )
            names.append(match[0])
        try:
            made = create(gpu, names, compute="-C" in options)
        except Impossible as reason:
            raise smi.Failed(f"Unable to create a GPU instance on GPU {gpu['index']}: {reason}", 19) from None
        for entry in made:
            made_as = f"ID {entry['id']} on GPU {gpu['index']} using profile MIG {entry['profile']}"
            print(f"Successfully created GPU instance {made_as}")
    return 0
