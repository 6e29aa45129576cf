"""The plugin's device map: which resources a node advertises, and how many of each.

Source: NVIDIA/k8s-device-plugin v0.20.0 internal/rm/{device_map,rm}.go, cmd/mps-control-daemon/mps/device.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.device_plugin.model import Config, NodeLayout, Replicated, is_whole_instance

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"

#: Clients per MPS server by compute capability. The plugin compares with 7.5, so V100 has the lower number.
MPS_CLIENTS_FROM = (7, 5)
MPS_MAX_CLIENTS, MPS_MAX_CLIENTS_OLD = 48, 16
_OLD_PRODUCTS = ("V100", "TITAN V", "P100", "P40", "P4", "P6", "M60", "M40", "M10", "M6", "K80", "GTX")


class DeviceError(ValueError):
    """The plugin cannot build a device map for the node; `path` names the option at fault."""


def mig_resource(profile: str) -> str:
    """The resource name of a MIG profile under the strategy mixed: `1g.5gb+me` -> `nvidia.com/mig-1g.5gb.me`."""
    return MIG + profile.replace("+", ".")


def unshared(node: NodeLayout, mig_strategy: str) -> dict[str, int]:
    """Devices per resource before replication.

    Raises:
        DeviceError: the layout does not fit the strategy.
    """
    if mig_strategy == "none":
        return {GPU: node.gpus} if node.gpus else {}
    instances = [p for gpu in sorted(node.mig) for p in node.mig[gpu]]
    if mig_strategy == "mixed":
        for profile in instances:
            if not is_whole_instance(profile):
                raise DeviceError(f"MIG profile '{profile}' does not match any resource patterns")
    empty = [gpu for gpu in sorted(node.mig) if not node.mig[gpu]]
    if empty:
        raise DeviceError(
            "at least one device with migEnabled=true was not configured correctly: "
            f"GPU {empty[0]} has MIG enabled and no instance"
        )
    plain = node.gpus - len(node.mig)
    counts: dict[str, int] = {GPU: plain} if plain else {}
    if mig_strategy == "single":
        if len(set(instances)) > 1:
            raise DeviceError("more than one MIG device type present on node: " + ", ".join(sorted(set(instances))))
        if plain and instances:
            raise DeviceError("all devices on the node must be configured with the same migEnabled value")
    for profile in instances:
        name = GPU if mig_strategy == "single" else mig_resource(profile)
        counts[name] = counts.get(name, 0) + 1
    return counts


def shared(counts: Mapping[str, int], replicated: Replicated) -> dict[str, int]:
    """Devices per resource after replication. If a resource has several entries, the largest counts."""
    names = {row.name for row in replicated.rows}
    out = {name: count for name, count in counts.items() if name not in names}
    factor: dict[tuple[str, str], int] = {}
    for row in replicated.rows:
        if row.name in counts:
            as_name = row.rename or row.name
            factor[row.name, as_name] = max(factor.get((row.name, as_name), 0), row.replicas)
    for (name, as_name), replicas in factor.items():
        out[as_name] = out.get(as_name, 0) + counts[name] * replicas
    return out


def mps_client_limit(node: NodeLayout) -> int:
    """The most replicas per GPU for which an MPS control daemon starts on this node."""
    if node.compute_capability is not None:
        old = node.compute_capability < MPS_CLIENTS_FROM
    else:
        words = node.product.upper().replace("-", " ").split()
        text = " ".join(words)
        old = any(f" {name} " in f" {text} " for name in _OLD_PRODUCTS)
    return MPS_MAX_CLIENTS_OLD if old else MPS_MAX_CLIENTS


def mps_refuses(config: Config, counts: Mapping[str, int], node: NodeLayout) -> str | None:
    """Why no MPS control daemon starts for a configuration that the plugin accepts, or None."""
    if config.strategy != "mps":
        return None
    limit = mps_client_limit(node)
    for row in config.active.rows:
        if row.name in counts and row.replicas > limit:
            return f"invalid MPS configuration: maximum allowed replicas exceeded: {row.replicas} > {limit}"
    return None
