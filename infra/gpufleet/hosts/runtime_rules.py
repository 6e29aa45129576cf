"""What preflight says about the container runtime and the toolkit."""

from __future__ import annotations

from gpufleet.catalog.packages import toolkit_minimums
from gpufleet.catalog.versions import at_least, fields
from gpufleet.hosts import cdi, containerd, paths, tomltext, toolkit
from gpufleet.hosts.context import Context
from gpufleet.hosts.runtime import owner_of
from gpufleet.hosts.work import Problem


def rules(context: Context) -> list[Problem]:
    """All problems with the runtime and the toolkit."""
    found = _containerd(context) + _specifications(context) + cdi.problems(context)
    if context.settings.gpu_container_toolkit_state == "absent":
        return found
    return _runtime(context) + _toolkit_version(context) + found


def _runtime(context: Context) -> list[Problem]:
    codes = ("GF744", "GF745", "GF747", "GF750", "GF795")
    return [p for p in toolkit.plan_toolkit(context).problems if p.code in codes]


def _toolkit_version(context: Context) -> list[Problem]:
    """Lowest toolkit for what the host runs."""
    if owner_of(context) != "containerd":
        return []
    root, _why = tomltext.parse(context.file_text(paths.CONTAINERD_CONFIG) or "")
    conditions = {
        "containerd-config-3": containerd.file_version(root) >= 3,
        "containerd-2": at_least(context.probe.runtime.containerd or "0", "2.0.0"),
    }
    version = toolkit.version_of(context)
    low = [
        row for row in toolkit_minimums(context.tables)
        if conditions.get(row.when) and not at_least(version, row.minimum)
    ]  # fmt: skip
    if not low:
        return []
    row = max(low, key=lambda r: fields(r.minimum))
    return [Problem("GF746", {"version": version, "minimum": row.minimum, "reason": row.reason})]


def _containerd(context: Context) -> list[Problem]:
    """Drop-ins that containerd does not read, or that stop it."""
    text = context.file_text(paths.CONTAINERD_CONFIG)
    if text is None:
        return []
    root, why = tomltext.parse(text)
    if why:
        return []
    problems: list[Problem] = []
    for path, record in sorted(context.probe.runtime.drop_ins.items()):
        document, _why = tomltext.parse(record.text or "")
        mine = containerd.file_version(document)
        if not containerd.imports_cover(root, path):
            imports = ", ".join(root.get("imports") or []) or "none"
            problems.append(Problem("GF748", {"file": path, "imports": imports}))
        elif mine > containerd.file_version(root):
            problems.append(Problem("GF749", {"file": path, "drop_in": mine, "root": containerd.file_version(root)}))
    return problems


def _specifications(context: Context) -> list[Problem]:
    specs = context.probe.runtime.cdi_specs
    fixed = sorted(path for path in specs if path.startswith("/etc/cdi/"))
    generated = [path for path in specs if path.startswith(("/var/run/cdi/", "/run/cdi/"))]
    return [Problem("GF751", {"files": ", ".join(fixed + generated)})] if fixed and generated else []
