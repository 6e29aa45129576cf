"""Files of the driver: pins, exclusions, modprobe configuration, modules to load; and who holds the GPUs instead."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpufleet.hosts.plugins.module_utils import paths

from . import fabric
from .context import Context

_HEADER = "# Written by the role gpu_driver.\n"


def preferences(version: str | None) -> str:
    """apt preferences that keep every driver package at one version, whatever a repository brings."""
    names = (
        "nvidia-* libnvidia-* cuda-drivers* libnvsdm* libxnvctrl* xserver-xorg-video-nvidia* firmware-nvidia* libcuda1"
        " libcudadebugger1 libnvcuvid1 libnvoptix1 libegl*-nvidia* libgl*-nvidia*"
    )
    return f"{_HEADER}Package: {names}\nPin: version {version}-*\nPin-Priority: 1001\n"


UNATTENDED_TEXT = (
    "// Written by the role gpu_driver: libraries must not be replaced under a loaded module.\n"
    'Unattended-Upgrade::Package-Blacklist {\n  "^nvidia-";\n  "^libnvidia-";\n  "^cuda-drivers";\n  "^libnvsdm";\n'
    '  "^libcuda1$";\n  "^linux-modules-nvidia-";\n};\n'
)

# The installer file brings the daemon without a unit; this one is as in the packages.
PERSISTENCED_TEXT = (
    "# Written by the role gpu_driver.\n[Unit]\nDescription=NVIDIA Persistence Daemon\nWants=syslog.target\n\n"
    "[Service]\nType=forking\nPIDFile=/run/nvidia-persistenced/nvidia-persistenced.pid\nRestart=always\n"
    "ExecStart=/usr/bin/nvidia-persistenced --verbose\nExecStopPost=/bin/rm -rf /run/nvidia-persistenced\n\n"
    "[Install]\nWantedBy=multi-user.target\n"
)


def blacklist(context: Context) -> str:
    """modprobe configuration that keeps other drivers off the GPUs."""
    lines = [_HEADER.rstrip()]
    for row in context.tables.rows("platforms", "blacklisted_modules"):
        lines.append(f"blacklist {row['module']}")
        if row.get("options"):
            lines.append(f"options {row['module']} {row['options']}")
    if context.settings["gpu_mig_layout"]:  # nvidia_drm keeps a GPU open and so prevents its reset
        lines.append("blacklist nvidia_drm")
    return "\n".join(lines) + "\n"


def module_options(context: Context) -> dict[str, str]:
    """Options by module: those of the variable, and those that a GPU needs."""
    options: dict[str, str] = {}
    names = {gpu.name for gpu in context.gpus}
    for row in context.tables.rows("host_kernel", "module_options"):
        if names & set(row["gpus"]) and (context.target.branch or 0) >= row["from_branch"]:
            options[row["module"]] = row["options"]
    options.update({str(k): str(v) for k, v in context.settings["gpu_driver_module_options"].items()})
    return options


def configuration(context: Context, plan: dict[str, Any]) -> None:
    """modprobe files, modules to load at boot, initramfs, persistence."""
    options = module_options(context)
    files = context.want_file(paths.BLACKLIST, blacklist(context))
    if options:
        lines = [f"options {name} {value}" for name, value in sorted(options.items())]
        files += context.want_file(paths.MODULE_OPTIONS, _HEADER + "\n".join(lines) + "\n")
    else:
        plan["absent"] += context.unwanted(paths.MODULE_OPTIONS)
    plan["files"] += files
    modules = ["nvidia", "nvidia-uvm", *fabric.fabric_of(context).modules]
    plan["files"] += context.want_file(paths.MODULES_LOAD, _HEADER + "\n".join(modules) + "\n")
    image = context.probe["kernel"]["initramfs"]
    record = context.probe["files"].get(paths.BLACKLIST)
    old = bool(image and record and image["mtime"] < record["mtime"])
    if context.probe["kernel"]["initramfs_tool"] and (files or old):
        plan["initramfs"] = str((context.platform.row or {}).get("initramfs", "update-initramfs -u -k all")).split()
    if context.settings["gpu_driver_persistenced"] and context.gpus:
        usable = not blockers(context) and context.settings["gpu_driver_load"]
        plan["units"] = context.want_unit("nvidia-persistenced.service", active=True if usable else None)


def blockers(context: Context) -> list[str]:
    """Loaded modules that hold the GPUs until a reboot."""
    others = [row["module"] for row in context.tables.rows("platforms", "blacklisted_modules")]
    return [name for name in others if name in context.modules]
