"""The product's catalogue: facts about sizes, GPUs, drivers and components, as YAML tables with source and date.

Nothing is read before it is asked for. Unknown is None, never a guess. See docs/catalogue.md.
"""

from infra.catalog.azure import AzureSize, azure_size, azure_sizes
from infra.catalog.components import Component, component, components, components_of
from infra.catalog.drivers import (
    DriverBranch,
    KnownBad,
    cuda_full_driver,
    cuda_min_driver,
    driver_branch,
    driver_branches,
    known_bad,
    known_bad_drivers,
)
from infra.catalog.gpus import Architecture, GpuModel, architecture, architectures, gpu_model, gpu_models
from infra.catalog.kubernetes import Distribution, distribution, distributions
from infra.catalog.tables import CatalogError
from infra.catalog.versions import DriverVersion, driver_version

__all__ = [
    "Architecture",
    "AzureSize",
    "CatalogError",
    "Component",
    "Distribution",
    "DriverBranch",
    "DriverVersion",
    "GpuModel",
    "KnownBad",
    "architecture",
    "architectures",
    "azure_size",
    "azure_sizes",
    "component",
    "components",
    "components_of",
    "cuda_full_driver",
    "cuda_min_driver",
    "distribution",
    "distributions",
    "driver_branch",
    "driver_branches",
    "driver_version",
    "gpu_model",
    "gpu_models",
    "known_bad",
    "known_bad_drivers",
]
