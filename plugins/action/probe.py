"""Action plugin `probe`: runs the module of the same name with what the variables and the catalogue want to know."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.catalog.hosts import kernel_log
from gpufleet.catalog.packages import embedded_containerd, reported_packages
from gpufleet.hosts import paths


class ActionModule(ActionBase):
    """Adds the module's options, so that every task that reads the host again is one line."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read the host."""
        super().run(tmp, task_vars)
        wanted, _wrong, tables = settings.of_task(self, task_vars or {})
        arguments = {
            "sysfs_root": wanted["gpu_sysfs_root"],
            "proc_root": wanted["gpu_proc_root"],
            "dev_root": wanted["gpu_dev_root"],
            "kernel_log": wanted["gpu_kernel_log"],
            "kernel_log_patterns": [{"id": row.id, "pattern": row.pattern} for row in kernel_log(tables)],
            "mig_layout": wanted["gpu_mig_layout"],
            "mig_config": paths.MIG_LAYOUT,
            "time_slice": bool(wanted["gpu_health_time_slice"]),
            "files": list(paths.ALL),
            "keyrings": list(paths.KEYRINGS),
            "units": list(paths.UNITS),
            "kubelets": list(paths.KUBELETS),
            "containerds": [row.program for row in embedded_containerd(tables)],
            "packages": list(reported_packages(tables)),
            **self._task.args,
        }
        answer: dict[str, Any] = self._execute_module("gpufleet.hosts.probe", arguments, task_vars=task_vars)
        return answer
