"""Drift: everything that another run of the roles would change, and everything that is wrong with the GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gpufleet.findings.finding import Finding, Severity
from gpufleet.hosts import (
    cdi,
    containerd,
    driver,
    fabric,
    health,
    mig,
    paths,
    preflight,
    runtime,
    sources,
    tomltext,
    toolkit,
)
from gpufleet.hosts.context import Context
from gpufleet.hosts.report import accept, count
from gpufleet.hosts.work import Problem, UnitChange, WantedPackage, Work, describe


def plans_of(context: Context) -> dict[str, Work]:
    """Role -> its plan."""
    return {
        "gpu_driver": driver.plan_driver(context), "gpu_fabric": fabric.plan_fabric(context),
        "gpu_container_toolkit": toolkit.plan_toolkit(context), "gpu_mig": mig.plan_mig(context),
        "gpu_health": health.plan_health(context),
    }  # fmt: skip


def verify(context: Context) -> tuple[list[Problem], dict[str, Any]]:
    """(problems of a host that was converged, none when it is as wanted; the facts that say so)."""
    problems = health.health(context)
    for role, plan in plans_of(context).items():
        problems += [p for p in plan.problems if role != "gpu_health"]
        if plan.resolve:
            problems.append(Problem("GF779", {"role": role, "what": _missing(context, plan.resolve.want)}))
        words = [w for w in describe(plan) if not w.startswith(("hold ", "unit "))]
        problems += [Problem("GF779", {"role": role, "what": word}) for word in words]
        if plan.hold:
            problems.append(Problem("GF784", {"packages": ", ".join(plan.hold)}))
        problems += [Problem("GF774", _unit(context, unit)) for unit in plan.units]
    if context.settings.gpu_health_write_facts and context.file_text(paths.FACTS) is None:
        problems.append(Problem("GF779", {"role": "gpu_health", "what": f"{paths.FACTS} is missing"}))
    problems += _runtime(context) + cdi.drift(context) + _mig(context) + _sources(context) + runtime.boot_order(context)
    reasons = health.reboot_reasons(context)
    if reasons:
        problems.append(Problem("GF778", {"reasons": "; ".join(reasons)}))
    return problems, health.facts(context, healthy=not problems)


def site(context: Context, *, check_mode: bool) -> tuple[list[Finding], bool]:
    """(what preflight says, whether any role has anything to do or to report)."""
    settings = context.settings
    found = accept(preflight.findings(context), settings.gpu_preflight_accept)
    due = any(plan.due for plan in plans_of(context).values())
    facts = settings.gpu_health_write_facts and health.facts_file(context, healthy=True, check_mode=check_mode)
    asks = facts or settings.gpu_health_smoke_test or preflight.resolve_request(context)
    return found, due or count(found, Severity.ERROR) > 0 or bool(asks)


def _missing(context: Context, want: Sequence[WantedPackage]) -> str:
    """What a question to the repositories is about: packages that are not there as wanted, or a file of theirs."""
    names = [
        item.words for item in want if not item.optional and not context.installed(item.name, item.version)
    ]  # fmt: skip
    if names:
        return f"packages are not installed as wanted: {', '.join(names)}"
    return "a package that the named ones need is gone: there is no libnvidia-ml.so.1"


def _unit(context: Context, unit: UnitChange) -> dict[str, Any]:
    found = context.probe.units.get(unit.name)
    state = f"{found.active}, {found.enabled or found.load}" if found else "not installed"
    return {"unit": unit.name, "state": state}


def _runtime(context: Context) -> list[Problem]:
    """The handler that pods ask for is known to the runtime."""
    settings, problems = context.settings, list[Problem]()
    if settings.gpu_container_toolkit_state == "absent":
        return []
    state = runtime.runtime_state(context)
    if state.owner in ("", "none"):
        return []
    name = settings.gpu_container_toolkit_runtime_name
    if state.handler is None:
        problems.append(Problem("GF783", {"what": f"{state.owner} has no runtime {name}"}))
    elif settings.gpu_container_toolkit_default_runtime and not state.default:
        problems.append(Problem("GF783", {"what": f"{name} is not the default runtime of {state.owner}"}))
    listed = context.probe.runtime.cri_runtimes  # of containerd's CRI; CRI-O lists none
    if listed and state.owner != "crio" and not re.search(rf'"{re.escape(name)}"', listed):
        problems.append(Problem("GF783", {"what": f"the CRI does not list {name}: restart {state.owner}"}))
    dump = context.probe.runtime.containerd_dump
    if state.owner == "containerd" and dump and name not in containerd.runtimes(tomltext.parse(dump)[0]):
        problems.append(Problem("GF783", {"what": f"the effective configuration of containerd has no runtime {name}"}))
    return problems


def _mig(context: Context) -> list[Problem]:
    settings, problems = context.settings, list[Problem]()
    name = str(settings.gpu_mig_layout)
    if not name or not context.probe.driver:
        return []
    if not context.probe.mig.matches:
        modes = ", ".join(str(mode) for mode in mig.observed(context)["modes"])
        problems.append(Problem("GF777", {"wanted": name, "found": f"modes {modes or 'unknown'}, layout not applied"}))
    unit = context.probe.units.get(mig.UNIT)
    if unit and unit.start_limit == "infinity":
        problems.append(Problem("GF788", {"unit": mig.UNIT, "limit": "none"}))
    return problems


def _sources(context: Context) -> list[Problem]:
    found = sources.outside_hosts(context.settings, context.probe, [])
    return [Problem("GF741", {"file": file, "host": host, "severity": Severity.ERROR}) for file, host in found]
