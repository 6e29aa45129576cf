"""Action plugin `decide`: what is left to do on a host. Runs on the controller alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ansible.release
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.hosts.plugins.module_utils import openpgp
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.findings.finding import Finding, Severity
from gpufleet.hosts import driver, fabric, health, mig, preflight, report, runtime, toolkit, verify
from gpufleet.hosts.context import Answer, Context, kernel_packages, undo
from gpufleet.hosts.reading import Key, Reading
from gpufleet.hosts.settings import Settings
from gpufleet.hosts.work import Problem, Work, describe, plain


@dataclass
class Decision:
    """What was decided about a subject. `values`: what the roles' tasks read beside the plan."""

    work: Work = field(default_factory=Work)
    findings: Sequence[Finding] = ()
    values: dict[str, Any] = field(default_factory=dict)
    reboots: bool = False  # the subject can make a reboot necessary


Arguments = dict[str, Any]


def _preflight(host: Context, _arguments: Arguments) -> Decision:
    found = report.accept(preflight.findings(host), host.settings.gpu_preflight_accept)
    request = preflight.resolve_request(host)
    asked = request is not None and host.answer(request.want) is not None
    return Decision(Work(resolve=None if asked else request), found)


def _runtime_check(host: Context, arguments: Arguments) -> Decision:
    return Decision(Work(runtime.verify_runtime(host, str(arguments.get("before", "")))))


def _kernels(host: Context, arguments: Arguments) -> Decision:
    before, after = sorted(arguments.get("kernels", [])), kernel_packages(host.probe)
    values = {"before": ", ".join(before) or "none", "after": ", ".join(after)}
    return Decision(Work([Problem("GF782", values)] if set(after) - set(before) else []))


def _facts(host: Context, arguments: Arguments) -> Decision:
    smoke = dict(arguments.get("smoke") or {})
    failed = int(smoke.get("rc", 0)) != 0
    healthy = bool(arguments.get("healthy", True)) and not failed
    said = smoke.get("stderr") or smoke.get("stdout") or smoke.get("msg") or ""
    words = f"exit status {smoke.get('rc')}: {said}"[:500]
    files = health.facts_file(host, healthy=healthy, check_mode=bool(arguments.get("check_mode")))
    work = Work([Problem("GF785", {"what": words})] if failed else [], files)
    return Decision(work, values={"facts": health.facts(host, healthy=healthy)})


def _site(host: Context, arguments: Arguments) -> Decision:
    found, due = verify.site(host, check_mode=bool(arguments.get("check_mode")))
    return Decision(findings=found, values={"due": due})


def _verify(host: Context, _arguments: Arguments) -> Decision:
    problems, facts = verify.verify(host)
    return Decision(Work(problems), values={"facts": facts})


def _driver(host: Context, arguments: Arguments) -> Decision:
    return Decision(driver.plan_driver(host, exchange=bool(arguments.get("exchange", True))), reboots=True)


_SUBJECTS: dict[str, Callable[[Context, Arguments], Decision]] = {
    "preflight": _preflight,
    "driver": _driver,
    "fabric": lambda host, _arguments: Decision(fabric.plan_fabric(host)),
    "toolkit": lambda host, _arguments: Decision(toolkit.plan_toolkit(host)),
    "runtime_check": _runtime_check,
    "boot_order": lambda host, _arguments: Decision(Work(runtime.boot_order(host))),
    "kernels": _kernels,
    "mig": lambda host, _arguments: Decision(mig.plan_mig(host), reboots=True),
    "health": lambda host, _arguments: Decision(health.plan_health(host), reboots=True),
    "facts": _facts,
    "last_good": lambda host, _arguments: Decision(values={"last_good": health.last_good(host) or {}}),
    "site": _site,
    "verify": _verify,
}


def own_keys(wanted: Settings) -> dict[str, tuple[Key, ...]]:
    """The keys in each text that the variables hold."""
    return {text: tuple(Key(**key) for key in openpgp.keys(text.encode())) for text in wanted.key_texts}


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
        host = self._host(variables)
        decision = _SUBJECTS[subject](host, arguments)
        problems = [report.finding(problem) for problem in decision.work.problems]
        found = report.ordered([*decision.findings, *problems])
        plan = {
            **plain(decision.work),
            "findings": [report.as_dict(item) for item in found],
            "errors": report.count(found, Severity.ERROR),
            "report": report.text(found),
            "changes": describe(decision.work),
            "undo": plain(undo(host, decision.work)),
            "may_reboot": not host.in_use,
        }
        del plan["problems"]
        plan["due"] = bool(plan["changes"] or plan["resolve"] or plan.get("reboot"))
        result: dict[str, Any] = {"changed": False, "plan": {**plan, **decision.values}}
        if decision.reboots:
            reasons = health.reboot_reasons(host)
            result["ansible_facts"] = {"gpu_reboot_required": bool(reasons), "gpu_reboot_reasons": reasons}
        return result

    def _host(self, variables: dict[str, Any]) -> Context:
        """The host as the probe saw it. Raises AnsibleActionFail when it was not read, or variables are wrong."""
        facts = variables.get("ansible_facts", {})
        if "gpu_probe" not in facts:
            raise AnsibleActionFail("the host was not read; run the role gpu first")
        wanted, wrong, tables = settings.of_task(self, variables)
        wrong = wrong or settings.malformed(wanted)
        wrong += settings.unknown(variables)
        if wrong:
            raise AnsibleActionFail(_wrong(wrong))
        typed = Settings.model_validate(wanted)
        return Context(
            Reading.model_validate(facts["gpu_probe"]),
            typed,
            tables,
            Answer.model_validate(facts.get("gpu_resolved", {})),
            ansible.release.__version__,
            own_keys(typed),
        )


def _wrong(wrong: list[str]) -> str:
    return report.text(report.ordered(report.finding(Problem("GF760", {"what": what})) for what in wrong))
