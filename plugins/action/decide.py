"""Action plugin `decide`: what is left to do on a host. Runs on the controller alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ansible.release
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.hosts import (
    catalog,
    context,
    driver,
    fabric,
    health,
    mig,
    preflight,
    report,
    runtimes,
    toolkit,
    verify,
)

Problems = list[tuple[str, dict[str, Any]]]


def _preflight(host: context.Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    found = report.accept(preflight.findings(host), host.settings["gpu_preflight_accept"])
    request = preflight.resolve_request(host)
    asked = bool(request) and host.answer(request["want"]) is not None
    return {"findings": found, "resolve": {} if asked else request}


def _runtime_check(host: context.Context, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"problems": runtimes.verify_runtime(host, str(arguments.get("before", "")))}


def _boot_order(host: context.Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    return {"problems": runtimes.boot_order(host)}


def _kernels(host: context.Context, arguments: dict[str, Any]) -> dict[str, Any]:
    before, after = sorted(arguments.get("kernels", [])), context.kernel_packages(host.probe)
    new = [name for name in after if name not in before]
    values = {"before": ", ".join(before) or "none", "after": ", ".join(after)}
    return {"problems": [("GF782", values)] if new else []}


def _facts(host: context.Context, arguments: dict[str, Any]) -> dict[str, Any]:
    smoke = dict(arguments.get("smoke") or {})
    failed = int(smoke.get("rc", 0)) != 0
    healthy = bool(arguments.get("healthy", True)) and not failed
    words = f"exit status {smoke.get('rc')}: {smoke.get('stderr') or smoke.get('stdout') or smoke.get('msg') or ''}"[
        :500
    ]
    files = health.facts_file(host, healthy=healthy, check_mode=bool(arguments.get("check_mode")))
    problems: Problems = [("GF785", {"what": words})] if failed else []
    return {"problems": problems, "files": files, "facts": health.facts(host, healthy=healthy)}


_SUBJECTS: dict[str, Callable[[context.Context, dict[str, Any]], dict[str, Any]]] = {
    "preflight": _preflight,
    "driver": lambda host, arguments: driver.plan_driver(host, exchange=bool(arguments.get("exchange", True))),
    "fabric": lambda host, _arguments: fabric.plan_fabric(host, host.target),
    "toolkit": lambda host, _arguments: toolkit.plan_toolkit(host),
    "runtime_check": _runtime_check,
    "boot_order": _boot_order,
    "kernels": _kernels,
    "mig": lambda host, _arguments: mig.plan_mig(host),
    "health": lambda host, _arguments: health.plan_health(host),
    "facts": _facts,
    "last_good": lambda host, _arguments: {"last_good": health.last_good(host) or {}},
    "site": lambda host, arguments: verify.site(host, check_mode=bool(arguments.get("check_mode"))),
    "verify": lambda host, _arguments: verify.verify(host),
}


class ActionModule(ActionBase):
    """Runs on the controller alone."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Decide, and say in words what will change."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = {**self._task.args, "check_mode": self._task.check_mode}
        subject = arguments.get("subject")
        if subject not in _SUBJECTS:
            raise AnsibleActionFail(f"subject has to be one of {', '.join(_SUBJECTS)}")
        facts = variables.get("ansible_facts", {})
        if "gpu_probe" not in facts:
            raise AnsibleActionFail("the host was not read; run the role gpu first")
        wanted = settings.settings_of(variables)
        # One call: the templar resolves nested variables of the inventory.
        wanted = {name: self._templar.template(value) for name, value in wanted.items()}
        wanted, wrong = settings.checked(settings.overridden(wanted))
        wrong = wrong or settings.malformed(wanted)
        wrong += settings.unknown(variables)
        if wrong:
            tables = catalog.catalog(str(wanted["gpu_catalog_dir"] or ""))
            found = report.ordered([report.finding(tables, "GF760", what=what) for what in wrong])
            raise AnsibleActionFail(report.text(found))
        host = context.Context(
            facts["gpu_probe"], wanted, catalog.catalog(str(wanted["gpu_catalog_dir"])), facts.get("gpu_resolved", {}),
            {"ansible_core": ansible.release.__version__},
        )  # fmt: skip
        plan = _SUBJECTS[subject](host, arguments)
        tables = host.tables
        problems = [report.finding(tables, code, **values) for code, values in plan.pop("problems", [])]
        found = report.ordered(plan.get("findings", []) + problems)
        plan["findings"] = found
        plan["errors"] = report.count(found, "error")
        plan["report"] = report.text(found)
        plan["changes"] = context.describe(plan)
        plan.setdefault("due", bool(plan["changes"] or plan.get("resolve") or plan.get("reboot")))
        plan["undo"] = context.undo(host, plan)
        plan["may_reboot"] = not host.in_use
        result: dict[str, Any] = {"changed": False, "plan": plan}
        if "reboot" in plan:
            reasons = health.reboot_reasons(host)
            result["ansible_facts"] = {"gpu_reboot_required": bool(reasons), "gpu_reboot_reasons": reasons}
        return result
