"""GPU models, architectures and MIG tables."""

import re

import pytest
from gpufleet.catalog import (
    GpuModel,
    architecture,
    architectures,
    driver_branches,
    driver_version,
    gpu_groups,
    gpu_model,
    gpu_models,
    reading,
)

MODELS = list(gpu_models().values())
MIG_MODELS = [model for model in MODELS if model.mig_profiles]

#: What operator 26.7.0 and the MIG user guide state, per model: profile and largest count on one GPU.
MIG_FIGURES = {
    "A30": "1g.6gb 4, 1g.6gb+me 1, 2g.12gb 2, 2g.12gb+me 1, 4g.24gb 1",
    "A100-SXM4-40GB": "1g.5gb 7, 1g.5gb+me 1, 1g.10gb 4, 2g.10gb 3, 3g.20gb 2, 4g.20gb 1, 7g.40gb 1",
    "A800-SXM4-40GB": "1g.5gb 7, 1g.5gb+me 1, 1g.10gb 4, 2g.10gb 3, 3g.20gb 2, 4g.20gb 1, 7g.40gb 1",
    "A100-SXM4-80GB": "1g.10gb 7, 1g.10gb+me 1, 1g.20gb 4, 2g.20gb 3, 3g.40gb 2, 4g.40gb 1, 7g.80gb 1",
    "A100-80GB-PCIe": "1g.10gb 7, 1g.10gb+me 1, 1g.20gb 4, 2g.20gb 3, 3g.40gb 2, 4g.40gb 1, 7g.80gb 1",
    "A800-SXM4-80GB": "1g.10gb 7, 1g.10gb+me 1, 1g.20gb 4, 2g.20gb 3, 3g.40gb 2, 4g.40gb 1, 7g.80gb 1",
    "H100-SXM5-80GB": "1g.10gb 7, 1g.10gb+me 1, 1g.20gb 4, 2g.20gb 3, 3g.40gb 2, 4g.40gb 1, 7g.80gb 1",
    "H100-PCIe": "1g.10gb 7, 1g.10gb+me 1, 1g.20gb 4, 2g.20gb 3, 3g.40gb 2, 4g.40gb 1, 7g.80gb 1",
    "H800-SXM5-80GB": "1g.10gb 7, 1g.10gb+me 1, 1g.20gb 4, 2g.20gb 3, 3g.40gb 2, 4g.40gb 1, 7g.80gb 1",
    "H100-NVL": "1g.12gb 7, 1g.12gb+me 1, 1g.24gb 4, 2g.24gb 3, 3g.47gb 2, 4g.47gb 1, 7g.94gb 1",
    "H800-NVL": "1g.12gb 7, 1g.12gb+me 1, 1g.24gb 4, 2g.24gb 3, 3g.47gb 2, 4g.47gb 1, 7g.94gb 1",
    "H100-96GB": "1g.12gb 7, 1g.12gb+me 1, 1g.24gb 4, 2g.24gb 3, 3g.48gb 2, 4g.48gb 1, 7g.96gb 1",
    "GH200-96GB": "1g.12gb 7, 1g.12gb+me 1, 1g.24gb 4, 2g.24gb 3, 3g.48gb 2, 4g.48gb 1, 7g.96gb 1",
    "H20": "1g.12gb 7, 1g.24gb 4, 2g.24gb 3, 3g.48gb 2, 4g.48gb 1, 7g.96gb 1",
    "H200": "1g.18gb 7, 1g.18gb+me 1, 1g.35gb 4, 2g.35gb 3, 3g.71gb 2, 4g.71gb 1, 7g.141gb 1",
    "H200-NVL": "1g.18gb 7, 1g.18gb+me 1, 1g.35gb 4, 2g.35gb 3, 3g.71gb 2, 4g.71gb 1, 7g.141gb 1",
    "GH200-144GB": "1g.18gb 7, 1g.36gb 4, 2g.36gb 3, 3g.72gb 2, 4g.72gb 1, 7g.144gb 1",
    "B200": "1g.23gb 7, 1g.23gb+me 1, 1g.45gb 4, 2g.45gb 3, 3g.90gb 2, 4g.90gb 1, 7g.180gb 1",
    "GB200": "1g.23gb 7, 1g.47gb 4, 2g.47gb 3, 3g.93gb 2, 4g.93gb 1, 7g.186gb 1",
    "B300": "1g.34gb 7, 1g.34gb+me 1, 1g.67gb 4, 2g.67gb 3, 3g.135gb 2, 4g.135gb 1, 7g.269gb 1",
    "GB300": "1g.35gb 7, 1g.70gb 4, 2g.70gb 3, 3g.139gb 2, 4g.139gb 1, 7g.278gb 1",
    "RTX-PRO-6000-Blackwell-Server-Edition": "1g.24gb 4, 1g.24gb+gfx 4, 1g.24gb+me 1, 1g.24gb+me.all 1, 1g.24gb-me 4, "
    "2g.48gb 2, 2g.48gb+gfx 2, 2g.48gb+me.all 1, 2g.48gb-me 2, 4g.96gb 1, 4g.96gb+gfx 1",
    "RTX-PRO-5000-Blackwell": "1g.24gb 2, 1g.24gb+gfx 2, 1g.24gb+me 1, 1g.24gb+me.all 1, 1g.24gb-me 2, 2g.48gb 1, "
    "2g.48gb+gfx 1",
    "RTX-PRO-4500-Blackwell": "1g.16gb 2, 1g.16gb+gfx 2, 1g.16gb+me.all 1, 1g.16gb-me 2, 2g.32gb 1, 2g.32gb+gfx 1",
}

