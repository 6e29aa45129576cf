"""DaemonSets of the plugin, of feature discovery and of HAMi: how the configuration reaches them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpufleet.catalog import component
from gpufleet.device_plugin.options import options
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.config import Checked
from gpufleet.lint.document import Document, Kind, entries, get, pairs, text_at
from gpufleet.lint.gather import Gathered, plugin_enabled
from gpufleet.lint.pods import (
    Container,
    Mount,
    config_file,
    config_mounts,
    containers,
    is_image,
    other_mounts,
    pod_path,
    pod_spec,
    program,
    template_annotations,
    told_virtual_gpus,
)
from gpufleet.lint.selection import by_operator, check_mounted_map

_NAME, _COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
#: Where objects that select pods say so.
_SELECTOR_PATHS = {
    "Service": ("spec", "selector"),
    "PodDisruptionBudget": ("spec", "selector"),
    "PodMonitor": ("spec", "selector"),
    "NetworkPolicy": ("spec", "podSelector"),
}
_CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
_HASHED = re.compile(r"-(?=[0-9a-z]*[0-9])[0-9a-z]{6,}$")
_SHELLS = ("sh", "bash", "ash", "dash")
#: What every program built with the plugin's option parser takes.
_HELP = ("help", "h", "version", "v")


def check_daemon_set(document: Document, run: Gathered, checked: list[Checked]) -> Iterator[Finding]:
    """One DaemonSet, or any other object that runs the plugin."""
    running = {program(c): c for c in containers(document) if program(c)}
    plugin = running.get("plugin")
    if plugin is not None:
        yield from _configuration(document, plugin, run)
        yield from _version(document, plugin)
        yield from _options(document, plugin)
        yield from _mps(document, plugin, run, checked)
    if "discovery" in running:
        yield from _discovery(document, running["discovery"], checked)
    if (plugin is not None or "discovery" in running) and document.kind is Kind.DAEMON_SET:
        yield from _old_sample(document)
    if any(is_image(c.image, "exporter") for c in containers(document)):
        yield from _exporter(document, checked)


def _configuration(document: Document, plugin: Container, run: Gathered) -> Iterator[Finding]:
    yield from _from_env(document, plugin, run)
    mounts = [m for m in config_mounts(document, plugin) if _may_hold_config(m, run)]
    chosen = config_file(plugin)
    for mount in mounts:
        where = _volume_path(document, mount)
        yield from check_mounted_map(document, mount.config_map, mount.volume, where, run)
        if mount.sub_path:
            yield document.found("GF543", (*mount.path, "subPath"), get(mount.item, "subPath"), value=mount.sub_path)
            yield from _sub_path(document, mount, run)
        yield from _rolls(document, mount)
    if chosen is None:
        if mounts:
            expected = _expected(mounts[0], run)
            yield document.found(
                "GF541", (*plugin.path, "env"), get(plugin.item, "env") or plugin.item, expected=expected
            )
        return
    file, item, path = chosen
    inside = next((m for m in mounts if file == m.mount_path or file.startswith(m.mount_path + "/")), None)
    if inside is not None:
        yield from _key(document, inside, file, item, path, run)
    elif not any(file == p or file.startswith(p + "/") for p in other_mounts(plugin) if p):
        allowed = [_expected(m, run) for m in mounts]
        yield document.found("GF542", path, item, value=file, allowed=allowed)


def _from_env(document: Document, plugin: Container, run: Gathered) -> Iterator[Finding]:
    """NV-11: a configuration given as environment variables."""
    for i, source in enumerate(entries(plugin.item, "envFrom")):
        name = text_at(source, "configMapRef", "name")
        known = run.named(name)
        if name and (known is None or known.configs):
            yield document.found("GF540", (*plugin.path, "envFrom", i), source, value=name)
    for i, entry in enumerate(entries(plugin.item, "env")):
        name, key = (text_at(entry, "valueFrom", "configMapKeyRef", k) for k in ("name", "key"))
        if any(key in k.configs for k in run.by_name.get(name, ())):
            yield document.found("GF540", (*plugin.path, "env", i), entry, value=name)


def _may_hold_config(mount: Mount, run: Gathered) -> bool:
    known = run.by_name.get(mount.config_map, ())
    return not known or any(k.configs for k in known)


def _sub_path(document: Document, mount: Mount, run: Gathered) -> Iterator[Finding]:
    """subPath names a key; for a name that is none the kubelet mounts an empty directory."""
    keys = _keys(mount, run)
    if keys is not None and mount.sub_path not in keys:
        why = "The kubelet mounts an empty directory in its place."
        path, item = (*mount.path, "subPath"), get(mount.item, "subPath")
        names: dict[str, Any] = {"value": mount.sub_path, "name": mount.config_map, "allowed": list(keys)}
        yield document.found("GF532", path, item, because=why, **names)


def _volume_path(document: Document, mount: Mount) -> tuple[str | int, ...]:
    path = pod_path(document) or ()
    volumes = entries(document.root, *path, "volumes")
    return (*path, "volumes", volumes.index(mount.volume), "configMap", "name")


def _keys(mount: Mount, run: Gathered) -> dict[str, str] | None:
    """File name -> key below a mount; None where the ConfigMap is not known."""
    if mount.items:
        return mount.items
    known = run.named(mount.config_map)
    return {key: key for key in known.keys} if known is not None else None


def _expected(mount: Mount, run: Gathered) -> str:
    if mount.sub_path:
        return mount.mount_path
    keys = _keys(mount, run)
    name = next(iter(keys)) if keys and len(keys) == 1 else "<key>"
    return f"{mount.mount_path}/{name}"


def _key(
    document: Document, mount: Mount, file: str, item: Item, path: tuple[str | int, ...], run: Gathered
) -> Iterator[Finding]:
    """The file below the mount is a key of the ConfigMap."""
    keys = _keys(mount, run)
    wanted = mount.sub_path or file.removeprefix(mount.mount_path).lstrip("/")
    if not mount.sub_path and not wanted:
        why = "CONFIG_FILE names the directory of the mount, not a file in it; the plugin exits."
        allowed = [f"{mount.mount_path}/{k}" for k in keys or ()]
        yield document.found("GF542", path, item, value=file, because=why, allowed=allowed)
        return
    if keys is not None and wanted not in keys and not mount.sub_path:
        why = "The plugin exits when the file that CONFIG_FILE names does not exist."
        yield document.found("GF532", path, item, value=wanted, name=mount.config_map, because=why, allowed=list(keys))
    known = run.named(mount.config_map)
    for key in mount.items.values():
        if known is not None and key not in known.keys:
            why = "The pod stays in ContainerCreating."
            where = _volume_path(document, mount)[:-1]
            yield document.found(
                "GF532",
                (*where, "items"),
                mount.volume,
                value=key,
                name=mount.config_map,
                because=why,
                allowed=list(known.keys),
            )


def _rolls(document: Document, mount: Mount) -> Iterator[Finding]:
    """NV-12: an edited ConfigMap reaches the plugin only when its pod restarts."""
    hashed = any("checksum" in key or "hash" in key for key in template_annotations(document))
    if not hashed and not _HASHED.search(mount.config_map):
        yield document.found("GF547", _volume_path(document, mount), mount.volume, value=mount.config_map)


def _version(document: Document, plugin: Container) -> Iterator[Finding]:
    known = component("k8s-device-plugin").version
    tag = plugin.image.rpartition("/")[2].partition(":")[2].partition("@")[0]
    match = re.match(r"v?(\d+\.\d+\.\d+)", tag)
    if match is not None and match[1] != known.removeprefix("v"):
        yield document.found("GF563", (*plugin.path, "image"), get(plugin.item, "image"), value=tag, known=known)


def _options(document: Document, plugin: Container) -> Iterator[Finding]:
    """Options that the plugin does not have. A shell's command line is left alone: other programs may stand in it."""
    command = entries(plugin.item, "command")
    first = command[0].value if command else ""
    if isinstance(first, str) and first.rpartition("/")[2] in _SHELLS:
        return
    known = [flag for option in options() for flag in option.flags]
    for part in ("command", "args"):
        for i, item in enumerate(entries(plugin.item, part)):
            word = item.value if isinstance(item.value, str) else ""
            name = word.lstrip("-").partition("=")[0]
            if word.startswith("-") and name and name not in (*known, *_HELP):
                near = closest_match(name, known)
                yield document.found(
                    "GF567",
                    (*plugin.path, part, i),
                    item,
                    value=word,
                    closest=near and f"--{near}",
                    allowed=() if near else [f"--{flag}" for flag in known],
                )


