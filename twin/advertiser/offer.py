"""What a node offers: resources as the device plugin counts them, labels as GPU feature discovery writes them. Pure.

Source: reference A1.4, A1.5 and A3 (NVIDIA/k8s-device-plugin v0.20.0, internal/rm and internal/lm). Whether the
control daemon that MPS needs is on the node is for the caller to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from . import mig
from .plugin_config import Config, ConfigError

GPU = mig.GPU
FAMILIES = {"7.0": "volta", "7.5": "turing", "8.0": "ampere", "8.6": "ampere", "8.9": "ada-lovelace", "9.0": "hopper"}


@dataclass(frozen=True)
class Hardware:
    """The GPUs of a node, from its annotations."""

    gpus: int
    model: str
    driver: str = ""  # version, where it is known
    layout: mig.Layout = field(default_factory=dict)


@cache
def _products() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "products.yaml").read_text())
    return loaded


def product(model: str) -> dict[str, Any]:
    """The row of a model; one that the table lacks is shown as NVIDIA-<model> without further facts."""
    return {"product": "NVIDIA-" + model.replace(" ", "-"), **_products().get(model, {})}


def factors(config: Config, resource: str) -> list[int]:
    return [entry.replicas for entry in config.resources if entry.name == resource]


def resources(hardware: Hardware, config: Config) -> dict[str, int]:
    """Resource name -> count that the plugin advertises. Of a resource named twice the larger factor counts.

    Raises ConfigError where the plugin refuses the node's MIG layout.
    """
    out: dict[str, int] = {}
    for name, count in mig.devices(hardware.gpus, hardware.layout, config.mig_strategy).items():
        found = factors(config, name)
        shared = f"{name}.shared" if found and config.rename else name
        out[shared] = count * max(found, default=1)
    return out


def labels(hardware: Hardware, config: Config) -> dict[str, str]:
    """Labels of the node. Of a resource named twice the first factor is shown.

    Raises ConfigError where feature discovery ends: MPS on a node with MIG devices.
    """
    row, strategy = product(hardware.model), config.mig_strategy
    if config.strategy == "mps" and hardware.layout and strategy != "mixed":
        raise ConfigError("devices", "sharing strategy mps is not supported with MIG devices")
    out = {
        **_shown("gpu", row["product"], hardware.gpus, config, GPU), "gpu.mode": "compute", "gpu.machine": "twin",
        "mig.capable": str(bool(row.get("mig"))).lower(), "vgpu.present": str(bool(row.get("vgpu"))).lower(),
        "mps.capable": str(config.strategy == "mps" and bool(factors(config, GPU))).lower(),
    }
    if len(hardware.layout) == hardware.gpus:  # only MIG-enabled parents: not shared, say the labels
        out |= {"gpu.product": row["product"], "gpu.replicas": "0", "gpu.sharing-strategy": "none"}
    out |= _facts(row, hardware.driver)
    if strategy != "none" and hardware.layout:
        out |= _mig_labels(hardware, config, row["product"])
    if strategy == "single" and hardware.layout and out["gpu.count"] != "0":
        out.pop("gpu.memory", None)  # that of an instance, which no table here has
    if strategy != "none":
        out["mig.strategy"] = strategy
    return {f"nvidia.com/{key}": value for key, value in out.items()}


def _shown(kind: str, name: str, count: int, config: Config, resource: str) -> dict[str, str]:
    found = factors(config, resource)
    return {f"{kind}.product": name + ("-SHARED" if found and not config.rename else ""), f"{kind}.count": str(count),
            f"{kind}.replicas": str(found[0] if found else 1),
            f"{kind}.sharing-strategy": config.strategy if found else "none"}


def _mig_labels(hardware: Hardware, config: Config, name: str) -> dict[str, str]:
    try:
        found = mig.devices(hardware.gpus, hardware.layout, config.mig_strategy)
    except ConfigError:
        return {"gpu.product": f"{name}-MIG-INVALID", "gpu.count": "0", "gpu.replicas": "0", "gpu.memory": "0",
                "gpu.sharing-strategy": "none"}
    profiles = sorted({profile for one in hardware.layout.values() for profile in one})
    if config.mig_strategy == "single":
        return _shown("gpu", f"{name}-MIG-{profiles[0].replace('+', '.')}", found[GPU], config, GPU)
    out: dict[str, str] = {}
    for profile in profiles:
        resource = mig.resource(profile)
        shown = f"{name}-MIG-{profile.replace('+', '.')}"  # a label value has no plus
        out |= _shown(resource.removeprefix("nvidia.com/"), shown, found[resource], config, resource)
    return out


def _facts(row: dict[str, Any], driver: str) -> dict[str, str]:
    out = {"gpu.memory": str(row["memory"])} if row.get("memory") else {}
    if row.get("compute"):
        major, minor = row["compute"].split(".")
        out |= {"gpu.compute.major": major, "gpu.compute.minor": minor,
                "gpu.family": FAMILIES.get(row["compute"], "blackwell" if int(major) in (10, 12) else "undefined")}
    parts = driver.split(".")
    if len(parts) >= 2:
        out |= {"cuda.driver-version.full": driver, "cuda.driver-version.major": parts[0],
                "cuda.driver-version.minor": parts[1], "cuda.driver-version.revision": ".".join(parts[2:3])}
    return out
