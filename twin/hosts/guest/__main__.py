"""Entry of every simulated tool: `python3 /twin/lib/guest TOOL ARGUMENTS...`; only the tool's own module is read."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

TOOLS = {
    "boot": "boot",
    "modprobe": "modules",
    "rmmod": "modules",
    "lsmod": "modules",
    "modinfo": "modules",
    "depmod": "modules",
    "dkms": "kernel_tools",
    "update-initramfs": "kernel_tools",
    "lsinitramfs": "kernel_tools",
    "mokutil": "kernel_tools",
    "dmesg": "kernel_log",
    "journalctl": "kernel_log",
    "nvidia-smi": "smi",
    "nv-fabricmanager": "daemons",
    "nvidia-persistenced": "daemons",
    "nvidia-imex": "daemons",
    "hold": "daemons",
    "nvidia-modprobe": "daemons",
    "nvidia-mig-parted": "mig_parted",
    "render": "daemons",
    "kernel-log": "daemons",
    "k3s": "runtimes",
    "rke2": "runtimes",
    "crio": "runtimes",
    "dockerd": "runtimes",
    "docker": "runtimes",
}


def main() -> int:
    """Run the tool named by the first argument."""
    tool, arguments = sys.argv[1], sys.argv[2:]
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    module = importlib.import_module(f"guest.{TOOLS[tool]}")
    return int(getattr(module, f"main_{tool.replace('-', '_')}")(arguments))


if __name__ == "__main__":
    sys.exit(main())
