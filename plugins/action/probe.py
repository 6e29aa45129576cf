"""Action plugin `probe`: runs the module of the same name with what the variables and the catalogue want to know."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.hosts.plugins.module_utils import paths
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.hosts import catalog


class ActionModule(ActionBase):
    """Adds the module's options, so that every task that reads the host again is one line."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read the host."""
        super().run(tmp, task_vars)
        given = settings.settings_of(task_vars or {})
        wanted, _wrong = settings.checked({name: self._templar.template(value) for name, value in given.items()})
        tables = catalog.catalog(str(wanted["gpu_catalog_dir"]))
        rows = tables.rows("host_kernel", "kernel_log")
        arguments = {
            "sysfs_root": wanted["gpu_sysfs_root"],
            "proc_root": wanted["gpu_proc_root"],
            "dev_root": wanted["gpu_dev_root"],
            "kernel_log": wanted["gpu_kernel_log"],
            "kernel_log_patterns": [{"id": row["id"], "pattern": row["pattern"]} for row in rows],
            "mig_layout": wanted["gpu_mig_layout"],
            "mig_config": paths.MIG_LAYOUT,
            "time_slice": bool(wanted["gpu_health_time_slice"]),
            **self._task.args,
        }
        return self._execute_module(module_name="gpufleet.hosts.probe", module_args=arguments, task_vars=task_vars)
