"""MPS: when the control daemon on a node serves a plugin. Pure.

Plugin and daemon meet in a folder of the host that both mount at /mps. The daemon leaves there what it has set up, and
the plugin registers nothing until that is its own sharing.mps.
Source: reference A7 (NVIDIA/k8s-device-plugin v0.20.0, cmd/mps-control-daemon/mps/{device,manager,ready}.go and
internal/plugin/mps.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import pods
from .offer import GPU, Hardware, factors, product
from .plugin_config import Config, ConfigError
from .verdicts import Verdict

ROOT = "/mps"  # in the container
MOST, MOST_OLD = 48, 16  # clients of one GPU: from compute capability 7.5 on, and before


def check_daemon(hardware: Hardware, config: Config) -> None:
    """Raises ConfigError where the daemon ends: more replicas than a GPU takes clients."""
    if config.strategy != "mps":
        return
    capability = str(product(hardware.model).get("compute", "7.5"))
    most = MOST if tuple(map(int, capability.split("."))) >= (7, 5) else MOST_OLD
    asked = max(factors(config, GPU), default=0)
    if asked > most:
        raise ConfigError("devices", "error getting daemons: invalid MPS configuration: invalid device maximum allowed "
                                     f"replicas exceeded: {asked} > {most}")


def waits(hardware: Hardware, plugin: Verdict, container: dict[str, Any], daemons: Sequence[Verdict]) -> str:
    """Why a plugin that shares by MPS registers nothing yet; "" where it does, or does not share by MPS.

    One that has registered stays, whatever becomes of the daemon. Raises ConfigError where it never will: MIG devices.
    """
    config = plugin.config
    if config is None or config.strategy != "mps" or not factors(config, GPU):
        return ""
    if hardware.layout and config.mig_strategy == "single":
        raise ConfigError("devices", "sharing using MPS is not supported for MIG devices")
    if plugin.served:
        return ""
    folder = pods.host_folder(plugin.pod, container, ROOT)
    if folder is None:
        return f"error waiting for MPS daemon: no folder of the host at {ROOT}"
    here = [one for one in daemons if folder == pods.host_folder(one.pod, pods.find(one.pod, "mps") or {}, ROOT)]
    if not here:
        return f"error waiting for MPS daemon: none on this node that has {folder} at {ROOT}"
    if not any(_sharing(one.config) == _sharing(config) for one in here):
        return "error waiting for MPS daemon: mismatched sharing config; assuming MPS is not ready"
    if not any(pods.is_ready(one.pod) for one in here if _sharing(one.config) == _sharing(config)):
        return "error waiting for MPS daemon: it is not ready"
    return ""


def _sharing(config: Config | None) -> Any:
    return config and (config.strategy, config.rename, config.fail_above_one, config.resources)
