"""Files on a host that the roles write, or read to decide. One list, used by the probe and by the decisions."""

from __future__ import annotations

# Written by us; the names say so, and nothing else may write them.
CUDA_SOURCE_APT = "/etc/apt/sources.list.d/gpufleet-cuda.sources"
CUDA_SOURCE_DNF = "/etc/yum.repos.d/gpufleet-cuda.repo"
CUDA_KEYRING_APT = "/usr/share/keyrings/gpufleet-cuda.asc"
CUDA_KEYRING_DNF = "/etc/pki/rpm-gpg/gpufleet-cuda.asc"
TOOLKIT_SOURCE_APT = "/etc/apt/sources.list.d/gpufleet-container-toolkit.sources"
TOOLKIT_SOURCE_DNF = "/etc/yum.repos.d/gpufleet-container-toolkit.repo"
TOOLKIT_KEYRING_APT = "/usr/share/keyrings/gpufleet-container-toolkit.asc"
TOOLKIT_KEYRING_DNF = "/etc/pki/rpm-gpg/gpufleet-container-toolkit.asc"
PREFERENCES = "/etc/apt/preferences.d/gpufleet-driver"
UNATTENDED = "/etc/apt/apt.conf.d/52gpufleet-unattended-upgrades"
BLACKLIST = "/etc/modprobe.d/gpufleet-blacklist.conf"
MODULE_OPTIONS = "/etc/modprobe.d/gpufleet-nvidia.conf"
MODULES_LOAD = "/etc/modules-load.d/gpufleet.conf"
CONTAINERD_DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
CRIO_DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.toml"
PERSISTENCED_UNIT = "/etc/systemd/system/nvidia-persistenced.service"  # only where the driver comes from a runfile
MIG_LAYOUT = "/etc/nvidia-mig-manager/gpufleet.yaml"
MIG_OVERRIDE = "/etc/systemd/system/nvidia-mig-manager.service.d/gpufleet.conf"
SETTINGS_UNIT = "/etc/systemd/system/gpufleet-gpu-settings.service"
IMEX_NODES = "/etc/nvidia-imex/nodes_config.cfg"
FACTS = "/etc/ansible/facts.d/gpu.fact"

# Written by somebody else as well; edited in part or read only.
CONTAINERD_CONFIG = "/etc/containerd/config.toml"
DOCKER_CONFIG = "/etc/docker/daemon.json"
CRIO_CONFIG = "/etc/crio/crio.conf"
TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
RANCHER_CONFIG = {"k3s": "/etc/rancher/k3s/config.yaml", "rke2": "/etc/rancher/rke2/config.yaml"}
RANCHER_CONTAINERD = {
    "k3s": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "rke2": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
}

# Left by whatever makes a host a node: kubeadm and kubespray, k3s and RKE2, k0s, MicroK8s, others.
KUBELETS = (
    "/var/lib/kubelet/config.yaml",
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/kubelet/kubeconfig",
    "/var/lib/rancher",
    "/var/lib/k0s/kubelet",
    "/var/snap/microk8s/current",
)

ALL = (
    CUDA_SOURCE_APT,
    CUDA_SOURCE_DNF,
    TOOLKIT_SOURCE_APT,
    TOOLKIT_SOURCE_DNF,
    PREFERENCES,
    UNATTENDED,
    BLACKLIST,
    MODULE_OPTIONS,
    MODULES_LOAD,
    CONTAINERD_DROP_IN,
    CRIO_DROP_IN,
    PERSISTENCED_UNIT,
    MIG_LAYOUT,
    MIG_OVERRIDE,
    SETTINGS_UNIT,
    IMEX_NODES,
    FACTS,
    CONTAINERD_CONFIG,
    DOCKER_CONFIG,
    CRIO_CONFIG,
    TOOLKIT_CONFIG,
    *RANCHER_CONFIG.values(),
    *RANCHER_CONTAINERD.values(),
)
KEYRINGS = (CUDA_KEYRING_APT, CUDA_KEYRING_DNF, TOOLKIT_KEYRING_APT, TOOLKIT_KEYRING_DNF)
UNITS = (
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-imex.service",
    "nvidia-mig-manager.service",
    "nvidia-cdi-refresh.service",
    "nvidia-cdi-refresh.path",
    "gpufleet-gpu-settings.service",
    "containerd.service",
    "docker.service",
    "crio.service",
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "kubelet.service",
    "unattended-upgrades.service",
    "nvidia-dcgm.service",
    "nvidia-powerd.service",
)