#: Lowest driver for MIG, MIG user guide 620.
MIG_DRIVERS = {
    "A100-SXM4-40GB": "450.80.02", "A30": "460.73.01", "H100-NVL": "525.85.12", "H20": "535.161.07",
    "H200": "550.90.07", "B200": "570.133.20", "GB200": "570.133.20", "B300": "580.82.07",
    "RTX-PRO-6000-Blackwell-Workstation-Edition": "575.51.03", "RTX-PRO-5000-Blackwell": "575.57.08",
    "RTX-PRO-4500-Blackwell": "575.64", "GB300": "595.58.03",
}  # fmt: skip

#: Models whose MIG tables are equal: the same memory and the same slices.
SAME_MIG = [{"A100-80GB", "H100-80GB"}, {"H100-96GB", "GH200-96GB"}]


def profile_size(profile: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d)g\.(\d+)gb([+-](me|gfx)(\.all)?)?", profile)
    assert match, profile
    return int(match[1]), int(match[2])


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.id)
def test_model_fits_its_architecture(model: GpuModel) -> None:
    generation = architecture(model.architecture)
    assert generation is not None
    assert model.modules == generation.modules
    assert model.compute_capability is not None
    major = int(model.compute_capability.split(".")[0])
    expected = {"pascal": {6}, "volta": {7}, "turing": {7}, "ampere": {8}, "ada": {8}, "hopper": {9},
                "grace-hopper": {9}, "blackwell": {10, 12}}  # fmt: skip
    assert major in expected[model.architecture]
    if model.min_driver and model.newest_driver_branch:
        assert driver_version(model.min_driver).branch <= model.newest_driver_branch


def test_architectures_name_known_branches_and_modules() -> None:
    for generation in architectures().values():
        assert generation.modules in ("proprietary", "open", "both")
        assert generation.newest_driver_branch is None or generation.newest_driver_branch in driver_branches()


@pytest.mark.parametrize(
    ("gpu", "branch", "modules", "cuda"),
    [("V100-PCIE-16GB", 580, "proprietary", 12), ("P4", 580, "proprietary", 12), ("T4", None, "both", None),
     ("H100-NVL", None, "both", None), ("GH200-96GB", None, "open", None), ("B200", None, "open", None)],
)  # fmt: skip
def test_end_of_the_line(gpu: str, branch: int | None, modules: str, cuda: int | None) -> None:
    model = gpu_model(gpu)
    assert model is not None
    generation = architecture(model.architecture)
    assert generation is not None
    assert (model.newest_driver_branch, model.modules, generation.newest_cuda_major) == (branch, modules, cuda)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.id)
def test_memory_label_is_near_the_memory_sold(model: GpuModel) -> None:
    if model.memory_mib is not None and model.memory_gib is not None:
        assert 0.92 <= model.memory_mib / (model.memory_gib * 1024) <= 1.0


@pytest.mark.parametrize(
    ("gpu", "product", "memory"),
    [("T4", "Tesla-T4", 15360), ("A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB", 81920), ("H200", "NVIDIA-H200", 143771),
     ("A100-80GB-PCIe", "NVIDIA-A100-80GB-PCIe", 81920), ("H100-SXM5-80GB", "NVIDIA-H100-80GB-HBM3", 81559),
     ("H100-NVL", "NVIDIA-H100-NVL", 95830), ("V100-PCIE-16GB", "Tesla-V100-PCIE-16GB", 16384),
     ("A10-24Q", "NVIDIA-A10-24Q", 24512), ("B300", "NVIDIA-B300-SXM6-AC", 275040)],
)  # fmt: skip
def test_labels_as_nodes_show_them(gpu: str, product: str, memory: int) -> None:
    model = gpu_model(gpu)
    assert model is not None
    assert (model.product, model.memory_mib) == (product, memory)


def test_names_are_unique_and_are_label_values() -> None:
    names = [n.casefold() for m in MODELS for n in {m.id, *m.aliases}] + [g.casefold() for g in gpu_groups()]
    assert sorted({n for n in names if names.count(n) > 1}) == []
    products = [m.product for m in MODELS if m.product]
    assert sorted({p for p in products if products.count(p) > 1}) == []
    for product in products:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}", product), product


