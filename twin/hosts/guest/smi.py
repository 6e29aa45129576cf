"""nvidia-smi: the queries and settings that roles, units and health checks use."""

from __future__ import annotations

import sys
from typing import Any

from . import base, mig, nvml, smi_report

# The kernel's time slice classes: number -> word.
TIMESLICES = {0: "Default", 1: "Short", 2: "Medium", 3: "Long"}


# Options that take a value when it is not written as --name=value.
WITH_VALUE = frozenset((
    "-i", "--id", "-pm", "--persistence-mode", "-pl", "--power-limit", "-e", "--ecc-config", "-d", "--display",
    "-lgc", "--lock-gpu-clocks", "-lmc", "--lock-memory-clocks", "--query-gpu", "--format", "-f", "--filename",
    "--query-compute-apps", "--set-timeslice", "-mig", "--multi-instance-gpu", "-c", "--compute-mode", "-am", "-cgi",
    "-gi", "-ci", "-cci",
))  # fmt: skip


def select(gpus: list[dict[str, Any]], wanted: str | None) -> list[dict[str, Any]]:
    """Return the GPUs that -i names: index, UUID or bus id, separated by commas. Raises Failed for an unknown one."""
    if wanted is None:
        return gpus
    found = []
    for name in wanted.split(","):
        hits = [gpu for gpu in gpus if name.lower() in (str(gpu["index"]), gpu["uuid"].lower(), gpu["pci"],
                                                         nvml.bus_id(gpu).lower())]  # fmt: skip
        if not hits:
            raise nvml.Failed("No devices were found", nvml.NO_DEVICES)
        found += hits
    return found


