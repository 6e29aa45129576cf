"""HAMi's device plugin for NVIDIA GPUs: what it reads and what it registers. Pure.

It registers each GPU `deviceSplitCount` times under one resource name. The count is in the file that `--config-file`
names (ConfigMap <release>-scheduler-device); `nodeconfig` entries of /config/config.json go over it for the node that
they name. MIG devices are never split. Memory and cores of a GPU are no resources of the node: HAMi's own scheduler
hands them out, and the twin has none.
Source: Project-HAMi/HAMi v2.10.0, pkg/device-plugin/nvidiadevice/nvinternal/{plugin/server.go,rm/devices.go}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from . import mig
from .offer import Hardware
from .plugin_config import ConfigError

NODE_FILE = "/config/config.json"


@dataclass(frozen=True)
class Config:
    """What is in effect on one node. `hidden`: indexes of GPUs that it leaves out."""

    resource: str
    split_count: int
    mig_strategy: str = "none"
    hidden: frozenset[int] = frozenset()
    fail_on_init_error: bool = True


def read(device: str, nodes: str, node: str, env: Mapping[str, str], args: Sequence[str]) -> Config:
    """The configuration on `node`, from both files. Raises ConfigError where the plugin would end.

    A file of nodes that is no JSON is ignored, as the plugin does with a line in its log.
    """
    try:
        own = (yaml.safe_load(device) or {})["nvidia"]
        split, resource = own["deviceSplitCount"], own.get("resourceCountName") or mig.GPU
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError("parse", f"failed to load device config file: {' '.join(str(error).split())}") from error
    hidden: frozenset[int] = frozenset()
    for entry in _entries(nodes, node):
        split = entry.get("devicesplitcount") or split
        hidden = frozenset((entry.get("filterdevices") or {}).get("index") or ()) or hidden
    if isinstance(split, bool) or not isinstance(split, int) or split < 0:
        raise ConfigError("parse", f"cannot unmarshal {split!r} into deviceSplitCount")
    strategy = next((one.partition("=")[2] for one in args if one.startswith("--mig-strategy=")), "none")
    if strategy not in ("none", "single", "mixed"):
        raise ConfigError("flags", f"unknown MIG strategy: {strategy}")
    return Config(str(resource), split, strategy, hidden, env.get("FAIL_ON_INIT_ERROR", "true").lower() != "false")


def _entries(text: str, node: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)["nodeconfig"] if text else []
    except (ValueError, KeyError, TypeError):
        return []
    return [one for one in found if isinstance(one, dict) and one.get("name") == node]


def resources(hardware: Hardware, config: Config) -> dict[str, int]:
    """Resource name -> count that it registers. Raises ConfigError where it refuses the node's MIG layout."""
    layout = {gpu: profiles for gpu, profiles in hardware.layout.items() if gpu not in config.hidden}
    gpus = hardware.gpus - len(config.hidden & set(range(hardware.gpus)))
    out: dict[str, int] = {}
    for name, count in mig.devices(gpus, layout, config.mig_strategy).items():
        whole = name == mig.GPU and not (config.mig_strategy == "single" and layout)
        out[config.resource if name == mig.GPU else name] = count * config.split_count if whole else count
    return out
