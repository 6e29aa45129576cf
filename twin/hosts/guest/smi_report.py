"""What nvidia-smi prints: CSV queries, the list, the long report as text and XML, the table."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from . import base, fabric, mig_layout, nvml

Gpu = dict[str, Any]


def _on(value: object) -> str:
    return "Enabled" if value else "Disabled"


def persistence(gpu: Gpu) -> bool:
    """Tell whether persistence is on: by the daemon or by the old switch."""
    daemon = any(holder["kind"] == "persistenced" for holder in base.holders())
    return bool(gpu["set"].get("persistence", daemon))


def ecc_errors(gpu: Gpu) -> dict[str, int]:
    """Return the ECC counters that the scenario gives this GPU."""
    found: dict[str, int] = {"corrected": 0, "uncorrected": 0}
    found.update((base.scenario().get("ecc_errors") or {}).get(str(gpu["index"]), {}))
    return found


def mig_modes(gpu: Gpu) -> tuple[str, str]:
    """Return the current and the pending MIG mode; N/A where the GPU has none."""
    if not gpu.get("mig"):
        return "[N/A]", "[N/A]"
    current = gpu["kept"].get("mig", False)
    return _on(current), _on(gpu["kept"].get("mig_pending", current))


def field(gpu: Gpu, name: str, version: str, units: bool) -> str:
    """Return one field of --query-gpu. Unknown names raise KeyError."""
    ecc = gpu["kept"].get("ecc", True)
    limit = gpu["set"].get("power_limit", gpu["power"]["default"])
    errors = ecc_errors(gpu)
    state, status = fabric.of_gpu()

    def measure(value: float, unit: str, digits: int = 0) -> str:
        return f"{value:.{digits}f}{' ' + unit if units else ''}"

    values: dict[str, Any] = {
        "count": len(base.gpus()),
        "index": gpu["index"],
        "name": gpu["name"],
        "gpu_name": gpu["name"],
        "uuid": gpu["uuid"],
        "gpu_uuid": gpu["uuid"],
        "serial": gpu["serial"],
        "pci.bus_id": nvml.bus_id(gpu),
        "gpu_bus_id": nvml.bus_id(gpu),
        "pci.device_id": f"0x{gpu['device'].upper()}10DE",
        "driver_version": version,
        "vbios_version": "96.00.00.00.01",
        "compute_cap": gpu["compute_capability"],
        "compute_mode": "Default",
        "memory.total": measure(gpu["memory_mib"], "MiB"),
        "memory.used": measure(0, "MiB"),
        "memory.free": measure(gpu["memory_mib"], "MiB"),
        "persistence_mode": _on(persistence(gpu)),
        "pstate": "P0",
        "temperature.gpu": 30,
        "utilization.gpu": measure(0, "%"),
        "utilization.memory": measure(0, "%"),
        "power.draw": measure(60, "W", 2),
        "power.limit": measure(limit, "W", 2),
        "enforced.power.limit": measure(limit, "W", 2),
        "power.default_limit": measure(gpu["power"]["default"], "W", 2),
        "power.min_limit": measure(gpu["power"]["min"], "W", 2),
        "power.max_limit": measure(gpu["power"]["max"], "W", 2),
        "clocks.max.sm": measure(gpu["clock_mhz"], "MHz"),
        "clocks.max.gr": measure(gpu["clock_mhz"], "MHz"),
        "clocks.max.graphics": measure(gpu["clock_mhz"], "MHz"),
        "ecc.mode.current": _on(ecc),
        "ecc.mode.pending": _on(gpu["kept"].get("ecc_pending", ecc)),
        "ecc.errors.corrected.volatile.total": errors["corrected"],
        "ecc.errors.uncorrected.volatile.total": errors["uncorrected"],
        "ecc.errors.corrected.aggregate.total": errors["corrected"],
        "ecc.errors.uncorrected.aggregate.total": errors["uncorrected"],
        "retired_pages.pending": "No",
        "mig.mode.current": mig_modes(gpu)[0],
        "mig.mode.pending": mig_modes(gpu)[1],
        "fabric.state": state,
        "fabric.status": status,
        "gpu_recovery_action": "None",
    }
    return str(values[name])


def _format(text: str) -> tuple[bool, bool]:
    words = [word.strip() for word in text.split(",")]
    return "noheader" not in words, "nounits" not in words


def csv(gpus: list[Gpu], names: list[str], form: str, version: str) -> str:
    """Return --query-gpu as CSV. Raises Failed for a field that does not exist."""
    header, units = _format(form)
    names = [name.strip() for name in names]
    lines = [", ".join(names)] if header else []
    for gpu in gpus:
        try:
            lines.append(", ".join(field(gpu, name, version, units) for name in names))
        except KeyError as error:
            raise nvml.Failed(f'Field "{error.args[0]}" is not a valid field to query.', 2) from None
    return "".join(line + "\n" for line in lines)


def csv_apps(gpus: list[Gpu], names: list[str], form: str) -> str:
    """Return --query-compute-apps as CSV: the processes that compute on the GPUs."""
    header, units = _format(form)
    names = [name.strip() for name in names]
    lines = [", ".join(names)] if header else []
    for holder in base.holders():
        if holder["kind"] == "cuda":
            values = {"pid": str(holder["pid"]), "name": holder["name"], "process_name": holder["name"],
                      "used_memory": "100 MiB" if units else "100", "used_gpu_memory": "100 MiB" if units else "100",
                      "gpu_uuid": gpus[0]["uuid"], "gpu_bus_id": nvml.bus_id(gpus[0])}  # fmt: skip
            lines.append(", ".join(values.get(name, "[N/A]") for name in names))
    return "".join(line + "\n" for line in lines)


def listing(gpus: list[Gpu]) -> str:
    """Return -L: each GPU, and below it its MIG devices."""
    lines = []
    for gpu in gpus:
        lines.append(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})")
        for number, device in enumerate(mig_layout.devices(gpu)):
            lines.append(f"  MIG {device['profile']:<10} Device {number:>2}: (UUID: {device['uuid']})")
    return "".join(line + "\n" for line in lines)


def sections(gpu: Gpu, version: str) -> dict[str, dict[str, str]]:
    """Return the parts of the long report that roles read, by section."""
    state, status = fabric.of_gpu()
    errors = ecc_errors(gpu)
    current, pending = mig_modes(gpu)
    ecc = gpu["kept"].get("ecc", True)
    return {
        "": {
            "Product Name": gpu["name"],
            "Persistence Mode": _on(persistence(gpu)),
            "Serial Number": gpu["serial"],
            "GPU UUID": gpu["uuid"],
            "Minor Number": str(gpu["index"]),
        },
        "MIG Mode": {"Current": current.strip("[]"), "Pending": pending.strip("[]")},
        "ECC Mode": {"Current": _on(ecc), "Pending": _on(gpu["kept"].get("ecc_pending", ecc))},
        "ECC Errors": {"DRAM Correctable": str(errors["corrected"]), "DRAM Uncorrectable": str(errors["uncorrected"])},
        "Fabric": {"State": state, "Status": status},
        "FB Memory Usage": {"Total": f"{gpu['memory_mib']} MiB", "Used": "0 MiB", "Free": f"{gpu['memory_mib']} MiB"},
        "GPU Power Readings": {
            "Current Power Limit": f"{gpu['set'].get('power_limit', gpu['power']['default']):.2f} W",
            "Default Power Limit": f"{gpu['power']['default']:.2f} W",
            "Min Power Limit": f"{gpu['power']['min']:.2f} W",
            "Max Power Limit": f"{gpu['power']['max']:.2f} W",
        },
    }


# What -d calls a section -> the section's title.
DISPLAYED = {"ECC": ("ECC Mode", "ECC Errors"), "MEMORY": ("FB Memory Usage",), "POWER": ("GPU Power Readings",)}


def text(gpus: list[Gpu], version: str, display: list[str]) -> str:
    """Return -q as text."""
    wanted = {title for word in display for title in DISPLAYED.get(word, ())}
    lines = ["", "==============NVSMI LOG==============", "", f"{'Driver Version':<42}: {version}",
             f"{'CUDA Version':<42}: {nvml.cuda_version(version)}", "",
             f"{'Attached GPUs':<42}: {len(gpus)}"]  # fmt: skip
    for gpu in gpus:
        lines.append(f"GPU {nvml.bus_id(gpu)}")
        for title, values in sections(gpu, version).items():
            if wanted and title not in wanted:
                continue
            indent = 4
            if title:
                lines.append(f"    {title}")
                indent = 8
            if title == "ECC Errors":  # counters since the driver was loaded have a level of their own
                lines.append("        Volatile")
                indent = 12
            lines += [f"{' ' * indent}{name:<{42 - indent}}: {value}" for name, value in values.items()]
        lines.append("")
    return "".join(line + "\n" for line in lines)


def _tag(name: str) -> str:
    return name.lower().replace(" ", "_")


def xml(gpus: list[Gpu], version: str) -> str:
    """Return -q -x: the same parts as XML, with the original's element names."""
    out = ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', "<nvidia_smi_log>",
           f"\t<driver_version>{version}</driver_version>",
           f"\t<cuda_version>{nvml.cuda_version(version)}</cuda_version>",
           f"\t<attached_gpus>{len(gpus)}</attached_gpus>"]  # fmt: skip
    renamed = {"GPU UUID": "uuid", "Serial Number": "serial"}
    for gpu in gpus:
        out.append(f'\t<gpu id="{nvml.bus_id(gpu)}">')
        for title, values in sections(gpu, version).items():
            indent = "\t\t"
            if title:
                out.append(f"\t\t<{_tag(title)}>")
                indent = "\t\t\t"
            for name, value in values.items():
                tag = renamed.get(name, _tag(name))
                if title in ("MIG Mode", "ECC Mode"):
                    tag = f"{tag}_{title.split()[0].lower()}"
                out.append(f"{indent}<{tag}>{escape(value)}</{tag}>")
            if title:
                out.append(f"\t\t</{_tag(title)}>")
        out.append("\t</gpu>")
    out.append("</nvidia_smi_log>")
    return "".join(line + "\n" for line in out)


def table(gpus: list[Gpu], version: str) -> str:
    """Return the plain table, shortened to what identifies each GPU."""
    edge = "+" + "-" * 89 + "+"
    head = f"| NVIDIA-SMI {version:<22} Driver Version: {version:<14} CUDA Version: {nvml.cuda_version(version):<10} |"
    lines = [edge, head]
    for gpu in gpus:
        kept = "On" if persistence(gpu) else "Off"
        lines.append(f"| {gpu['index']:>3}  {gpu['name']:<32} {kept:<4} {nvml.bus_id(gpu)} |")
    return "".join(line + "\n" for line in [*lines, edge])
