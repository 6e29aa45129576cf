"""From configuration text, flags, environment and node layout to what the node will offer."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.device_plugin import devices
from gpufleet.device_plugin import flags as cli
from gpufleet.device_plugin import labels as gfd
from gpufleet.device_plugin.loader import load
from gpufleet.device_plugin.model import Config, Fault, Kind, NodeLayout, NoEffect, Prediction, Replicated
from gpufleet.device_plugin.resources import SHARED_SUFFIX
from gpufleet.findings.finding import closest_match, show


def predict(
    config: str, node: NodeLayout, *, env: Mapping[str, str] | None = None, flags: Mapping[str, str] | None = None
) -> Prediction:
    """What NVIDIA's device plugin v0.20.0 and its GPU Feature Discovery do with a configuration on a node.

    `config` is the text of the file, `env` the plugin's environment, `flags` its command-line flags; flags beat the
    environment, the environment beats the file. Never raises on any text.
    """
    loaded = load(config)
    found = loaded.no_effect
    if loaded.faults:
        return _rejected("reject-parse", loaded.faults, found)
    values, faults, overridden = cli.settings(loaded.config, env or {}, flags or {})
    found += overridden
    if faults:  # the command line is read first; the file is never loaded
        return _rejected("reject-flags", faults, found)
    warned = _disable_renaming(loaded.config)
    faults = cli.check(loaded.config, values)
    if faults:
        return _rejected("reject-flags", faults, found, warned)
    mig_strategy = str(values["flags.migStrategy"])
    try:
        base = devices.unshared(node, mig_strategy)
    except devices.DeviceError as error:
        place = "flags.migStrategy"
        line = loaded.config.option_lines.get(place)
        return _rejected("reject-devices", [Fault("devices", place, line, mig_strategy, str(error))], found, warned)
    found += _unmatched(loaded.config, base, mig_strategy)
    refused = devices.mps_refuses(loaded.config, base, node)
    lost = gfd.labels_fail(loaded.config, node)
    reason = refused or ("GFD fails: MPS sharing is not supported for mig devices" if lost else "")
    return Prediction(
        outcome="accept",
        reason=reason,
        capacity=devices.shared(base, loaded.config.active),
        strategy=loaded.config.strategy,
        fail_gt1=_fail_gt1(loaded.config),
        labels=None if lost or refused else gfd.labels(loaded.config, node, mig_strategy),
        labels_lost=lost,
        # In the recorded runs of the plugin, the refusal of the MPS daemon is a warning.
        ignored_fields_warned=warned or (refused is not None and not lost),
        no_effect=tuple(found),
        settings=values,
        other_labels={} if lost else gfd.other_labels(loaded.config, mig_strategy),
        factors=_factors(loaded.config, base),
    )


def _rejected(outcome: str, faults: list[Fault], found: list[NoEffect], warned: bool = False) -> Prediction:
    return Prediction(outcome, faults[0].reason, None, None, None, None, False, warned, tuple(found), tuple(faults))


def _fail_gt1(config: Config) -> bool | None:
    """failRequestsGreaterThanOne as the plugin holds it: unset under MPS means true."""
    if config.mps is not None and config.mps.fail_gt1 is None:
        return True
    return config.active.fail_gt1


def _disable_renaming(config: Config) -> bool:
    """Drops what the plugin does not support (custom resources, rename, devices). True if the plugin logs it."""
    warned = config.custom_resources
    for replicated in (config.time_slicing, config.mps):
        for row in replicated.rows if replicated is not None else ():
            default = row.name + SHARED_SUFFIX if replicated and replicated.rename_by_default else ""
            warned = warned or row.rename != default or not row.devices_all
            row.rename, row.devices_all = default, True
    return warned


def _unmatched(config: Config, base: Mapping[str, int], mig_strategy: str) -> list[NoEffect]:
    """Sharing entries that change nothing on this node."""
    found: list[NoEffect] = []
    if config.mps is not None and config.time_slicing.rows:
        reason = "sharing.mps is set, and the plugin then ignores timeSlicing without a word"
        found.append(NoEffect(Kind.MPS_WINS, "sharing.timeSlicing", config.time_slicing.line, "", reason))
    largest = _largest(config.active)
    for i, row in enumerate(config.active.rows):
        line = row.lines.get("name", row.line)
        if row.name not in base:
            have = ", ".join(sorted(base)) or "no resource at all"
            reason = f"this node has no resource {row.name} (it has {have}), so the entry shares nothing"
            near = closest_match(row.name, base) or (next(iter(base)) if len(base) == 1 else None)
            if row.name.startswith(devices.MIG) and mig_strategy != "mixed":
                reason += "; names of MIG profiles exist under migStrategy mixed alone"
                near = near if mig_strategy == "single" else None  # single: instances are called nvidia.com/gpu
            found.append(NoEffect(Kind.NO_SUCH_RESOURCE, row.path + ".name", line, show(row.name), reason, near))
        elif largest[row.name] != i:
            reason = (
                f"{row.name} is listed more than once; the count uses the larger factor, the labels use the first entry"
            )
            found.append(NoEffect(Kind.DUPLICATE_ROW, row.path, line, show(row.name), reason))
    return found


def _factors(config: Config, base: Mapping[str, int]) -> dict[str, int]:
    """Replicas per advertised name of what is shared."""
    rows = [row for row in config.active.rows if row.name in base]
    return {
        row.rename or row.name: max(r.replicas for r in rows if r.name == row.name and r.rename == row.rename)
        for row in rows
    }


def _largest(replicated: Replicated) -> dict[str, int]:
    """For each resource, the index of the entry that decides its count."""
    best: dict[str, int] = {}
    for i, row in enumerate(replicated.rows):
        if row.name not in best or row.replicas > replicated.rows[best[row.name]].replicas:
            best[row.name] = i
    return best
