"""MIG on a node: the layout, and which devices the plugin sees under each strategy. Pure.

Source: reference A1.5 and A6 (NVIDIA/k8s-device-plugin v0.20.0, internal/rm; go-nvml mock tables); AgentBaker for the
number of instances of an AKS gpuInstanceProfile (reference 3.4).
"""

from __future__ import annotations

from .plugin_config import ConfigError

GPU = "nvidia.com/gpu"
AKS_INSTANCES = {"MIG1g": 7, "MIG2g": 3, "MIG3g": 2, "MIG4g": 1, "MIG7g": 1}

Layout = dict[int, tuple[str, ...]]  # GPU -> profiles of its instances; a GPU that is absent has MIG disabled


def parse(text: str) -> Layout:
    """`0=1g.5gb,3g.20gb;1=`: GPU 0 has two instances, GPU 1 has MIG enabled and none. Raises ValueError."""
    out: Layout = {}
    for part in filter(None, text.split(";")):
        index, _, profiles = part.partition("=")
        out[int(index)] = tuple(filter(None, profiles.split(",")))
    return out


def of_aks(profile: str, gpus: int, names: dict[str, str]) -> Layout:
    """The layout of a node whose pool has a gpuInstanceProfile. `names`: the model's slices, 1g -> 1g.10gb."""
    if profile not in AKS_INSTANCES or profile.removeprefix("MIG") not in names:
        return {}
    return {gpu: (names[profile.removeprefix("MIG")],) * AKS_INSTANCES[profile] for gpu in range(gpus)}


def resource(profile: str) -> str:
    """`1g.5gb+me` -> `nvidia.com/mig-1g.5gb.me`. Raises ConfigError for an instance that is no full GPU instance."""
    if "c." in profile:
        raise ConfigError("devices", f"MIG device {profile} does not match any resource patterns")
    return "nvidia.com/mig-" + profile.replace("+", ".")


def devices(gpus: int, layout: Layout, strategy: str) -> dict[str, int]:
    """Resource name -> devices before sharing. Raises ConfigError where the plugin refuses the layout."""
    if strategy == "none" or not layout:
        return {GPU: gpus}
    if empty := [gpu for gpu, profiles in sorted(layout.items()) if not profiles]:
        raise ConfigError("devices", f"device {empty[0]} has an invalid MIG configuration: MIG enabled, no instance")
    profiles = [profile for one in layout.values() for profile in one]
    if strategy == "single":
        if len(layout) != gpus:
            raise ConfigError("devices", "all devices on the node must be configured with the same migEnabled value")
        if len(set(profiles)) > 1:
            raise ConfigError("devices", "more than one MIG device type present on node")
        return {GPU: len(profiles)}
    plain = gpus - len(layout)
    out = {GPU: plain} if plain else {}
    for profile in profiles:
        out[resource(profile)] = out.get(resource(profile), 0) + 1
    return out
