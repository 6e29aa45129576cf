"""Names and labels that gpufleet gives to things, in one place."""

from __future__ import annotations

import hashlib
import json
from typing import Any

#: Every node of a pool carries this label; its value is the pool's name in the stack file.
POOL_LABEL = "gpufleet.dev/pool"
#: How the pool's GPUs are offered: a change of it on a node with running pods is refused.
METHOD_LABEL = "gpufleet.dev/method"
#: Objects carry the sharing profile that they serve.
PROFILE_LABEL = "gpufleet.dev/profile"
#: The ConfigMaps of sharing texts say which route reads them: plugin or operator.
ROUTE_LABEL = "gpufleet.dev/route"
MANAGED_BY = {"app.kubernetes.io/managed-by": "gpufleet"}

#: Read by the operator's config-manager on each node (reference: NVIDIA/k8s-device-plugin cmd/config-manager).
OPERATOR_CONFIG_LABEL = "nvidia.com/device-plugin.config"
#: Read by the operator's MIG manager on each node.
MIG_CONFIG_LABEL = "nvidia.com/mig.config"
DEPLOY_LABEL = "nvidia.com/gpu.deploy."
#: Labels that name a key of a ConfigMap which pods mount, and the one that says what came of it. On the operator route
#: they change last: a value that is no key yet ends the config-manager (NVIDIA/k8s-device-plugin, cmd/config-manager).
LAST_LABELS = (OPERATOR_CONFIG_LABEL, MIG_CONFIG_LABEL, METHOD_LABEL)

#: Written by feature discovery: the model, with a suffix where it is shared (NVIDIA/k8s-device-plugin, internal/lm).
PRODUCT_LABEL = "nvidia.com/gpu.product"

#: HAMi's words for memory (MiB) and cores (percent) of each vGPU (Project-HAMi/HAMi v2.10.0, pkg/device/nvidia).
HAMI_MEMORY, HAMI_CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
#: What HAMi's scheduler counts itself -> the key of a ResourceQuota that it reads: memory and cores, also of pods that
#: name none, and not vGPUs (Project-HAMi/HAMi v2.10.0, pkg/device/quota.go).
HAMI_COUNTED = {name: f"limits.{name}" for name in (HAMI_MEMORY, HAMI_CORES)}

#: The profile of pools that name none; also the operator's explicit default.
UNSHARED = "unshared"

GENERATION_LENGTH = 4


def content_hash(content: Any, length: int = 8) -> str:
    """Hexadecimal hash of JSON-like content; the same for the same content, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def config_map_name(profile: str, data: dict[str, str]) -> str:
    """`gpufleet-<profile>-<hash of data>`: a changed text is another object, so what mounts it rolls."""
    return f"gpufleet-{profile}-{content_hash(data)}"
