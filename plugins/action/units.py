"""Action plugin `units`: brings systemd units into the decided state through `ansible.builtin.systemd_service`."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Runs on the controller; the module that it calls runs on the host."""

    TRANSFERS_FILES = False
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Change the units in the given order; stops at the first that fails."""
        super().run(tmp, task_vars)
        units = list(self._task.args.get("units", []))
        reload = bool(self._task.args.get("daemon_reload", False))
        result: dict[str, Any] = {"changed": bool(units) or reload, "units": [unit["name"] for unit in units]}
        if self._task.check_mode:
            return result
        if reload:
            answer = self._execute_module(
                "ansible.builtin.systemd_service", {"daemon_reload": True}, task_vars=task_vars
            )
            if answer.get("failed"):
                return {**answer, **result, "failed": True}
        for unit in units:
            options = {key: unit[key] for key in ("name", "enabled", "state", "masked") if key in unit}
            answer = self._execute_module("ansible.builtin.systemd_service", options, task_vars=task_vars)
            if answer.get("failed"):
                return {**answer, **result, "failed": True, "msg": f"{unit['name']}: {answer.get('msg', 'failed')}"}
        return result
