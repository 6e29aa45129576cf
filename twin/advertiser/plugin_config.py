"""The configuration file of NVIDIA's device plugin, read as version 0.20.0 reads it.

Written from the reference alone and sharing no code with the product, so that the two can be compared. The plugin
reads YAML 1.1, turns it into JSON and fills Go structs: their keys match in any letter case and unknown ones are
ignored, while the levels from `timeSlicing` down are maps with exact keys. Command line beats environment beats file.
Sources: NVIDIA/k8s-device-plugin v0.20.0, api/config/v1 and cmd/nvidia-device-plugin/main.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml


class ConfigError(Exception):
    """The plugin ends with this. `stage`: parse (loader), flags (validation) or devices (device map)."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


@dataclass(frozen=True)
class Shared:
    """One entry of `resources`: full resource name and factor."""

    name: str
    replicas: int


@dataclass(frozen=True)
class Config:
    """What is in effect. `strategy` is what the plugin believes; with no matching resource it still shares nothing."""

    strategy: str = "none"  # none | time-slicing | mps
    rename: bool = False
    fail_above_one: bool = False
    resources: tuple[Shared, ...] = ()
    mig_strategy: str = "none"
    fail_on_init_error: bool = True
    warnings: tuple[str, ...] = field(default=())


ENUMS = {
    "migStrategy": ("none", "single", "mixed"), "deviceIDStrategy": ("uuid", "index"),
    "deviceListStrategy": ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri"),
    "sharedDevicesAllocationPolicy": ("distributed", "packed"),
    "deviceDiscoveryStrategy": ("auto", "nvml", "tegra"),
}
FLAGS: dict[str, type] = {
    "migStrategy": str, "failOnInitError": bool, "mpsRoot": str, "nvidiaDriverRoot": str, "nvidiaDevRoot": str,
    "gdrcopyEnabled": bool, "gdsEnabled": bool, "mofedEnabled": bool, "useNodeFeatureAPI": bool,
    "deviceDiscoveryStrategy": str, "plugin": dict, "gfd": dict}
PLUGIN_FLAGS: dict[str, type] = {
    "passDeviceSpecs": bool, "deviceListStrategy": object, "deviceIDStrategy": str, "cdiAnnotationPrefix": str,
    "nvidiaCTKPath": str, "containerDriverRoot": str, "sharedDevicesAllocationPolicy": str}
GFD_FLAGS: dict[str, type] = {"oneshot": bool, "noTimestamp": bool, "sleepInterval": object, "outputFile": str,
                              "machineTypeFile": str}
# flag -> (command line, environment)
OVERRIDES = {
    "migStrategy": ("--mig-strategy", "MIG_STRATEGY"),
    "failOnInitError": ("--fail-on-init-error", "FAIL_ON_INIT_ERROR"),
    "mpsRoot": ("--mps-root", "MPS_ROOT"), "deviceListStrategy": ("--device-list-strategy", "DEVICE_LIST_STRATEGY"),
    "deviceIDStrategy": ("--device-id-strategy", "DEVICE_ID_STRATEGY"),
    "sharedDevicesAllocationPolicy": ("--shared-devices-allocation-policy", "SHARED_DEVICES_ALLOCATION_POLICY"),
    "deviceDiscoveryStrategy": ("--device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY"),
}
DURATION = re.compile(r"^[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+$")
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


