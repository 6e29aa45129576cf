"""GPU models, their architectures and MIG profiles."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from infra.catalog import tables

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Architecture(NamedTuple):
    """What all GPUs of one generation have in common."""

    id: str
    newest_driver_branch: int | None  # the last branch that drives it; None: no end announced
    newest_cuda_major: int | None  # the last CUDA major version that compiles for it; None: no end announced
    modules: str  # kernel modules: proprietary, open, both
    open_since_branch: int | None  # first branch whose open modules take it, where a source states one
    gfd_family: str | None  # value of the label nvidia.com/gpu.family
    source: str
    as_of: str


class GpuModel(NamedTuple):
    """One GPU model. None means unknown, except in the mig fields: no MIG."""

    id: str
    architecture: str  # id of an Architecture
    compute_capability: str | None  # "9.0"
    memory_gib: int | None  # as sold
    memory_mib: int | None  # as the label nvidia.com/gpu.memory shows it
    product: str | None  # as the label nvidia.com/gpu.product shows it, without sharing or MIG suffix
    min_driver: str | None  # lowest driver that knows the model, where a source states one
    modules: str  # kernel modules: proprietary, open, both
    newest_driver_branch: int | None  # the last branch that drives it; None: no end announced
    mig_slices: int | None
    mig_min_driver: str | None
    source: str
    as_of: str
    aliases: tuple[str, ...] = ()
    mig_profiles: Mapping[str, int] = _NOTHING  # profile -> most on one empty GPU
    mig_renamed: Mapping[str, str] = _NOTHING  # profile -> other name in use
    mig_aks: Mapping[str, str] = _NOTHING  # MIG1g of AKS -> profile
    sources: Mapping[str, str] = _NOTHING  # field -> source, where not the row's

    @property
    def mig_capable(self) -> bool:
        return bool(self.mig_profiles)


@cache
def architectures() -> Mapping[str, Architecture]:
    """Every architecture by id, oldest first."""
    return MappingProxyType({row["id"]: Architecture(**row) for row in tables.rows("architectures", "architectures")})


def architecture(name: str) -> Architecture | None:
    """The architecture of that id, or None."""
    return architectures().get(name)


@cache
def gpu_models() -> Mapping[str, GpuModel]:
    """Every model by id, oldest generation first."""
    mig = {row["id"]: row for row in tables.rows("mig", "mig_tables")}
    return MappingProxyType({row["id"]: _model(row, mig) for row in tables.rows("gpus", "gpu_models")})


def gpu_model(name: str) -> GpuModel | None:
    """The model of that id or alias, in any letter case; None when the table does not know it."""
    models = gpu_models()
    return models.get(name) or _by_folded_name().get(name.casefold())


@cache
def _by_folded_name() -> Mapping[str, GpuModel]:
    return MappingProxyType({
        name.casefold(): model for model in gpu_models().values() for name in (model.id, *model.aliases)
    })


def _model(row: tables.Row, mig_tables: Mapping[str, tables.Row]) -> GpuModel:
    generation = architectures()[row["architecture"]]
    mig = mig_tables[row["mig"]] if row.get("mig") else {}
    return GpuModel(
        id=row["id"],
        aliases=tuple(row.get("aliases", ())),
        architecture=generation.id,
        compute_capability=row.get("compute_capability"),
        memory_gib=row.get("memory_gib"),
        memory_mib=row.get("memory_mib"),
        product=row.get("product"),
        min_driver=row.get("min_driver"),
        modules=generation.modules,
        newest_driver_branch=generation.newest_driver_branch,
        mig_slices=mig.get("slices"),
        mig_min_driver=mig.get("min_driver"),
        mig_profiles=MappingProxyType(mig.get("profiles", {})),
        mig_renamed=MappingProxyType(mig.get("renamed", {})),
        mig_aks=MappingProxyType(mig.get("aks", {})),
        source=row["source"],
        as_of=row["as_of"],
        sources=MappingProxyType(row.get("sources", {})),
    )
