"""Labels that a stack file may not set, because somebody else owns them."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.names import OPERATOR_CONFIG_LABEL
from gpufleet.stackfile.source import join_path, split_path

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


def check_labels(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """Reserved and derived keys; a label of a taint that the place adds may be restated with its value."""
    added = {(taint.key, taint.value) for taint in fleet.place.added_taints(pool.spec)}
    for key, value in pool.spec.labels.items():
        if (key, value) in added:
            continue
        if fleet.place.reserved_labels and key.startswith(fleet.place.reserved_labels):
            why = f"{fleet.place.owner_of_nodes} keeps this prefix for itself and refuses the pool."
        elif key.startswith(WELL_KNOWN):
            why = "Kubernetes itself writes it on every node."
        elif key.startswith(DERIVED):
            why = "gpufleet or NVIDIA's software writes it from what is declared."
        else:
            continue
        yield finding("GF403", join_path((*split_path(pool.path), "labels", key)), value=key, why=why)