def _mps(document: Document, plugin: Container, run: Gathered, checked: list[Checked]) -> Iterator[Finding]:
    """NV-07: sharing.mps with a manifest that brings no control daemon."""
    maps = {m.config_map for m in config_mounts(document, plugin)}
    if not maps or "mps" in run.programs:
        return
    if any(c.config.document.name in maps and c.prediction.strategy == "mps" for c in checked):
        yield document.found("GF544", plugin.path, plugin.item)


def _discovery(document: Document, container: Container, checked: list[Checked]) -> Iterator[Finding]:
    """NV-13: feature discovery without the plugin's configuration."""
    shared = any(c.prediction.strategy in ("time-slicing", "mps") for c in checked)
    if shared and config_file(container) is None:
        yield document.found("GF546", container.path, container.item)


def _old_sample(document: Document) -> Iterator[Finding]:
    """NV-50: what samples of former years still carry."""
    path = pod_path(document) or ()
    note = template_annotations(document).get(_CRITICAL)
    if note is not None:
        yield document.found("GF560", (*path[:-1], "metadata", "annotations", _CRITICAL), note)
    spec = pod_spec(document)
    if not text_at(spec, "priorityClassName"):
        yield document.found("GF561", (*path, "priorityClassName"), spec)
    if not pairs(spec, "nodeSelector") and get(spec, "affinity", "nodeAffinity") is None:
        yield document.found("GF562", (*path, "nodeSelector"), spec)


