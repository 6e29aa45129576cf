"""Whether the container runtime of a host resolves the CDI devices that a kubelet hands it.

A runtime that does not starts the pod without its GPU and says nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gpufleet.catalog.packages import cdi_runtimes, embedded_containerd
from gpufleet.catalog.versions import at_least
from gpufleet.hosts import containerd, paths, runtime, tomltext
from gpufleet.hosts.context import Context
from gpufleet.hosts.work import Problem


class State(NamedTuple):
    """Whether CDI devices are resolved, None where nothing says so, and what was seen."""

    on: bool | None
    seen: str


def problems(context: Context) -> list[Problem]:
    """What keeps CDI from working on this host and no role can change."""
    if not context.settings.gpu_container_toolkit_cdi:
        return []
    owner = runtime.owner_of(context)
    if owner in runtime.RANCHER_UNITS:
        state = _embedded(context, owner)
        ours = context.settings.gpu_container_toolkit_state == "present"  # else the operator's toolkit switches it on
        values = {"owner": owner, "seen": state.seen, "template": _template(context, owner)}
        return [Problem("GF792", values)] if state.on is False and ours else []
    name = "containerd" if owner == "kubespray" else owner
    row = next((row for row in cdi_runtimes(context.tables) if row.runtime == name), None)
    if row is None:
        return []
    seen = context.probe.runtime
    if row.minimum is None:
        return [Problem("GF794", {"runtime": name})]
    version = {"containerd": seen.containerd, "crio": seen.crio_version}[name]
    if version and not at_least(version, row.minimum):
        return [Problem("GF791", {"runtime": name, "version": version, "minimum": row.minimum})]
    return []


def drift(context: Context) -> list[Problem]:
    """CDI that is wanted and not in effect."""
    settings = context.settings
    if not settings.gpu_container_toolkit_cdi or settings.gpu_container_toolkit_state == "absent":
        return []
    found = effective(context)
    return [Problem("GF793", {"what": found.seen})] if found.on is False else []


def effective(context: Context) -> State:
    """The state that counts: what the running CRI says, else the runtime's effective configuration."""
    owner, seen = runtime.owner_of(context), context.probe.runtime
    if owner not in ("containerd", "kubespray", *runtime.RANCHER_UNITS):
        return State(None, "")
    listed = re.search(r'"enableCDI":\s*(true|false)', seen.cri_runtimes or "")
    configured = _embedded(context, owner) if owner in runtime.RANCHER_UNITS else _dumped(seen.containerd_dump)
    if listed and listed[1] == "false" and configured.on:
        return State(False, f"crictl info: enableCDI is false, although {configured.seen}: restart {owner}")
    return State(False, "crictl info: enableCDI is false") if listed and listed[1] == "false" else configured


def _dumped(dump: str | None) -> State:
    document, why = tomltext.parse(dump or "")
    if dump is None or why:
        return State(None, "")
    found = containerd.resolves_cdi(document)
    said = "no enable_cdi" if found is None else f"enable_cdi = {str(found).lower()}"
    where = containerd.plugin(containerd.file_version(document))
    return State(bool(found), f"containerd config dump: {said} in plugins.{where}")


def _embedded(context: Context, owner: str) -> State:
    """k3s and RKE2 write their file without enable_cdi, unless a template names it."""
    path = paths.RANCHER_CONTAINERD[owner]
    text = context.file_text(path)
    document, why = tomltext.parse(text or "")
    if text is None or why:
        return State(None, "")
    found = containerd.resolves_cdi(document)
    if found is not None:
        return State(found, f"{path}: enable_cdi = {str(found).lower()}")
    version = context.probe.runtime.embedded_containerd
    since = next((row.on_since for row in cdi_runtimes(context.tables) if row.runtime == "containerd"), None)
    if version and since:
        return State(at_least(version, since), f"containerd {version}, no enable_cdi in {path}")
    # A file of version 3 is for containerd 2 alone; one of version 2 may be for either.
    return State(True if containerd.file_version(document) >= 3 else None, f"{path} is of version 3")


def _template(context: Context, owner: str) -> str:
    return next(row.template for row in embedded_containerd(context.tables) if row.owner == owner)
