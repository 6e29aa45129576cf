"""containerd's configuration: what it is in effect, and the smallest change that adds the NVIDIA runtime."""

from __future__ import annotations

import fnmatch
import re
from pathlib import PurePosixPath
from typing import Any

from gpufleet.catalog.versions import at_least
from gpufleet.hosts import paths, tomltext

BINARY = "/usr/bin/nvidia-container-runtime"
# Plugin that holds the runtimes, by version of the file.
_PLUGIN = {1: "cri", 2: "io.containerd.grpc.v1.cri"}
_PLUGIN_V3 = "io.containerd.cri.v1.runtime"
# From here on imported files are merged key by key; before, an imported plugin section replaces the whole section.
MERGES_SINCE = "2.1.0"
_CDI = "enable_cdi"
# Keys that are set outside our block, which notes what they were: key -> the table in the plugin's.
_NOTED = {"default_runtime_name": ("containerd",), _CDI: ()}
_UNSET = "unset"


def file_version(document: dict[str, Any]) -> int:
    """Version of a configuration file; one without the key is version 1."""
    return int(document.get("version", 1))


def plugin(version: int) -> str:
    """Key of the plugin that holds the runtimes."""
    return _PLUGIN.get(version, _PLUGIN_V3)


def ignores(text: str, containerd: str) -> bool:
    """Whether containerd reads the file but not its CRI settings: 2.x does so with a file of version 1."""
    document, why = tomltext.parse(text)
    return bool(document.get("plugins")) and not why and file_version(document) < 2 and at_least(containerd, "2.0.0")


def runtimes(document: dict[str, Any]) -> dict[str, Any]:
    """The runtimes of a configuration, whatever its version."""
    return dict(_section(document).get("containerd", {}).get("runtimes", {}) or {})


def default_runtime(document: dict[str, Any]) -> str:
    """Name of the default runtime, runc when none is set."""
    return str(_section(document).get("containerd", {}).get("default_runtime_name") or "runc")


def imports_cover(document: dict[str, Any], path: str) -> bool:
    """Whether an imports pattern of the root file matches the path. Relative patterns count from the file's folder."""
    for pattern in document.get("imports", []) or []:
        full = pattern if pattern.startswith("/") else str(PurePosixPath(paths.CONTAINERD_CONFIG).parent / pattern)
        if fnmatch.fnmatch(path, full):
            return True
    return False


def runtime_tables(version: int, name: str, effective: dict[str, Any]) -> str:
    """The tables of the NVIDIA runtime, with the options of the default runtime (cgroup driver) carried over."""
    base = runtimes(effective).get(default_runtime(effective)) or runtimes(effective).get("runc") or {}
    if (base.get("options") or {}).get("BinaryName") == BINARY:  # the default is ours already
        base = runtimes(effective).get("runc") or {}
    options = {k: v for k, v in (base.get("options") or {}).items() if v and not isinstance(v, (dict, list))}
    options["BinaryName"] = BINARY
    head = f'plugins."{plugin(version)}".containerd.runtimes.{name}'
    lines = [f"[{head}]", 'runtime_type = "io.containerd.runc.v2"', f"[{head}.options]"]
    lines += [f"{key} = {tomltext.value_text(options[key])}" for key in sorted(options)]
    return "\n".join(lines) + "\n"


def kept_tables(version: int, root: dict[str, Any], effective: dict[str, Any]) -> str:
    """Tables of runtimes that are in effect by containerd's own defaults, not by the root file.

    A file that names any runtime replaces the defaults, so the others have to be written out with it.
    """
    lines = []
    named = runtimes(root)
    for name, entry in sorted(runtimes(effective).items()):
        if name in named or named:
            continue
        head = f'plugins."{plugin(version)}".containerd.runtimes.{name}'
        lines.append(f"[{head}]")
        lines += [f"{k} = {tomltext.value_text(v)}" for k, v in sorted(entry.items()) if _scalar(v)]
        options = {k: v for k, v in (entry.get("options") or {}).items() if _scalar(v)}
        if options:
            lines.append(f"[{head}.options]")
            lines += [f"{k} = {tomltext.value_text(options[k])}" for k in sorted(options)]
    return "\n".join(lines) + "\n" if lines else ""


def _scalar(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float))


def resolves_cdi(document: dict[str, Any]) -> bool | None:
    """Whether an effective configuration resolves CDI devices; None when it does not say, as before containerd 1.7."""
    found = _section(document).get(_CDI)
    return found if isinstance(found, bool) else None