def test_a_name_is_found_by_alias_product_and_case() -> None:
    for name in ("h100-80gb-hbm3", "NVIDIA-H100-80GB-HBM3", "H100-SXM5-80GB"):
        assert gpu_model(name) is gpu_models()["H100-SXM5-80GB"]
    assert gpu_model("H100") is None, "several models: not guessed"
    assert gpu_model("RTX-4090") is None


def test_a_group_knows_only_what_its_members_agree_on() -> None:
    group = gpu_model("A100-80GB")
    assert group is not None
    assert group.members == ("A100-SXM4-80GB", "A100-80GB-PCIe")
    assert (group.memory_mib, group.mig_profiles["1g.10gb"], group.product) == (81920, 7, None)
    rtx = gpu_model("RTX-PRO-6000-Blackwell")
    assert rtx is not None
    assert (rtx.min_driver, rtx.mig_slices, rtx.memory_gib) == (None, 4, 96)
    for short in gpu_groups().values():
        assert short.id not in gpu_models()
        assert short.architecture in architectures(), "a group lies within one generation"
        assert short.modules in ("proprietary", "open", "both")


@pytest.mark.parametrize("gpu", MIG_FIGURES)
def test_mig_profiles_are_the_published_ones(gpu: str) -> None:
    figures = dict(re.fullmatch(r"(\S+) (\d+)", part).groups() for part in MIG_FIGURES[gpu].split(", "))  # type: ignore[union-attr]
    model = gpu_model(gpu)
    assert model is not None
    assert dict(model.mig_profiles) == {profile: int(count) for profile, count in figures.items()}


def test_every_mig_table_has_published_figures_and_a_model() -> None:
    named = {row["mig"] for row in reading.rows("gpus", "gpu_models") if row.get("mig")}
    assert named == {row["id"] for row in reading.rows("mig", "mig_tables")}
    covered = {row["mig"] for row in reading.rows("gpus", "gpu_models") if row["id"] in MIG_FIGURES}
    assert covered == named


@pytest.mark.parametrize("gpu", MIG_DRIVERS)
def test_mig_needs_the_published_driver(gpu: str) -> None:
    model = gpu_model(gpu)
    assert model is not None
    assert model.mig_min_driver == MIG_DRIVERS[gpu]


def test_neighbours_differ() -> None:
    mig = {row["id"]: row["profiles"] for row in reading.rows("mig", "mig_tables")}
    for one, profiles in mig.items():
        for other, others in mig.items():
            if one < other and {one, other} not in SAME_MIG:
                assert profiles != others, f"{one} and {other}"


def test_a_neighbours_profile_is_refused() -> None:
    for model in MIG_MODELS:
        for other in MIG_MODELS:
            for profile in set(other.mig_profiles) - set(model.mig_profiles) - set(model.mig_renamed.values()):
                assert model.mig_profile(profile) is None, f"{profile} on {model.id}"


def test_one_name_means_different_counts() -> None:
    counts = [gpu_models()[gpu].mig_profiles["1g.10gb"] for gpu in ("A100-SXM4-40GB", "A100-SXM4-80GB")]
    assert counts == [4, 7]


def test_the_other_spelling_of_a_profile() -> None:
    model = gpu_models()["GB200"]
    assert [model.mig_profile(p) for p in ("3g.93gb", "3g.95gb", "7g.189gb", "7g.190gb")] == [
        "3g.93gb", "3g.93gb", "7g.186gb", None,
    ]  # fmt: skip


@pytest.mark.parametrize("model", MIG_MODELS, ids=lambda m: m.id)
def test_mig_profiles_fit_on_the_gpu(model: GpuModel) -> None:
    assert model.mig_slices is not None
    assert model.memory_gib is not None
    for profile, count in model.mig_profiles.items():
        slices, gigabytes = profile_size(profile)
        assert slices * count <= model.mig_slices
        assert gigabytes * count <= model.memory_gib * 1.03
    full = [p for p in model.mig_profiles if profile_size(p)[0] == model.mig_slices]
    assert full, "the whole GPU as one instance"
    assert all(model.mig_profiles[p] == 1 for p in full)
    assert set(model.mig_min_branch) <= set(model.mig_profiles)


@pytest.mark.parametrize("model", [m for m in MIG_MODELS if m.mig_aks], ids=lambda m: m.id)
def test_aks_profile_names_make_the_instances_that_aks_makes(model: GpuModel) -> None:
    instances = {"MIG1g": 7, "MIG2g": 3, "MIG3g": 2, "MIG4g": 1, "MIG7g": 1}
    assert {aks: model.mig_profiles[profile] for aks, profile in model.mig_aks.items()} == instances
    assert {aks: profile_size(p)[0] for aks, p in model.mig_aks.items()} == {a: int(a[3]) for a in instances}


def test_unknown_stays_none() -> None:
    assert gpu_models()["A10-8Q"].memory_mib is None
    assert gpu_models()["H100-96GB"].product is None
    assert gpu_models()["H20-3e"].mig_capable is None, "the vendor's tables do not name it"
    assert gpu_models()["T4"].mig_capable is False
    assert gpu_models()["T4"].min_driver is None
