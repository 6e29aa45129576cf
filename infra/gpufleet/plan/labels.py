"""Labels that a stack file may not set, because somebody else owns them."""

from __future__ import annotations

from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.names import OPERATOR_CONFIG_LABEL
from gpufleet.plan.taints import SPOT_KEY
from gpufleet.stackfile.pools import AksPool, Pool
from gpufleet.stackfile.source import join_path, split_path

#: AKS refuses user labels under these prefixes (AKS documentation: use-labels).
AKS_RESERVED = ("kubernetes.azure.com/", "kubernetes.io/")
#: Written by kubelet, cloud provider and node feature discovery (Kubernetes documentation: well-known labels). Taking
#: such a label over, and giving it back later, would take it away from its owner.
WELL_KNOWN = (
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "feature.node.kubernetes.io/",
)
#: Derived by the plan, or written by feature discovery and the operator.
DERIVED = ("gpufleet.dev/", OPERATOR_CONFIG_LABEL, "nvidia.com/gpu.", "nvidia.com/mig.", "nvidia.com/mps.")


def check_labels(pool: Pool, path: str) -> list[Finding]:
    """Reserved and derived keys; the spot label may be restated with the value that AKS gives it."""
    found = []
    for key, value in pool.labels.items():
        if key == SPOT_KEY and isinstance(pool, AksPool) and pool.spot and value == "spot":
            continue
        if isinstance(pool, AksPool) and key.startswith(AKS_RESERVED):
            why = "AKS keeps this prefix for itself and refuses the pool."
        elif key.startswith(WELL_KNOWN):
            why = "Kubernetes itself writes it on every node."
        elif key.startswith(DERIVED):
            why = "gpufleet or NVIDIA's software writes it from what is declared."
        else:
            continue
        found.append(finding("GF403", join_path((*split_path(path), "labels", key)), value=key, why=why))
    return found
