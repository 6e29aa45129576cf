"""Drift: everything that another run of the roles would change, and everything that is wrong with the GPUs."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.gpufleet.hosts.plugins.module_utils import paths

from . import containerd, driver, fabric, health, mig, preflight, runtimes, sources, tomltext, toolkit
from .context import Context, describe
from .report import accept

Problem = tuple[str, dict[str, Any]]


def verify(context: Context) -> dict[str, Any]:
    """Problems of a host that was converged; none when it is as wanted."""
    problems: list[Problem] = []
    plans = {
        "gpu_driver": driver.plan_driver(context), "gpu_fabric": fabric.plan_fabric(context, context.target),
        "gpu_container_toolkit": toolkit.plan_toolkit(context), "gpu_mig": mig.plan_mig(context),
        "gpu_health": health.plan_health(context),
    }  # fmt: skip
    problems += health.health(context)
    for role, plan in plans.items():
        problems += [p for p in plan["problems"] if role != "gpu_health"]
        if plan.get("resolve"):
            problems.append(("GF779", {"role": role, "what": _missing(context, plan["resolve"]["want"])}))
        words = [w for w in describe(plan) if not w.startswith(("hold ", "unit "))]
        problems += [("GF779", {"role": role, "what": word}) for word in words]
        if plan.get("hold"):
            problems.append(("GF784", {"packages": ", ".join(plan["hold"])}))
        problems += [("GF774", _unit(context, unit)) for unit in plan.get("units", [])]
    if context.settings["gpu_health_write_facts"] and context.file_text(paths.FACTS) is None:
        problems.append(("GF779", {"role": "gpu_health", "what": f"{paths.FACTS} is missing"}))
    problems += _runtime(context) + _mig(context) + _sources(context) + runtimes.boot_order(context)
    reasons = health.reboot_reasons(context)
    if reasons:
        problems.append(("GF778", {"reasons": "; ".join(reasons)}))
    return {"problems": problems, "facts": health.facts(context, healthy=not problems)}


def site(context: Context, *, check_mode: bool) -> dict[str, Any]:
    """What preflight says, and whether any role has anything to do or to report: `due`."""
    settings = context.settings
    found = accept(preflight.findings(context), settings["gpu_preflight_accept"])
    plans = [
        driver.plan_driver(context), fabric.plan_fabric(context, context.target), toolkit.plan_toolkit(context),
        mig.plan_mig(context), health.plan_health(context),
    ]  # fmt: skip
    due = any(
        describe(plan) or plan["problems"] or plan.get("resolve") or plan.get("reboot") or plan.get("apply")
        or plan.get("hints") or plan.get("waiting") or plan.get("runfile")
        for plan in plans
    )  # fmt: skip
    facts = settings["gpu_health_write_facts"] and health.facts_file(context, healthy=True, check_mode=check_mode)
    errors = any(item["severity"] == "error" for item in found)
    smoke = bool(settings["gpu_health_smoke_test"])
    return {"findings": found, "due": bool(due or facts or errors or smoke or preflight.resolve_request(context))}


def _missing(context: Context, want: list[dict[str, Any]]) -> str:
    """What a question to the repositories is about: packages that are not there as wanted, or a file of theirs."""
    names = [
        f"{item['name']} {item['version'] or ''}".rstrip() for item in want
        if not item.get("optional") and not driver.installed(context, item)
    ]  # fmt: skip
    if names:
        return f"packages are not installed as wanted: {', '.join(names)}"
    return "a package that the named ones need is gone: there is no libnvidia-ml.so.1"


def _unit(context: Context, unit: dict[str, Any]) -> dict[str, Any]:
    found = context.probe["units"].get(unit["name"])
    state = f"{found['active']}, {found['enabled'] or found['load']}" if found else "not installed"
    return {"unit": unit["name"], "state": state}


def _runtime(context: Context) -> list[Problem]:
    """The handler that pods ask for is known to the runtime."""
    settings, problems = context.settings, list[Problem]()
    if settings["gpu_container_toolkit_state"] == "absent":
        return []
    state = runtimes.runtime_state(context)
    if state["owner"] in ("", "none"):
        return []
    name = settings["gpu_container_toolkit_runtime_name"]
    if state["handler"] is None:
        problems.append(("GF783", {"what": f"{state['owner']} has no runtime {name}"}))
    elif settings["gpu_container_toolkit_default_runtime"] and not state["default"]:
        problems.append(("GF783", {"what": f"{name} is not the default runtime of {state['owner']}"}))
    listed = context.probe["runtime"]["cri_runtimes"]  # of containerd's CRI; CRI-O lists none
    if listed and state["owner"] != "crio" and not re.search(rf'"{re.escape(name)}"', listed):
        problems.append(("GF783", {"what": f"the CRI does not list {name}: restart {state['owner']}"}))
    dump = context.probe["runtime"]["containerd_dump"]
    if state["owner"] == "containerd" and dump and name not in containerd.runtimes(tomltext.parse(dump)[0]):
        problems.append(("GF783", {"what": f"the effective configuration of containerd has no runtime {name}"}))
    return problems


def _mig(context: Context) -> list[Problem]:
    settings, problems = context.settings, list[Problem]()
    name = str(settings["gpu_mig_layout"])
    if not name or not context.probe["driver"]:
        return []
    if not context.probe["mig"].get("matches"):
        modes = ", ".join(str(mode) for mode in mig.observed(context)["modes"])
        problems.append(("GF777", {"wanted": name, "found": f"modes {modes or 'unknown'}, layout not applied"}))
    unit = context.probe["units"].get(mig.UNIT)
    if unit and unit["start_limit"] == "infinity":
        problems.append(("GF788", {"unit": mig.UNIT, "limit": "none"}))
    return problems


def _sources(context: Context) -> list[Problem]:
    found = sources.outside_hosts(context.settings, context.probe, [])
    return [("GF741", {"file": file, "host": host, "severity": "error"}) for file, host in found]
