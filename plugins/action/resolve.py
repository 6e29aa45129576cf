"""Action plugin `resolve`: runs the module of the same name with the names that the catalogue gives packages."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.catalog.packages import vendor_packages


class ActionModule(ActionBase):
    """Adds what wanted packages may bring along."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the repositories."""
        super().run(tmp, task_vars)
        _wanted, _wrong, tables = settings.of_task(self, task_vars or {})
        arguments = {"names": list(vendor_packages(tables)), **self._task.args}
        answer: dict[str, Any] = self._execute_module("gpufleet.hosts.resolve", arguments, task_vars=task_vars)
        return answer
