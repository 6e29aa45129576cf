"""The product's catalogue: facts about sizes, GPUs, drivers and components, as YAML tables with source and date.

Nothing is read before it is asked for. Unknown is None, never a guess. See docs/catalogue.md.
"""

from gpufleet.catalog.azure import (
    AksVersion,
    AzureSize,
    NodeDriver,
    aks_mig_instances,
    aks_node_driver,
    aks_node_drivers,
    aks_versions,
    azure_native_fields,
    azure_size,
    azure_sizes,
)
from gpufleet.catalog.components import Component, component, components, components_of
from gpufleet.catalog.drivers import (
    DriverBranch,
    cuda_compat_unknown,
    cuda_full_driver,
    cuda_image_branches,
    cuda_min_driver,
    default_flavour,
    driver_branch,
    driver_branches,
    operator_drivers,
)
from gpufleet.catalog.gpus import Architecture, GpuModel, architecture, architectures, gpu_groups, gpu_model, gpu_models
from gpufleet.catalog.hosts import PciGpu, pci_gpu, pci_gpus
from gpufleet.catalog.known_bad import KnownBad, Place, known_bad, known_to_fail
from gpufleet.catalog.kubernetes import (
    Distribution,
    Label,
    Taint,
    distribution,
    distributions,
    labels,
    reserved_label_prefixes,
    taints,
)
from gpufleet.catalog.node_health import (
    ExecLogin,
    MigState,
    NodeCondition,
    Operand,
    exec_logins,
    mig_states,
    node_conditions,
    operands,
)
from gpufleet.catalog.packages import PackageNames, package_names, packages_for
from gpufleet.catalog.platforms import RepoDirectory, architecture_directory, repo_directories
from gpufleet.catalog.reading import CatalogError
from gpufleet.catalog.versions import DriverVersion, driver_version

__all__ = [
    "AksVersion",
    "Architecture",
    "AzureSize",
    "CatalogError",
    "Component",
    "Distribution",
    "DriverBranch",
    "DriverVersion",
    "ExecLogin",
    "GpuModel",
    "KnownBad",
    "Label",
    "MigState",
    "NodeCondition",
    "NodeDriver",
    "Operand",
    "PackageNames",
    "PciGpu",
    "Place",
    "RepoDirectory",
    "Taint",
    "aks_mig_instances",
    "aks_node_driver",
    "aks_node_drivers",
    "aks_versions",
    "architecture",
    "architecture_directory",
    "architectures",
    "azure_native_fields",
    "azure_size",
    "azure_sizes",
    "component",
    "components",
    "components_of",
    "cuda_compat_unknown",
    "cuda_full_driver",
    "cuda_image_branches",
    "cuda_min_driver",
    "default_flavour",
    "distribution",
    "distributions",
    "driver_branch",
    "driver_branches",
    "driver_version",
    "exec_logins",
    "gpu_groups",
    "gpu_model",
    "gpu_models",
    "known_bad",
    "known_to_fail",
    "labels",
    "mig_states",
    "node_conditions",
    "operands",
    "operator_drivers",
    "package_names",
    "packages_for",
    "pci_gpu",
    "pci_gpus",
    "repo_directories",
    "reserved_label_prefixes",
    "taints",
]
