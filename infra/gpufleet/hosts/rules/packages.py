"""Rules about packages: other origins, leftovers, missing ones, holds."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF729 = rule(
    "GF729", Severity.ERROR,
    title="Driver from a runfile: /usr/bin/nvidia-uninstall is present and no package owns nvidia-smi",
    reason="Packages over a runfile leave a mixture that neither can repair.",
    remedy="Run nvidia-uninstall first, or set gpu_driver_method to runfile.",
    source="DIG",
    wrong="/usr/bin/nvidia-uninstall is there",
    right="/usr/bin/nvidia-uninstall is not there",
)

GF730 = rule(
    "GF730", Severity.ERROR,
    title="Driver from another source: {packages}",
    reason="Packages of the distribution and of the CUDA repository exclude each other.",
    remedy="Remove them first (gpu_driver_state absent), or set gpu_driver_method to what is there.",
    source="NVIDIA/yum-packaging-precompiled-kmod#50",
    wrong="""
        # nvidia-kernel-dkms of the distribution is installed
        gpu_driver_method: cuda_repo
    """,
    right="""
        # nvidia-kernel-dkms of the distribution is not installed
        gpu_driver_method: cuda_repo
    """,
)

GF731 = rule(
    "GF731", Severity.ERROR,
    title="Driver on a host that must not have one: gpu_driver_method is none, found {found}",
    reason="The driver container and a host driver fight over the GPUs.",
    remedy="Remove the driver (gpu_driver_state absent) or make the host its owner.",
    source="NVIDIA/gpu-operator#525",
    wrong="""
        # driver 580.95.05 is loaded
        gpu_driver_method: none
    """,
    right="""
        # no driver is installed
        gpu_driver_method: none
    """,
)

GF732 = rule(
    "GF732", Severity.WARNING,
    title="Loaded module and libraries differ: module {module}, package {package}",
    reason="NVML answers 'Driver/library version mismatch'.",
    remedy="Drain the host and reload the module (playbooks/upgrade.yml), or reboot.",
    source="pando85/homelab#4110",
    cases=("NV-31", "BM-21"),
    wrong="module 580.95.05 is loaded; the libraries are 580.126.09",
    right="module 580.126.09 is loaded; the libraries are 580.126.09",
)

GF736 = rule(
    "GF736", Severity.ERROR,
    title="Packages not available: {missing}",
    reason="Nothing is touched before the whole set is known.",
    remedy="Sync the mirror, or choose a version that it has: {available}.",
    source="NVIDIA/apt-packaging-fabric-manager#1; NVIDIA/ansible-role-nvidia-driver#48",
    cases=("BM-07", "BM-26"),
    wrong="""
        # the mirror has 580.126.09 only
        gpu_driver_version: 580.95.05
    """,
    right="""
        # the mirror has 580.126.09 only
        gpu_driver_version: 580.126.09
    """,
)

GF742 = rule(
    "GF742", Severity.WARNING,
    title="Two providers of the kernel module: {packages}",
    reason="dnf ends in a conflict.",
    remedy="The role keeps {kept} and removes the other.",
    source="NVIDIA/yum-packaging-precompiled-kmod#50",
    cases=("BM-14",),
    wrong="kmod-nvidia-open-dkms and dnf-plugin-nvidia are installed",
    right="kmod-nvidia-open-dkms is installed, dnf-plugin-nvidia is not",
)

GF752 = rule(
    "GF752", Severity.NOTE,
    title="Ended packages installed: {packages}",
    reason="They stop at 1.14 and stand in the way of the toolkit.",
    remedy="The role removes them.",
    source="CTK",
    wrong="nvidia-docker2 is installed",
    right="nvidia-docker2 is not installed",
)

GF759 = rule(
    "GF759", Severity.NOTE,
    title="Unattended upgrades are on: package unattended-upgrades",
    reason="They would replace libraries under a loaded module.",
    remedy="The role excludes the driver packages.",
    source="pando85/homelab#4110",
    cases=("BM-21",),
    wrong="unattended-upgrades is installed; its Package-Blacklist is empty",
    right="unattended-upgrades is installed; its Package-Blacklist has ^nvidia-",
)

GF762 = rule(
    "GF762", Severity.ERROR,
    title="Packages that the driver needs are not available: {missing}",
    reason="They build the kernel module or keep versions, and are in no repository of the vendor.",
    remedy="On Enterprise Linux enable EPEL and CRB; elsewhere the repository of the distribution that has them.",
    source="GDC; DIG",
    cases=("BM-07", "BM-16"),
    wrong="Rocky Linux 9.4 without EPEL: no repository has dkms",
    right="Rocky Linux 9.4 with EPEL and CRB",
)

GF784 = rule(
    "GF784", Severity.ERROR,
    title="Packages not held: {packages}",
    reason="The next upgrade of the host replaces libraries under a loaded module.",
    remedy="Run playbooks/site.yml.",
    source="pando85/homelab#4110",
    cases=("BM-21",),
    wrong="nvidia-open is installed and not held",
    right="nvidia-open is installed and held",
)