def _exporter(document: Document, checked: list[Checked]) -> Iterator[Finding]:
    shared = any(c.prediction.strategy in ("time-slicing", "mps") for c in checked)
    for container in containers(document):
        told = told_virtual_gpus(entries(container.item, "env"), container.shell_words)
        if is_image(container.image, "exporter") and shared and not told:
            yield document.found("GF556", (*container.path, "env"), container.item)


def check_registrars(run: Gathered) -> Iterator[Finding]:
    """NV-19, NV-20, NV-21, NV-40, NV-43: installations that get into each other's way."""
    sets = [d for d in run.of(Kind.DAEMON_SET) if any(program(c) == "plugin" for c in containers(d))]
    hami = [d for d in run.of(Kind.DAEMON_SET) if any(is_image(c.image, "hami") for c in containers(d))]
    operators = [d for d in run.of(Kind.OPERATOR_VALUES) if plugin_enabled(d.root)]
    operators += [d for d in run.of(Kind.CLUSTER_POLICY) if plugin_enabled(get(d.root, "spec"))]
    charts = [d for d in run.of(Kind.CHART_VALUES) if plugin_enabled(d.root)]
    others = [*(d for d in sets if not by_operator(d)), *charts]
    for document in others:
        for other in operators[:1]:
            yield document.found("GF545", (), document.root, value=_title(document), other=_title(other))
    first: dict[str, Document] = {}
    for document in sets:
        other = first.setdefault(repr(_nodes(document)), document)
        if other is not document:
            yield document.found("GF545", ("metadata", "name"), value=_title(document), other=_title(other))
    for document in hami:
        if operators or sets or charts:
            yield document.found("GF555", ("metadata", "name"))
    managers = [d for d in run.of(Kind.OPERATOR_VALUES) if not plugin_enabled(d.root) and _mig_manager(d)]
    for document in others if managers else ():
        nodes = pod_spec(document) if document.kind is Kind.DAEMON_SET else document.root
        if "nvidia.com/gpu.deploy.device-plugin" not in pairs(nodes, "nodeSelector"):
            yield document.found("GF558", ("nodeSelector",), nodes)
    yield from _selectors(run)


def _title(document: Document) -> str:
    return f"{document.kind.value} {document.name}".strip() + f" ({document.file})"


def _nodes(document: Document) -> tuple[object, object]:
    spec = pod_spec(document)
    selector = {k: v.value for k, v in pairs(spec, "nodeSelector").items()}
    affinity = get(spec, "affinity", "nodeAffinity")
    return sorted(selector.items(), key=str), _frozen(affinity)


def _frozen(item: Item | None) -> object:
    if item is None:
        return None
    if isinstance(item.value, dict):
        return {k: _frozen(v) for k, v in item.value.items()}
    return [_frozen(v) for v in item.value] if isinstance(item.value, list) else item.value


def _mig_manager(document: Document) -> bool:
    enabled = get(document.root, "migManager", "enabled")
    return enabled is None or enabled.value is not False


def _selectors(run: Gathered) -> Iterator[Finding]:
    path = ("spec", "selector", "matchLabels")
    first: dict[str, Document] = {}
    for document in run.of(Kind.DAEMON_SET):
        labels = _frozen(get(document.root, *path))
        if labels:
            other = first.setdefault(repr((document.namespace or "default", labels)), document)
            if other.name != document.name:
                yield document.found("GF564", path, value=document.name, other=other.name)
    for document in run.of(Kind.SELECTOR):
        where = _SELECTOR_PATHS[document.api_kind]
        asked = _asked_labels(get(document.root, *where), plain=document.api_kind == "Service")
        if asked.get(_NAME) == ["nvidia-device-plugin"] and _COMPONENT not in asked:
            yield document.found("GF565", where, kind=document.api_kind)


def _asked_labels(selector: Item | None, *, plain: bool) -> dict[str, list[object]]:
    """Label -> values that a selector lets through; a Service's selector is a plain map."""
    labels = pairs(selector) if plain else pairs(selector, "matchLabels")
    found: dict[str, list[object]] = {key: [item.value] for key, item in labels.items()}
    for term in () if plain else entries(selector, "matchExpressions"):
        if text_at(term, "operator") == "In":
            found[text_at(term, "key")] = [v.value for v in entries(term, "values")]
    return found
