"""From the text of a configuration to what the plugin loads: types, case rules, required fields.

Levels that are Go structs take keys in any case; below `timeSlicing`, `mps` and in list entries the plugin reads maps
of its own, where case counts. Unknown keys are dropped everywhere without a word. All problems are collected; the
plugin stops at the first.
Source: NVIDIA/k8s-device-plugin v0.20.0 api/config/v1/*.go; Go encoding/json; the recorded vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpufleet.device_plugin import golang, options, resources
from gpufleet.device_plugin.model import Config, Fault, Kind, NoEffect, Replicated, ReplicatedRow
from gpufleet.device_plugin.yaml11 import Item, YamlError, read
from gpufleet.findings.finding import closest_match, show
from gpufleet.findings.path import PathParts, join_path

VERSION = "v1"
_MISSING = Item(None, 0)
#: Go's zero values by option type.
_ZERO: dict[str, Any] = {"string": "", "bool": False, "strings": [], "ints": [], "duration": 0}


@dataclass
class Loaded:
    """The configuration, and what was found while loading. It is valid only if `faults` is empty."""

    config: Config = field(default_factory=Config)
    faults: list[Fault] = field(default_factory=list)
    no_effect: list[NoEffect] = field(default_factory=list)


def load(text: str) -> Loaded:
    """Loads a configuration text; never raises."""
    loader = _Loader()
    try:
        document = read(text)
    except YamlError as error:
        loader.out.faults.append(Fault("parse", "", error.line, "", f"the text is not valid YAML: {error}"))
        return loader.out
    if document.root is not None:
        loader.top(document.root)
    if document.second_line is not None:
        reason = "the plugin reads only the first document of the text"
        loader.out.no_effect.append(NoEffect(Kind.SECOND_DOCUMENT, "", document.second_line, "---", reason))
    if loader.out.config.version == "":
        loader.out.config.version = VERSION
    if loader.out.config.version != VERSION:
        loader.fault(("version",), loader.version_item, f"unknown version: {loader.out.config.version}", (VERSION,))
    return loader.out


def plain(item: Item) -> Any:
    """The value of an item as plain Python data."""
    if isinstance(item.value, dict):
        return {k: plain(v) for k, v in item.value.items()}
    return [plain(v) for v in item.value] if isinstance(item.value, list) else item.value


def _shown(item: Item) -> str:
    return show(item.text) if isinstance(item.value, (bool, int, float)) or item.style else show(plain(item))


class _Loader:
    def __init__(self) -> None:
        self.out = Loaded()
        self.version_item = _MISSING
        self.emptied: dict[str, PathParts] = {}

    # --- collecting -------------------------------------------------------------------------------------------------

    def fault(self, path: PathParts, item: Item, reason: str, allowed: tuple[str, ...] = ()) -> None:
        value = _shown(item)
        near = allowed[0] if len(allowed) == 1 else closest_match(value, allowed) if allowed else None
        self.out.faults.append(Fault("parse", join_path(path), item.key_line or item.line or None, value, reason, near))

    def unused(self, kind: Kind, path: PathParts, item: Item, reason: str, closest: str | None = None) -> None:
        line = item.key_line or item.line or None
        self.out.no_effect.append(NoEffect(kind, join_path(path), line, _shown(item), reason, closest))

    def lost(self, path: PathParts, item: Item) -> None:
        for key, old in item.lost:
            self.unused(Kind.DUPLICATE_KEY, (*path, key), old, "a later key of the same name replaces this value")

    # --- levels -----------------------------------------------------------------------------------------------------

    def struct(self, path: PathParts, item: Item, level: str, known: tuple[str, ...]) -> Iterator[tuple[str, Item]]:
        """The known keys of a Go struct in the order in which encoding/json meets them (sorted); any case matches."""
        if item.value is None:
            return
        if not isinstance(item.value, dict):
            self.fault(path, item, f"{level or 'the configuration'} must be a map")
            return
        self.lost(path, item)
        folded = {golang.fold(k): k for k in known}
        met: dict[str, tuple[str, Item]] = {}
        for key in sorted(item.value, key=lambda k: k.encode("utf-8", "replace")):
            name = folded.get(golang.fold(key))
            if name is None:
                self.unknown((*path, key), item.value[key], level, key, known)
                continue
            if name in met:
                earlier, old = met[name]
                reason = f"{key} names the same field; what both set is taken from {key}"
                self.unused(Kind.DUPLICATE_KEY, (*path, earlier), old, reason)
            met[name] = (key, item.value[key])
            yield name, item.value[key]

    def unknown(self, path: PathParts, item: Item, level: str, key: str, known: tuple[str, ...]) -> None:
        """A key that the level does not have: dropped without a word."""
        here = level or "the top level"
        homes = [h for h in options.places_of(key) if options.takes(f"{h}.{key}".lstrip("."), item.value)]
        if homes:
            home = "the top level" if homes[0] == "" else " or ".join(homes)
            reason = f"{here} has no key {key}; it belongs to {home}, and the plugin drops it here without a word"
            if any(path == emptied for emptied in self.emptied.values()):
                reason += ", but takes the option as set to nothing, so that its default is lost as well"
            self.unused(Kind.MISPLACED_KEY, path, item, reason, f"{homes[0]}.{key}".lstrip("."))
            return
        reason = f"{here} has no key {key}; the plugin drops unknown keys without a word"
        self.unused(Kind.UNKNOWN_KEY, path, item, reason, closest_match(key, known))

    def exact(self, path: PathParts, item: Item, level: str, known: tuple[str, ...]) -> dict[str, Item]:
        """The known keys of a map in which case counts."""
        self.lost(path, item)
        for key, value in item.value.items():
            if key in known:
                continue
            same = next((k for k in known if k.lower() == key.lower()), None)
            if same is not None:
                reason = f"below {level} the plugin tells upper from lower case; {key} is not {same} and is dropped"
                self.unused(Kind.WRONG_CASE, (*path, key), value, reason, same)
            else:
                self.unknown((*path, key), value, level, key, known)
        return {k: v for k, v in item.value.items() if k in known}

    # --- scalars ----------------------------------------------------------------------------------------------------

    def scalar(self, path: PathParts, item: Item, kind: str) -> Any:
        """A value of one of the option types; None for null and for a refused value."""
        value = item.value
        if value is None:
            return None
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind == "string" and isinstance(value, str):
            return value
        if kind == "int" and _is_number(value):
            whole = golang.json_int(value)
            if whole is not None:
                return whole
        elif kind == "duration":
            if _is_number(value) or (isinstance(value, str) and (value == "infinite" or golang.is_duration(value))):
                return value
        elif kind == "strings":
            if isinstance(value, str):
                return [value]
            if isinstance(value, list) and all(v.value is None or isinstance(v.value, str) for v in value):
                return [v.value or "" for v in value]
        elif kind == "ints" and isinstance(value, list):
            found = [self.scalar((*path, i), v, "int") if v.value is not None else 0 for i, v in enumerate(value)]
            return [v for v in found if v is not None]
        wanted = {
            "bool": "true or false",
            "string": "a string",
            "int": "a whole number",
            "duration": "a duration such as 60s, or infinite",
            "strings": "a string or a list of strings",
            "ints": "a list of whole numbers",
        }[kind]
        quoted = " (the quotes make it a string)" if isinstance(value, str) and item.style in ("'", '"') else ""
        self.fault(path, item, f"the value must be {wanted}{quoted}")
        return None

    # --- the file ---------------------------------------------------------------------------------------------------

    def top(self, root: Item) -> None:
        config = self.out.config
        for key, item in self.struct((), root, "", options.TOP):
            path: PathParts = (key,)
            if key == "version":
                self.version(path, item)
            elif key == "sharing":
                for name, value in self.struct(path, item, "sharing", options.SHARING):
                    self.sharing((*path, name), name, value)
            elif key == "resources":
                for name, value in self.struct(path, item, "resources", options.RESOURCES):
                    self.custom_resources((*path, name), value)
            else:
                if key == "flags":
                    self.touch(path, item)
                self.option_level(path, item, key, config)

    def touch(self, path: PathParts, item: Item) -> None:
        """Flags in the wrong map below `flags`: the loader drops their value, yet takes the option as set to nothing.

        sigs.k8s.io/yaml looks up the keys of `flags.plugin` and `flags.gfd` among those of `flags` (the embedded
        struct) and allocates the field it finds; the default no longer applies. A value at the right place repairs it.
        """
        if not isinstance(item.value, dict):
            return
        for key, inner in item.value.items():
            if golang.fold(key) in ("PLUGIN", "GFD"):
                self.allocate((*path, key), inner, "flags")

    def allocate(self, path: PathParts, item: Item, level: str) -> None:
        if not isinstance(item.value, dict):
            return
        folded = {golang.fold(k): k for k in options.keys_of(level)}
        for key, value in item.value.items():
            name = folded.get(golang.fold(key))
            if name is None:
                continue
            place = f"{level}.{name}"
            option = options.by_path().get(place)
            if option is None:
                self.allocate((*path, key), value, place)
            elif self.out.config.options.setdefault(place, _ZERO[option.type]) == _ZERO[option.type]:
                self.emptied[place] = (*path, key)
                self.out.config.option_lines.setdefault(place, value.key_line or value.line)

    def version(self, path: PathParts, item: Item) -> None:
        self.version_item = item
        if isinstance(item.value, (dict, list)):
            self.fault(path, item, "the value must be a string", (VERSION,))
        elif item.value is not None:
            self.out.config.version = item.value if isinstance(item.value, str) else f"{item.text}"

    def option_level(self, path: PathParts, item: Item, level: str, config: Config) -> None:
        for key, value in self.struct(path, item, level, options.keys_of(level)):
            place = f"{level}.{key}"
            here: PathParts = (*path, key)
            option = options.by_path().get(place)
            if option is None:
                if value.value is None:  # a null pointer: what an equal key set before is gone
                    for known in [p for p in config.options if p.startswith(place + ".")]:
                        del config.options[known]
                    continue
                self.option_level(here, value, place, config)
                continue
            loaded = self.scalar(here, value, option.type)
            if loaded is None:
                if level != "imex":
                    config.options.pop(place, None)
                continue
            config.options[place] = loaded
            config.option_lines[place] = value.key_line or value.line

    def custom_resources(self, path: PathParts, item: Item) -> None:
        if item.value is None:
            return
        if not isinstance(item.value, list):
            self.fault(path, item, "the value must be a list of entries with pattern and name")
            return
        for i, row in enumerate(item.value):
            here: PathParts = (*path, i)
            if not isinstance(row.value, dict):
                self.fault(here, row, "the entry must be a map with pattern and name")
                continue
            fields = self.exact(here, row, "resources", options.RESOURCE_ROW)
            for key in options.RESOURCE_ROW:
                if key not in fields:
                    self.fault(here, row, f"resources must have a '{key}' field set")
            if "pattern" in fields:
                self.scalar((*here, "pattern"), fields["pattern"], "string")
            if "name" in fields:
                self.name((*here, "name"), fields["name"])
        if item.value:
            self.out.config.custom_resources = True
            reason = "the plugin checks custom resource names and then throws them away with a log warning"
            self.unused(Kind.IGNORED_FIELD, path, item, reason)

    def sharing(self, path: PathParts, method: str, item: Item) -> None:
        config = self.out.config
        if method == "mps":
            if item.value is None:  # a null pointer is harmless
                config.mps = None
                return
            config.mps = config.mps or Replicated()
        into = config.mps if method == "mps" and config.mps is not None else config.time_slicing
        into.line = item.key_line or item.line
        if item.value is not None and not isinstance(item.value, dict):
            self.fault(path, item, f"sharing.{method} must be a map")
            return
        fields = self.exact(path, item, f"sharing.{method}", options.REPLICATED) if item.value else {}
        rename, fail = (
            self.scalar((*path, key), fields[key], "bool") if key in fields else None
            for key in ("renameByDefault", "failRequestsGreaterThanOne")
        )
        if rename is not None or "renameByDefault" not in fields:  # null leaves what an equal key set before
            into.rename_by_default = bool(rename)
        into.fail_gt1 = fail
        rows = fields.get("resources")
        if rows is None or rows.value is None or rows.value == []:
            self.fault((*path, "resources"), rows or item, "no resources specified")
        elif not isinstance(rows.value, list):
            self.fault((*path, "resources"), rows, "resources must be a list; each entry starts with a dash")
        else:
            old = into.rows
            into.rows = [
                self.row((*path, "resources", i), r, old[i] if i < len(old) else ReplicatedRow())
                for i, r in enumerate(rows.value)
            ]
        if into.rename_by_default:
            for row in into.rows:
                row.rename = row.rename or row.name + resources.SHARED_SUFFIX

    def row(self, path: PathParts, item: Item, row: ReplicatedRow) -> ReplicatedRow:
        row.path, row.line = join_path(path), item.line
        if not isinstance(item.value, dict):
            reason = "no resource name specified" if item.value is None else "the entry must be a map"
            self.fault(path, item, reason)
            return row
        fields = self.exact(path, item, f"sharing.{path[1]}.resources[]", options.REPLICATED_ROW)
        row.lines = {k: v.key_line or v.line for k, v in fields.items()}
        if "name" in fields:
            row.name = self.name((*path, "name"), fields["name"])
        else:
            self.fault(path, item, "no resource name specified")
        if "devices" in fields:
            self.devices((*path, "devices"), fields["devices"], row)
        else:
            row.devices_all = True
        if "replicas" in fields:
            self.replicas((*path, "replicas"), fields["replicas"], row)
        else:
            self.fault(path, item, "no replicas specified")
        if "rename" in fields:
            row.rename = self.name((*path, "rename"), fields["rename"])
            reason = "the plugin checks rename and then ignores it with a log warning; only renameByDefault renames"
            self.unused(Kind.IGNORED_FIELD, (*path, "rename"), fields["rename"], reason)
        return row

    def name(self, path: PathParts, item: Item) -> str:
        if item.value is not None and not isinstance(item.value, str):
            self.fault(path, item, "the resource name must be a string")
            return ""
        error = resources.name_error(item.value or "")
        if error is not None:
            self.fault(path, item, error, ("nvidia.com/gpu",))
        return resources.full_name(item.value or "")

    def replicas(self, path: PathParts, item: Item, row: ReplicatedRow) -> None:
        value = row.replicas if item.value is None else self.scalar(path, item, "int")
        if value is None:
            return
        row.replicas = value
        if value < 2:
            self.fault(path, item, "number of replicas must be >= 2")

    def devices(self, path: PathParts, item: Item, row: ReplicatedRow) -> None:
        value, faults = item.value, len(self.out.faults)
        if value is None or isinstance(value, str):
            if value != "all":
                reason = f"devices set as '{value or ''}' but the only valid string input is 'all'"
                self.fault(path, item, reason, ("all",))
            row.devices_all = row.devices_all or value == "all"
            return
        whole = golang.json_int(value) if _is_number(value) else None
        if whole is not None:
            if whole <= 0:
                self.fault(path, item, f"devices set as '{whole}' but a count of devices must be > 0")
        elif isinstance(value, list):
            for i, entry in enumerate(value):
                if not _is_device(entry.value):
                    self.fault((*path, i), entry, "the entry is neither a GPU index, a MIG index nor a UUID")
        else:
            self.fault(
                path, item, "devices must be all, a count or a list; whichever it is, all are shared alike"
            )
        if not row.devices_all and len(self.out.faults) == faults:
            reason = "the plugin checks devices and then ignores it with a log warning: all devices are shared alike"
            self.unused(Kind.IGNORED_FIELD, path, item, reason)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_device(value: Any) -> bool:
    if value is None or (_is_number(value) and golang.json_int(value, signed=False) is not None):
        return True
    return isinstance(value, str) and resources.is_device_id(value)
