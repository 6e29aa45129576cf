"""Files of the driver: pins, exclusions, modprobe configuration, modules to load; and who holds the GPUs instead."""

from __future__ import annotations

from gpufleet.catalog.hosts import blacklisted_modules
from gpufleet.catalog.hosts import module_options as needed_options
from gpufleet.hosts import fabric, packages, paths
from gpufleet.hosts.context import Context
from gpufleet.hosts.work import DriverWork, WantedFile

_HEADER = "# Written by the role gpu_driver.\n"
PERSISTENCED_UNIT = "nvidia-persistenced.service"

# The installer file brings the daemon without a unit; this one is as in the packages.
PERSISTENCED_TEXT = (
    "# Written by the role gpu_driver.\n[Unit]\nDescription=NVIDIA Persistence Daemon\nWants=syslog.target\n\n"
    "[Service]\nType=forking\nPIDFile=/run/nvidia-persistenced/nvidia-persistenced.pid\nRestart=always\n"
    "ExecStart=/usr/bin/nvidia-persistenced --verbose\nExecStopPost=/bin/rm -rf /run/nvidia-persistenced\n\n"
    "[Install]\nWantedBy=multi-user.target\n"
)


def preferences(context: Context) -> str:
    """apt preferences for the wanted version."""
    return packages.preferences(_HEADER, context.target.version, context.tables)


def unattended(context: Context) -> str:
    """Configuration of unattended-upgrades that leaves the driver alone."""
    patterns = "".join(f'  "{pattern}";\n' for pattern in packages.unattended(context.tables))
    return (
        "// Written by the role gpu_driver: libraries must not be replaced under a loaded module.\n"
        f"Unattended-Upgrade::Package-Blacklist {{\n{patterns}}};\n"
    )


def pins(context: Context) -> list[WantedFile]:
    """What keeps apt from bringing another version."""
    return context.want_file(paths.PREFERENCES, preferences(context)) + context.want_file(
        paths.UNATTENDED, unattended(context)
    )


def blacklist(context: Context) -> str:
    """modprobe configuration that keeps other drivers off the GPUs."""
    lines = [_HEADER.rstrip()]
    for row in blacklisted_modules(context.tables):
        lines.append(f"blacklist {row.module}")
        if row.options:
            lines.append(f"options {row.module} {row.options}")
    if context.settings.gpu_mig_layout:  # nvidia_drm keeps a GPU open and so prevents its reset
        lines.append("blacklist nvidia_drm")
    return "\n".join(lines) + "\n"


def module_options(context: Context) -> dict[str, str]:
    """Options by module: those of the variable, and those that a GPU needs."""
    names, branch = {gpu.name for gpu in context.gpus}, context.target.branch or 0
    rows = [r for r in needed_options(context.tables) if names & set(r.gpus) and branch >= r.from_branch]
    return {**{row.module: row.options for row in rows}, **context.settings.gpu_driver_module_options}


def stale_initramfs(context: Context) -> bool:
    """Whether the initramfs is older than the blacklist."""
    image, record = context.probe.kernel.initramfs, context.probe.files.get(paths.BLACKLIST)
    return bool(image and record and image.mtime < record.mtime)


def configuration(context: Context, plan: DriverWork) -> None:
    """modprobe files, modules to load at boot, initramfs, persistence."""
    options = module_options(context)
    files = context.want_file(paths.BLACKLIST, blacklist(context))
    if options:
        lines = [f"options {name} {value}" for name, value in sorted(options.items())]
        files += context.want_file(paths.MODULE_OPTIONS, _HEADER + "\n".join(lines) + "\n")
    else:
        plan.absent += context.unwanted(paths.MODULE_OPTIONS)
    plan.files += files
    modules = ["nvidia", "nvidia-uvm", *fabric.fabric_of(context).modules]
    plan.files += context.want_file(paths.MODULES_LOAD, _HEADER + "\n".join(modules) + "\n")
    if context.probe.kernel.initramfs_tool and (files or stale_initramfs(context)):
        plan.initramfs = context.system.initramfs
    if context.settings.gpu_driver_persistenced and context.gpus:
        usable = not blockers(context) and context.settings.gpu_driver_load
        plan.units = context.want_unit(PERSISTENCED_UNIT, active=True if usable else None)


def blockers(context: Context) -> list[str]:
    """Loaded modules that hold the GPUs until a reboot."""
    return [row.module for row in blacklisted_modules(context.tables) if row.module in context.modules]
