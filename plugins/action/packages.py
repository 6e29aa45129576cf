"""Action plugin `packages`: one package transaction through `ansible.builtin.apt` or `ansible.builtin.dnf`."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Runs on the controller; the modules that it calls run on the host."""

    TRANSFERS_FILES = False
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Install, then remove what is left over."""
        super().run(tmp, task_vars)
        arguments = self._task.args
        install, remove = list(arguments.get("install", [])), list(arguments.get("remove", []))
        names = [self._spec(item, arguments["manager"]) for item in install]
        result: dict[str, Any] = {
            "changed": bool(names or remove or arguments.get("repair")),
            "installed": names,
            "removed": remove,
        }
        if self._task.check_mode or not result["changed"]:
            return result
        system = (task_vars or {}).get("ansible_facts", {}).get("gpu_probe", {}).get("system", {})
        for module, options in self._waits(arguments, system) + self._calls(arguments, names, remove):
            answer = self._execute_module(module_name=module, module_args=options, task_vars=task_vars)
            if answer.get("failed"):
                return {**answer, **result, "failed": True, "msg": answer.get("msg", "the package manager failed")}
        return result

    @staticmethod
    def _spec(item: dict[str, Any], manager: str) -> str:
        version = str(item.get("version") or "")
        if not version:
            return str(item["name"])
        if manager == "apt":
            return f"{item['name']}={version}"
        epoch, _, rest = version.rpartition(":")
        return f"{item['name']}-{epoch + ':' if epoch else ''}{rest}"

    @staticmethod
    def _waits(arguments: dict[str, Any], system: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """First-boot jobs install packages of their own, in several transactions: the lock alone is no end of them."""
        if not system.get("cloud_init_running"):
            return []
        lock = int(arguments.get("lock_timeout", 300))
        told = f"cloud-init has not finished within {lock} seconds (gpu_lock_timeout)"
        return [("ansible.builtin.wait_for", {"path": "/run/cloud-init/result.json", "timeout": lock, "msg": told})]

    @staticmethod
    def _calls(arguments: dict[str, Any], names: list[str], remove: list[str]) -> list[tuple[str, dict[str, Any]]]:
        """The modules to call, in order, with their options."""
        lock = int(arguments.get("lock_timeout", 300))
        calls: list[tuple[str, dict[str, Any]]] = []
        if arguments["manager"] == "apt":
            if arguments.get("repair"):
                calls.append(("ansible.builtin.command", {"_raw_params": "dpkg --configure --pending --force-confold"}))
            if names:
                options = {
                    "name": names, "state": "present", "update_cache": bool(arguments.get("update", True)),
                    "lock_timeout": lock, "allow_change_held_packages": True, "allow_downgrade": True,
                    "dpkg_options": "force-confdef,force-confold",
                }  # fmt: skip
                calls.append(("ansible.builtin.apt", options))
            if remove:
                options = {
                    "name": remove, "state": "absent", "purge": True, "lock_timeout": lock,
                    "allow_change_held_packages": True,
                }  # fmt: skip
                calls.append(("ansible.builtin.apt", options))
            return calls
        # Installing `@module:stream` would bring the stream's newest driver first. Streams change after a reset alone.
        for stream in arguments.get("streams", []):
            for words in (f"reset {stream.partition(':')[0]}", f"enable {stream}"):
                calls.append(("ansible.builtin.command", {"_raw_params": f"dnf -y module {words}"}))
        if names:
            options = {
                "name": names, "state": "present", "update_cache": bool(arguments.get("update", True)),
                "lock_timeout": lock, "allow_downgrade": True, "allowerasing": True,
            }  # fmt: skip
            calls.append(("ansible.builtin.dnf", options))
        if remove:
            calls.append(("ansible.builtin.dnf", {"name": remove, "state": "absent", "lock_timeout": lock}))
        return calls