class _Yaml11(yaml.SafeLoader):
    """YAML 1.1 as Go's yaml.v2 reads it: `y` and `n` are booleans, integers as strconv.ParseInt(base 0).

    What that refuses is tried as a float, so that 08 is 8. Merge keys and tags of one's own are not modelled.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and form
        first: [pair for pair in pairs if pair[0].rpartition(":")[2] not in ("int", "bool", "float")]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}

    def _int(self, node: yaml.ScalarNode) -> int:
        text = str(self.construct_scalar(node)).replace("_", "")
        sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
        if re.fullmatch(r"0[0-7]+", digits):
            return sign * int(digits, 8)
        return sign * int(digits, 0)

    def _float(self, node: yaml.ScalarNode) -> float:
        text = str(self.construct_scalar(node)).replace("_", "").lower()
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))

    def _bool(self, node: yaml.ScalarNode) -> bool:
        return str(self.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


_Yaml11.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)$"), list("-+0123456789"))
_Yaml11.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^([-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"),
    list("-+0123456789."))
_Yaml11.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$"),
    list("yYtToOnNfF"))
_Yaml11.add_constructor("tag:yaml.org,2002:int", _Yaml11._int)
_Yaml11.add_constructor("tag:yaml.org,2002:float", _Yaml11._float)
_Yaml11.add_constructor("tag:yaml.org,2002:bool", _Yaml11._bool)


def read(text: str, env: Mapping[str, str] | None = None, args: Sequence[str] = (), *, validate: bool = True) -> Config:
    """The configuration that a plugin started with this file, environment and command line has.

    `validate`: check flags as the plugin does; the MPS control daemon does not. Raises ConfigError where it would end.
    """
    document = _load(text)
    top = _struct(document, {"version": str, "flags": dict, "resources": dict, "sharing": dict, "imex": dict}, "")
    if top.get("version") not in (None, "", "v1"):
        raise ConfigError("parse", f"unknown version: {top['version']}")
    warnings = ["customizing resource names is not supported"] if top.get("resources") else []
    flags = _flags(top.get("flags") or {}, env or {}, args)
    sharing = _struct(top.get("sharing") or {}, {"timeSlicing": object, "mps": object}, "sharing")
    sliced = _replicated(sharing["timeSlicing"], "timeSlicing", warnings) if "timeSlicing" in sharing else None
    mps = _replicated(sharing["mps"], "mps", warnings) if sharing.get("mps") is not None else None
    if validate:
        _validate(flags, mps is not None, top.get("imex") or {})
    shared = mps or sliced
    return Config(
        strategy="mps" if mps else "time-slicing" if sliced else "none",
        rename=bool(shared and shared["rename"]), resources=tuple(shared["resources"]) if shared else (),
        fail_above_one=bool(shared and (shared["fail"] if shared["fail"] is not None else mps is not None)),
        mig_strategy=flags.get("migStrategy") or "none", fail_on_init_error=flags.get("failOnInitError", True),
        warnings=tuple(warnings))


def _load(text: str) -> dict[str, Any]:
    try:
        document = next(yaml.load_all(text, _Yaml11), None)  # further documents are never read
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ConfigError("parse", "unmarshal error: " + " ".join(str(error).split())) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError("parse", f"unmarshal error: cannot unmarshal {_json(document)} into Go value")
    return document


def _json(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return kinds.get(type(value), "value")


def _struct(value: Any, fields: dict[str, type], where: str) -> dict[str, Any]:
    """A Go struct: keys in any letter case, unknown ones ignored, null leaves a field alone, types strict."""
    if not isinstance(value, dict):
        raise ConfigError("parse", f"unmarshal error: cannot unmarshal {_json(value)} into field {where}")
    by_fold = {name.lower(): name for name in fields}
    out: dict[str, Any] = {}
    for key in sorted(value, key=str):
        name = by_fold.get(str(key).lower())
        if name is None:
            continue
        child, wanted = value[key], fields[name]
        if child is None:
            if wanted is object:
                out[name] = None
            continue
        if wanted is not object and (not isinstance(child, wanted) or (wanted is str and isinstance(child, bool))):
            raise ConfigError("parse", f"unmarshal error: cannot unmarshal {_json(child)} into field {where}.{name}")
        out[name] = child
    return out


def _flags(value: Any, env: Mapping[str, str], args: Sequence[str]) -> dict[str, Any]:
    flags = _struct(value, FLAGS, "flags")
    plugin = _struct(flags.pop("plugin", {}), PLUGIN_FLAGS, "flags.plugin")
    gfd = _struct(flags.pop("gfd", {}), GFD_FLAGS, "flags.gfd")
    interval = gfd.get("sleepInterval")
    if isinstance(interval, str) and interval != "infinite" and not DURATION.match(interval):
        raise ConfigError("parse", f"invalid duration {interval!r}")
    if interval is not None and (isinstance(interval, bool) or not isinstance(interval, (str, int, float))):
        raise ConfigError("parse", "invalid duration")
    listed = plugin.get("deviceListStrategy")
    if listed is not None and not (isinstance(listed, str) or (
            isinstance(listed, list) and all(isinstance(one, str) for one in listed))):
        raise ConfigError("parse", "unmarshal error: flags.plugin.deviceListStrategy")
    if isinstance(listed, str):
        plugin["deviceListStrategy"] = [listed]  # a comma does not split in the file
    flags |= plugin
    for name, (option, variable) in OVERRIDES.items():
        text = _option(args, option)
        text = env.get(variable) if text is None else text
        if text is None:
            continue
        if name == "failOnInitError":
            if text.lower() not in ("true", "false", "1", "0", "t", "f", ""):
                raise ConfigError("flags", f"could not parse {text!r} as bool value for {option}")
            flags[name] = text.lower() in ("true", "1", "t")
        else:
            flags[name] = [one.strip() for one in text.split(",")] if name == "deviceListStrategy" else text
    return flags


def _option(args: Sequence[str], option: str) -> str | None:
    for index, arg in enumerate(args):
        if arg.startswith(option + "="):
            return arg.split("=", 1)[1]
        if arg == option:
            return args[index + 1] if index + 1 < len(args) and not args[index + 1].startswith("-") else "true"
    return None


def _validate(flags: dict[str, Any], mps: bool, imex: dict[str, Any]) -> None:
    for name, allowed in ENUMS.items():
        value = flags.get(name)
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one not in allowed:
                raise ConfigError("flags", f"invalid --{name} option: {one}")
    if mps and not flags.get("mpsRoot"):
        raise ConfigError("flags", "using MPS requires --mps-root to be specified")
    if mps and flags.get("migStrategy") == "mixed":
        raise ConfigError("flags", "using --mig-strategy=mixed is not supported with MPS")
    fields = _struct(imex, {"channelIDs": object, "required": bool}, "imex")
    if fields.get("channelIDs") not in (None, [], [0]):
        raise ConfigError("flags", f"invalid IMEX channel IDs {fields['channelIDs']}")


def _replicated(value: Any, where: str, warnings: list[str]) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise ConfigError("parse", f"unmarshal error: cannot unmarshal {_json(value)} into field sharing.{where}")
    value = value or {}
    out: dict[str, Any] = {"rename": value.get("renameByDefault"), "fail": value.get("failRequestsGreaterThanOne")}
    for key, one in (("renameByDefault", out["rename"]), ("failRequestsGreaterThanOne", out["fail"])):
        if one is not None and not isinstance(one, bool):
            raise ConfigError("parse", f"unmarshal error: cannot unmarshal {_json(one)} into {where}.{key}")
    entries = value.get("resources")
    if not isinstance(entries, list) or not entries:
        raise ConfigError("parse", f"no resources specified under sharing.{where}")
    out["resources"] = [_entry(entry, warnings) for entry in entries]
    return out


def _entry(entry: Any, warnings: list[str]) -> Shared:
    if not isinstance(entry, dict):
        raise ConfigError("parse", f"unmarshal error: cannot unmarshal {_json(entry)} into a replicated resource")
    if "name" not in entry:
        raise ConfigError("parse", "no resource name specified")
    name = _resource_name(entry["name"])
    replicas = entry.get("replicas")
    if isinstance(replicas, float) and replicas.is_integer():
        replicas = int(replicas)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or not -(2**63) <= replicas < 2**63:
        raise ConfigError("parse", f"replicas of {name} must be a number of 2 or more")
    if replicas < 2:
        raise ConfigError("parse", f"number of replicas must be >= 2 (replicas of {name} is {replicas})")
    if "rename" in entry:
        _resource_name(entry["rename"])
        warnings.append("ignoring custom 'rename'")
    if "devices" in entry:
        _devices(entry["devices"])
        if entry["devices"] != "all":
            warnings.append("ignoring custom 'devices'")
    return Shared(name, replicas)


def _resource_name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError("parse", f"invalid resource name {value!r}")
    full = value if "/" in value else f"nvidia.com/{value}"
    prefix, _, name = full.partition("/")
    if prefix != "nvidia.com":
        raise ConfigError("parse", f"resource name {full!r} has a prefix other than nvidia.com/")
    if len(full) > 63:
        raise ConfigError("parse", f"fully-qualified resource name must be 63 characters or less: {full}")
    if not re.fullmatch(rf"{LABEL}(\.{LABEL})*", name):
        raise ConfigError("parse", f"incorrect format for resource name '{full}'")
    return full


def _devices(value: Any) -> None:
    if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return
    if not isinstance(value, list):
        raise ConfigError("parse", f"unrecognized type for devices spec: {value!r}")
    for one in value:
        text = str(one)
        plain = isinstance(one, (int, str)) and not isinstance(one, bool)
        if not plain or not re.fullmatch(rf"\d+(:\d+)?|(GPU-|MIG-)?{UUID}|MIG-GPU-{UUID}/\d+/\d+", text):
            raise ConfigError("parse", f"unsupported type for device in devices list: {one!r}")
