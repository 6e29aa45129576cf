"""What node feature discovery and the operator write on nodes. Pure: labels to have, and to drop.

Source: reference A5.3; NVIDIA/gpu-operator v26.7.0 controllers/state_manager.go. One thing is kinder than the real
operator: labels that the stand-in wrote go again some seconds after their writer, so that stacks can follow each
other on one set of simulated nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

PCI = "feature.node.kubernetes.io/pci-10de.present"
FOUND_BY = (PCI, "feature.node.kubernetes.io/pci-0302_10de.present", "feature.node.kubernetes.io/pci-0300_10de.present")
PRESENT = "nvidia.com/gpu.present"
DEPLOY = "nvidia.com/gpu.deploy."
MIG_CONFIG, MIG_DISABLED = "nvidia.com/mig.config", "all-disabled"
OPERANDS = ("driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter",
            "node-status-exporter", "operator-validator", "client")


def nfd_labels() -> dict[str, str]:
    return {PCI: "true"}


def operator_labels(labels: Mapping[str, str], mig_capable: bool, driver_preinstalled: bool,
                    mig_off: bool = False) -> dict[str, str]:
    """Labels that the operator wants on a node with these labels; one that is set already is left as it is.

    `mig_off`: its MIG manager runs with the default all-disabled. Then nodes that name no layout get that one.
    """
    if not any(labels.get(key) == "true" for key in FOUND_BY):
        return {}
    wanted = {PRESENT: labels.get(PRESENT, "true")}
    if labels.get(DEPLOY + "operands") == "false":
        return wanted
    for operand in (*OPERANDS, *(["mig-manager"] if mig_capable else [])):
        wanted[DEPLOY + operand] = labels.get(DEPLOY + operand, "true")
    if driver_preinstalled and wanted[DEPLOY + "driver"] == "true":
        wanted[DEPLOY + "driver"] = "pre-installed"  # the driver container steps aside (k8s-driver-manager)
    if mig_capable and mig_off:
        wanted[MIG_CONFIG] = labels.get(MIG_CONFIG) or MIG_DISABLED
    return wanted
