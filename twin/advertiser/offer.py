"""What a node offers: resources as the device plugin counts them, labels as GPU feature discovery writes them. Pure.

Source: reference A1.4, A1.5 and A3 (NVIDIA/k8s-device-plugin v0.20.0, internal/rm and internal/lm). The two seams:
`devices` is where MIG layouts will give more than one kind of device; MPS needs a control daemon on the node, which
the caller reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .plugin_config import Config

GPU = "nvidia.com/gpu"
FAMILIES = {"7.0": "volta", "7.5": "turing", "8.0": "ampere", "8.6": "ampere", "8.9": "ada-lovelace", "9.0": "hopper"}


@dataclass(frozen=True)
class Hardware:
    """The GPUs of a node, from its annotations."""

    gpus: int
    model: str
    driver: str = ""  # version, where it is known


@cache
def _products() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "products.yaml").read_text())
    return loaded


def product(model: str) -> dict[str, Any]:
    """The row of a model; one that the table lacks is shown as NVIDIA-<model> without further facts."""
    return _products().get(model) or {"product": "NVIDIA-" + model.replace(" ", "-")}


def devices(hardware: Hardware, config: Config) -> dict[str, int]:
    """Resource name -> devices before sharing."""
    return {GPU: hardware.gpus}


def factors(config: Config, resource: str) -> list[int]:
    return [entry.replicas for entry in config.resources if entry.name == resource]


def resources(hardware: Hardware, config: Config) -> dict[str, int]:
    """Resource name -> count that the plugin advertises. Of a resource named twice the larger factor counts."""
    out: dict[str, int] = {}
    for name, count in devices(hardware, config).items():
        found = factors(config, name)
        shared = f"{name}.shared" if found and config.rename else name
        out[shared] = count * max(found, default=1)
    return out


def labels(hardware: Hardware, config: Config) -> dict[str, str]:
    """Labels of the node. Of a resource named twice the first factor is shown."""
    row, found = product(hardware.model), factors(config, GPU)
    shared = bool(found)
    out = {
        "gpu.product": row["product"] + ("-SHARED" if shared and not config.rename else ""),
        "gpu.count": str(hardware.gpus), "gpu.replicas": str(found[0] if found else 1),
        "gpu.sharing-strategy": config.strategy if shared else "none", "gpu.mode": "compute", "gpu.machine": "twin",
        "mig.capable": str(bool(row.get("mig"))).lower(), "vgpu.present": str(bool(row.get("vgpu"))).lower(),
        "mps.capable": str(config.strategy == "mps" and shared).lower(),
    }
    if row.get("memory"):
        out["gpu.memory"] = str(row["memory"])
    if row.get("compute"):
        major, minor = row["compute"].split(".")
        out |= {"gpu.compute.major": major, "gpu.compute.minor": minor,
                "gpu.family": FAMILIES.get(row["compute"], "blackwell" if int(major) in (10, 12) else "undefined")}
    if config.mig_strategy != "none":
        out["mig.strategy"] = config.mig_strategy
    parts = hardware.driver.split(".")
    if len(parts) >= 2:
        revision = parts[2] if len(parts) > 2 else ""
        out |= {"cuda.driver-version.full": hardware.driver, "cuda.driver-version.major": parts[0],
                "cuda.driver-version.minor": parts[1], "cuda.driver-version.revision": revision}
    return {f"nvidia.com/{key}": value for key, value in out.items()}