def parse(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Split arguments into options with values and bare words; `--name=value`, `--name value`, `-x value`."""
    options: dict[str, str] = {}
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if word.startswith("-") and sign:
            options[name] = value
        elif word in WITH_VALUE:
            options[word] = rest.pop(0) if rest else ""
        elif word.startswith("-"):
            options[word] = ""
        else:
            words.append(word)
    return options, words


def main_nvidia_smi(arguments: list[str]) -> int:
    """Run nvidia-smi."""
    try:
        return _run(arguments)
    except nvml.Failed as failed:
        print(failed)
        return failed.status


def _run(arguments: list[str]) -> int:
    options, words = parse(arguments)
    if "--version" in options:
        loaded = base.boot_state()["modules"].get("nvidia") or {}
        print(f"NVIDIA-SMI version  : {nvml.library_version()}\nNVML version        : {nvml.library_version()}")
        print(f"DRIVER version      : {loaded.get('version', 'N/A')}")
        return 0
    version = nvml.connect()
    gpus = select(nvml.usable(), options.get("-i") or options.get("--id"))
    if words[:1] == ["mig"]:
        return mig.command(gpus, options)
    if words[:1] == ["compute-policy"]:
        return _compute_policy(gpus, options)
    if "--query-gpu" in options:
        print(smi_report.csv(gpus, options["--query-gpu"].split(","), options.get("--format", ""), version), end="")
        return 0
    if "--query-compute-apps" in options:
        print(
            smi_report.csv_apps(gpus, options["--query-compute-apps"].split(","), options.get("--format", "")), end=""
        )
        return 0
    if "-L" in options or "--list-gpus" in options:
        print(smi_report.listing(gpus), end="")
        return 0
    if "-q" in options or "--query" in options:
        as_xml = "-x" in options or "--xml-format" in options
        print(smi_report.xml(gpus, version) if as_xml else smi_report.text(gpus, version, _sections(options)), end="")
        return 0
    if "-r" in options or "--gpu-reset" in options:
        return _reset(gpus, whole="-i" not in options and "--id" not in options)
    for handler in (_persistence, _power, _clocks, _ecc, _mig_mode):
        if handler(gpus, options):
            return 0
    print(smi_report.table(gpus, version), end="")
    return 0


def _sections(options: dict[str, str]) -> list[str]:
    wanted = options.get("-d") or options.get("--display") or ""
    return [word for word in wanted.upper().split(",") if word]


def _option(options: dict[str, str], *names: str) -> str | None:
    return next((options[name] for name in names if name in options), None)


def _persistence(gpus: list[dict[str, Any]], options: dict[str, str]) -> bool:
    value = _option(options, "-pm", "--persistence-mode")
    if value is None:
        return False
    on = value.upper() in ("1", "ENABLED")
    word = "Enabled" if on else "Disabled"
    for gpu in gpus:
        nvml.setting(gpu, persistence=on)
        print(f"{word} persistence mode for GPU {nvml.bus_id(gpu)}.")
    print("All done.")
    return True


def _power(gpus: list[dict[str, Any]], options: dict[str, str]) -> bool:
    value = _option(options, "-pl", "--power-limit")
    if value is None:
        return False
    for gpu in gpus:
        watts, limits = float(value), gpu["power"]
        if not limits["min"] <= watts <= limits["max"]:
            raise nvml.Failed(
                f"Provided power limit {watts:.2f} W is not a valid power limit: it should be between "
                f"{limits['min']:.2f} W and {limits['max']:.2f} W for GPU {nvml.bus_id(gpu)}",
                nvml.BAD_ARGUMENT,
            )
        nvml.setting(gpu, power_limit=watts)
        print(f"Power limit for GPU {nvml.bus_id(gpu)} was set to {watts:.2f} W.")
    print("All done.")
    return True


def _clocks(gpus: list[dict[str, Any]], options: dict[str, str]) -> bool:
    value = _option(options, "-lgc", "--lock-gpu-clocks")
    reset = "-rgc" in options or "--reset-gpu-clocks" in options
    if value is None and not reset:
        return False
    for gpu in gpus:
        nvml.setting(gpu, clocks=value)
        print(f"GPU clocks {'reset' if reset else f'set to {value}'} for GPU {nvml.bus_id(gpu)}")
    print("All done.")
    return True


def _ecc(gpus: list[dict[str, Any]], options: dict[str, str]) -> bool:
    value = _option(options, "-e", "--ecc-config")
    if value is None:
        return False
    for gpu in gpus:
        nvml.keep(gpu, ecc_pending=value.upper() in ("1", "ENABLED"))
        print(f"ECC support set for GPU {nvml.bus_id(gpu)}.")
    print("All done.\nReboot required.")
    return True


def _mig_mode(gpus: list[dict[str, Any]], options: dict[str, str]) -> bool:
    value = _option(options, "-mig", "--multi-instance-gpu")
    if value is None:
        return False
    mig.set_mode(gpus, value.upper() in ("1", "ENABLED"))
    return True


def _compute_policy(gpus: list[dict[str, Any]], options: dict[str, str]) -> int:
    value = options.get("--set-timeslice")
    if value is not None:
        if not value.isdigit() or int(value) not in TIMESLICES:
            raise nvml.Failed(f"Invalid timeslice value {value}", nvml.BAD_ARGUMENT)
        for gpu in gpus:
            nvml.setting(gpu, timeslice=int(value))
            print(f"Successfully set timeslice duration for GPU {nvml.bus_id(gpu)}.")
        return 0
    print("+-------------------------------------+\n| GPU compute policies:               |\n"
          "| GPU     Name             Value      |\n|=====================================|")  # fmt: skip
    for gpu in gpus:
        print(f"| {gpu['index']:>3}     Timeslice        {TIMESLICES[gpu['set'].get('timeslice', 0)]:<11}|")
    print("+-------------------------------------+")
    return 0


def _reset(gpus: list[dict[str, Any]], *, whole: bool) -> int:
    """Reset GPUs; refused while something holds them, and one by one on a host with NVSwitches."""
    state = base.boot_state()
    names = ", ".join(nvml.bus_id(gpu) for gpu in gpus)
    if "nvidia_drm" in state["modules"] or base.holders():
        raise nvml.Failed(
            f"The following GPUs could not be reset:\n  GPU {names}: In use by another client",
            1,
        )
    if base.scenario().get("nvswitches") and not whole:
        raise nvml.Failed(f"The following GPUs could not be reset:\n  GPU {names}: Not Supported", 1)
    if base.failure("reset"):
        raise nvml.Failed(f"The following GPUs could not be reset:\n  GPU {names}: {base.failure('reset')}", 1)
    with base.locked():
        state, lasting = base.boot_state(), base.lasting_state()
        for gpu in gpus:
            key = str(gpu["index"])
            state["gpus"].pop(key, None)
            kept = lasting["gpus"].setdefault(key, {})
            kept["mig"] = kept.pop("mig_pending", kept.get("mig", False))
            kept["ecc"] = kept.pop("ecc_pending", kept.get("ecc", True))
        if base.scenario().get("nvswitches"):
            state["fabric"] = {}
        base.save_boot_state(state)
        base.save_lasting_state(lasting)
    for gpu in gpus:
        print(f"GPU {nvml.bus_id(gpu)} was successfully reset.")
    print("All done.")
    return 0


if __name__ == "__main__":
    sys.exit(main_nvidia_smi(sys.argv[1:]))
