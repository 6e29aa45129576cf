"""The options in effect (command line before environment before file), and the plugin's check of them.

Source: NVIDIA/k8s-device-plugin v0.20.0 cmd/nvidia-device-plugin/main.go, api/config/v1/{flags,config,imex}.go;
github.com/urfave/cli v2 (environment values: ParseBool, comma lists; the first variable that is set counts).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.device_plugin import golang
from gpufleet.device_plugin.model import Config, Fault, Kind, NoEffect
from gpufleet.device_plugin.options import Option, options
from gpufleet.findings.finding import closest_match, show


def _parse(option: Option, text: str, *, cli: bool) -> Any:
    """The value of an option from the command line or the environment.

    Raises:
        ValueError: the text has no such value.
    """
    if option.type == "bool":
        if text == "":
            return cli  # a bare --flag is true, an empty variable false
        value = golang.parse_bool(text)
        if value is None:
            raise ValueError("not a boolean; the plugin knows 1, t, true, 0, f and false")
        return value
    if option.type == "strings":
        return [part.strip() for part in text.split(",")]
    if option.type == "ints":
        numbers = [golang.parse_int(part.strip().replace("_", "")) for part in text.split(",")]
        if any(n is None or n > golang.INT64_MAX for n in numbers):
            raise ValueError("not a list of whole numbers")
        return numbers
    return text


def settings(
    config: Config, env: Mapping[str, str], flags: Mapping[str, str]
) -> tuple[dict[str, Any], list[Fault], list[NoEffect]]:
    """The options in effect by path, the values that cannot be read, and the file's settings that are overridden.

    `flags` are command-line flags, with or without their dashes; `env` the environment of the plugin.
    """
    given = {k.lstrip("-"): v for k, v in flags.items()}
    known = {name for option in options() for name in option.flags}
    faults = [
        Fault("flags", f"--{name}", None, show(value), "flag provided but not defined", closest_match(name, known))
        for name, value in given.items()
        if name not in known
    ]
    lost: list[NoEffect] = []
    out: dict[str, Any] = {}
    for option in options():
        source, text, cli = _outside(option, env, given)
        from_file = config.options.get(option.path) if option.path else None
        value = from_file if from_file is not None else option.default
        if source is not None:
            try:
                value = _parse(option, text, cli=cli)
            except ValueError as error:
                faults.append(Fault("flags", source, None, show(text), str(error)))
                continue
        if option.path is None:
            continue
        out[option.path] = value
        if source is not None and from_file is not None and value != from_file:
            reason = f"{source}={text} in the {'arguments' if cli else 'environment'} of the plugin beats the file"
            line = config.option_lines.get(option.path)
            lost.append(NoEffect(Kind.OVERRIDDEN, option.path, line, show(from_file), reason, show(value)))
    out["flags.nvidiaDevRoot"] = out.get("flags.nvidiaDevRoot") or out.get("flags.nvidiaDriverRoot")
    return out, faults, lost


def _outside(option: Option, env: Mapping[str, str], flags: Mapping[str, str]) -> tuple[str | None, str, bool]:
    """Where an option is set outside the file: its name there, the text, whether on the command line."""
    for name in option.flags:
        if name in flags:
            return f"--{name}", flags[name], True
    for name in option.env:
        if name in env:
            # The first variable that exists counts. An empty list of numbers counts as not set.
            return (None, "", False) if option.type == "ints" and env[name] == "" else (name, env[name], False)
    return None, "", False


def check(config: Config, values: Mapping[str, Any]) -> list[Fault]:
    """What the plugin refuses in the options in effect, in its order."""
    found: list[Fault] = []

    def fault(path: str, reason: str, allowed: tuple[str, ...] = ()) -> None:
        value = values.get(path)
        word = value[0] if isinstance(value, list) and value else value
        near = closest_match(word, allowed) if allowed else None
        found.append(Fault("flags", path, config.option_lines.get(path), show(value), reason, near))

    choices = {o.path: o.allowed for o in options() if o.path}
    path = "flags.plugin.deviceListStrategy"
    bad = [s for s in values[path] if s not in choices[path]]
    if bad:
        hint = "; in the file several strategies are a list, not one string with commas" if "," in bad[0] else ""
        fault(path, f"invalid --device-list-strategy option: {bad[0]}{hint}", choices[path])
    path = "flags.plugin.deviceIDStrategy"
    if values[path] not in choices[path]:
        fault(path, f"invalid --device-id-strategy option: {values[path]}", choices[path])
    if config.strategy == "mps":
        if values["flags.migStrategy"] == "mixed":
            fault("flags.migStrategy", "using --mig-strategy=mixed is not supported with MPS")
        if not values["flags.mpsRoot"]:
            hint = "the plugin's chart and the GPU Operator set it, a manifest of your own must"
            fault("flags.mpsRoot", f"using MPS requires --mps-root to be specified; {hint}")
    for path, text in (
        ("flags.deviceDiscoveryStrategy", "invalid --device-discovery-strategy option"),
        ("flags.migStrategy", "unknown MIG strategy:"),
        ("flags.plugin.sharedDevicesAllocationPolicy", "invalid --shared-devices-allocation-policy option:"),
    ):
        if values[path] not in choices[path]:
            fault(path, f"{text} {values[path]}", choices[path])
    if list(values["imex.channelIDs"]) not in ([], [0]):
        fault("imex.channelIDs", f"channelIDs must be [] or [0]; found {values['imex.channelIDs']}")
    return found