def edit(
    text: str, drop_in: str | None, dump: str, containerd: str, *, name: str, default: bool, cdi: bool = False
) -> tuple[dict[str, str | None], str]:
    """({path: new text or None to remove}, why it cannot be done).

    text: root file, or what it is to be seeded with. drop_in: our drop-in as it is. dump: effective configuration.
    Nothing is written when the effective configuration is as wanted by somebody else's hand. CDI that was switched on
    here stays on: no container is worse off with it, and pods that use it lose their GPUs without it.
    """
    root, why = tomltext.parse(text)
    if why:
        return {}, f"{paths.CONTAINERD_CONFIG}: {why}"
    effective, why = tomltext.parse(dump)
    if why:
        return {}, f"containerd config dump: {why}"
    if "cri" in root.get("disabled_plugins", []) or "io.containerd.grpc.v1.cri" in root.get("disabled_plugins", []):
        return {}, f"{paths.CONTAINERD_CONFIG}: the CRI plugin is disabled, so no runtime can be added for Kubernetes"
    block, plain = tomltext.block_of(text), tomltext.strip_block(text)
    own = (block or "") + (drop_in or "")
    if not own and satisfied(effective, name, default, cdi):
        return {}, ""
    version = file_version(root)
    cdi = cdi or _CDI in own
    foreign = satisfied(effective, name, default) and f".containerd.runtimes.{name}]" not in own
    tables = "" if foreign else runtime_tables(version, name, effective)
    default = default and not foreign
    body, before = _undo(plain, block), ""
    if at_least(containerd, MERGES_SINCE) and imports_cover(root, paths.CONTAINERD_DROP_IN):
        text = f"version = {version}\n"
        if cdi:
            text += _cdi_table(version)
        if default:
            text += f'[plugins."{plugin(version)}".containerd]\ndefault_runtime_name = "{name}"\n'
        return {paths.CONTAINERD_CONFIG: body, paths.CONTAINERD_DROP_IN: text + tables}, ""
    if default:
        before += _note("default_runtime_name", default_runtime(tomltext.parse(body)[0]) if body else "runc")
        body = tomltext.set_key(body, ["plugins", plugin(version), "containerd"], "default_runtime_name", name)
    if cdi and tomltext.has_table(body, ["plugins", plugin(version)]):
        before += _note(_CDI, tomltext.value_text(_section(tomltext.parse(body)[0]).get(_CDI, _UNSET)).strip('"'))
        body = tomltext.set_key(body, ["plugins", plugin(version)], _CDI, True, comments=False)
    elif cdi:
        tables = _cdi_table(version) + tables
    kept = "" if foreign else kept_tables(version, tomltext.parse(body)[0], _without(effective, name))
    new = tomltext.with_block(body, before + kept + tables)
    document, why = tomltext.parse(new)
    if why or not (foreign or name in runtimes(document)):
        return {}, f"{paths.CONTAINERD_CONFIG}: adding the runtime gives an invalid file: {why or 'no such runtime'}"
    return {paths.CONTAINERD_CONFIG: new, paths.CONTAINERD_DROP_IN: None}, ""


def _note(key: str, before: str) -> str:
    return f"# {key} was {before}\n"


def _cdi_table(version: int) -> str:
    return f'[plugins."{plugin(version)}"]\n{_CDI} = true\n'


def _section(document: dict[str, Any]) -> dict[str, Any]:
    """The table of the plugin that holds the runtimes."""
    found = document.get("plugins", {}).get(plugin(file_version(document)), {})
    return found if isinstance(found, dict) else {}


def _without(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A configuration as far as its runtimes go, one runtime left out."""
    version = file_version(document)
    rest = {k: v for k, v in runtimes(document).items() if k != name}
    return {"version": version, "plugins": {plugin(version): {"containerd": {"runtimes": rest}}}}


def remove(text: str) -> str:
    """The root file without our block, what it noted put back."""
    return _undo(tomltext.strip_block(text), tomltext.block_of(text))


def _undo(plain: str, block: str | None) -> str:
    """The root file with every key that our block notes as it was before."""
    document, _why = tomltext.parse(plain)
    for line in (block or "").splitlines():
        match = re.fullmatch(r"# (\w+) was (\S+)", line)
        if not match or match[1] not in _NOTED:
            break
        key, before = match.groups()
        table = ["plugins", plugin(file_version(document)), *_NOTED[key]]
        if before == _UNSET:
            plain = tomltext.remove_key(plain, table, key)
        else:
            value: Any = before == "true" if key == _CDI else before
            plain = tomltext.set_key(plain, table, key, value)
    return plain


def satisfied(effective: dict[str, Any], name: str, default: bool, cdi: bool = False) -> bool:
    """Whether the effective configuration has the runtime, as the default and with CDI where that is wanted."""
    entry = runtimes(effective).get(name) or {}
    binary = str((entry.get("options") or {}).get("BinaryName", ""))
    known = binary.endswith("nvidia-container-runtime") and (not default or default_runtime(effective) == name)
    return known and (not cdi or resolves_cdi(effective) is True)


def unexpected(before: str, after: str, name: str) -> list[str]:
    """Paths that differ between two effective configurations, but our runtime, the default's name and CDI."""
    old, new = tomltext.parse(before)[0], tomltext.parse(after)[0]
    return [path for path in _differences(old, new, ()) if not _ours(path, name)]


def _ours(path: str, name: str) -> bool:
    return (
        f".containerd.runtimes.{name}" in path
        or path.endswith((".containerd.default_runtime_name", f".{_CDI}"))
        or path.startswith("imports")
    )


def _differences(old: Any, new: Any, path: tuple[str, ...]) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted(set(old) | set(new)):
            found += _differences(old.get(key), new.get(key), (*path, key))
        return found
    return [] if old == new else [".".join(path)]
