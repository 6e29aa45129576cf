"""GPU models, their architectures and MIG profiles."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gpufleet.catalog import reading
from gpufleet.catalog.reading import STANDARD, Tables, kept

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
    """One GPU model, or a group of models that a short name fits (`members`). None means unknown.

    A field of a group is None, or empty, where its members differ.
    """

    id: str
    architecture: str  # id of an Architecture
    compute_capability: str | None  # "9.0"
    memory_gib: int | None  # as sold
    memory_mib: int | None  # as the label nvidia.com/gpu.memory shows it
    product: str | None  # as the label nvidia.com/gpu.product shows it, without sharing or MIG suffix
    min_driver: str | None  # lowest driver that knows the model, where a source states one
    modules: str  # kernel modules: proprietary, open, both
    newest_driver_branch: int | None  # the last branch that drives it; None: no end announced
    mig_capable: bool | None
    mig_slices: int | None  # compute slices of the whole GPU
    mig_min_driver: str | None
    source: str
    as_of: str
    aliases: tuple[str, ...] = ()
    virtual: bool = False  # a vGPU: the guest's view of a card or a part of it
    mig_profiles: Mapping[str, int] = _NOTHING  # profile -> most on one empty GPU
    mig_renamed: Mapping[str, str] = _NOTHING  # profile -> other name in use
    mig_min_branch: Mapping[str, int] = _NOTHING  # profile -> first driver branch, where later than mig_min_driver
    mig_aks: Mapping[str, str] = _NOTHING  # MIG1g of AKS -> profile
    members: tuple[str, ...] = ()
    note: str | None = None

    def mig_profile(self, name: str) -> str | None:
        """The table's name of a MIG profile of this model, given in either spelling; None: the model has none such."""
        if name in self.mig_profiles:
            return name
        return next((profile for profile, other in self.mig_renamed.items() if other == name), None)


@kept
def architectures(tables: Tables) -> Mapping[str, Architecture]:
    """Every architecture by id, oldest first."""
    return MappingProxyType({row["id"]: Architecture(**row) for row in tables.rows("architectures", "architectures")})


def architecture(name: str) -> Architecture | None:
    """The architecture of that id, or None."""
    return architectures().get(name)


@kept
def gpu_models(tables: Tables) -> Mapping[str, GpuModel]:
    """Every exact model by id, oldest generation first; groups are not among them."""
    mig = {row["id"]: row for row in tables.rows("mig", "mig_tables")}
    kinds = architectures(tables)
    return MappingProxyType({row["id"]: _model(row, kinds, mig) for row in tables.rows("gpus", "gpu_models")})


@kept
def gpu_groups(tables: Tables) -> Mapping[str, GpuModel]:
    """Every short name that fits several models, with what the models agree on."""
    return MappingProxyType({row["id"]: _group(row, gpu_models(tables)) for row in tables.rows("gpus", "gpu_groups")})


def gpu_model(name: str, tables: Tables = STANDARD) -> GpuModel | None:
    """The model of an id, an alias, a product label or a group name, in any letter case; None when there is none."""
    return gpu_models(tables).get(name) or _by_folded_name(tables).get(name.casefold())


def models_meant(name: str, tables: Tables = STANDARD) -> list[str]:
    """The models that a short name fits: H100, a100-80, A100 80GB. Each of its words begins a word of the model's."""
    words = _words(name)
    return sorted(
        model
        for model in gpu_models(tables)
        if words and all(any(own.startswith(word) for own in _words(model)) for word in words)
    )


def _words(name: str) -> list[str]:
    """`A100 80 GB` and `a100-80gb` are the words a100 and 80."""
    found = [word.removesuffix("gb") for word in re.split(r"[-_ /]+", name.casefold()) if word != "nvidia"]
    return [word for word in found if word]


@kept
def _by_folded_name(tables: Tables) -> Mapping[str, GpuModel]:
    found: dict[str, GpuModel] = {}
    for model in (*gpu_models(tables).values(), *gpu_groups(tables).values()):
        for name in (model.id, *model.aliases, *([model.product] if model.product else [])):
            found.setdefault(name.casefold(), model)
    return MappingProxyType(found)


def _model(row: reading.Row, kinds: Mapping[str, Architecture], mig_tables: Mapping[str, reading.Row]) -> GpuModel:
    generation = kinds[row["architecture"]]
    mig = mig_tables[row["mig"]] if row.get("mig") else {}
    return GpuModel(
        id=row["id"],
        architecture=generation.id,
        compute_capability=row.get("compute_capability"),
        memory_gib=row.get("memory_gib"),
        memory_mib=row.get("memory_mib"),
        product=row.get("product"),
        min_driver=row.get("min_driver"),
        modules=generation.modules,
        newest_driver_branch=generation.newest_driver_branch,
        mig_capable=True if mig else row.get("mig"),
        mig_slices=mig.get("slices"),
        mig_min_driver=mig.get("min_driver"),
        source=row["source"],
        as_of=row["as_of"],
        aliases=tuple(row.get("aliases", ())),
        virtual=row.get("virtual", False),
        mig_profiles=MappingProxyType(mig.get("profiles", {})),
        mig_renamed=MappingProxyType(mig.get("renamed", {})),
        mig_min_branch=MappingProxyType(mig.get("profile_min_branch", {})),
        mig_aks=MappingProxyType(mig.get("aks", {})),
        note=row.get("note"),
    )


def _group(row: reading.Row, known: Mapping[str, GpuModel]) -> GpuModel:
    models = [known[member] for member in row["members"]]
    common = {
        field: value if _agreed(models, field) else GpuModel._field_defaults.get(field)
        for field, value in models[0]._asdict().items()
    }
    own = {"id": row["id"], "aliases": (), "source": row["source"], "as_of": row["as_of"], "note": row.get("note")}
    return GpuModel(**{**common, **own, "members": tuple(row["members"])})


def _agreed(models: Sequence[GpuModel], field: str) -> bool:
    return all(getattr(model, field) == getattr(models[0], field) for model in models)
