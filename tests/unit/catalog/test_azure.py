"""Azure sizes, AKS facts, and the fields of the installed SDK."""

import importlib.metadata
import inspect

import pytest
from gpufleet.catalog import (
    AzureSize,
    aks_mig_instances,
    aks_node_driver,
    aks_node_drivers,
    aks_versions,
    azure_native_fields,
    azure_size,
    azure_sizes,
    component,
    driver_branch,
    driver_version,
    gpu_model,
    gpu_models,
    reading,
)
from gpufleet.catalog.azure import aks_node_os

SIZES = list(azure_sizes().values())


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s.size)
def test_size_has_plausible_values(size: AzureSize) -> None:
    assert size.size.startswith("Standard_N")
    assert size.driver_family in ("cuda", "grid", "amd", "none")
    assert size.arch in ("amd64", "arm64")
    assert size.status in ("supported", "retiring", "unsupported", "unverified")
    for flag in (size.mig, size.nvswitch):
        assert flag in (True, False, None)
    assert size.scarce in (True, False)
    if size.cards is not None:
        assert size.gpus_schedulable == max(1, size.cards), "a part of a card is one device"
    if size.status == "supported":
        assert None not in (size.gpus_schedulable, size.cards, size.memory_gib_per_gpu, size.mig, size.nvswitch)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s.size)
def test_size_resolves_to_model_architecture_and_branch(size: AzureSize) -> None:
    if size.gpu is None:
        assert size.driver_family == "amd", "only AMD's sizes have no NVIDIA model"
        return
    assert size.gpu in gpu_models()
    model = gpu_models()[size.gpu]
    driver = aks_node_driver(size)
    assert (driver is None) == (size.driver_family == "none")
    if driver is not None:
        version = driver_version(driver.version)
        assert driver_branch(driver.version) is not None
        assert model.newest_driver_branch is None or version.branch <= model.newest_driver_branch
        assert model.min_driver is None or driver_version(model.min_driver) <= version
    if size.memory_gib_per_gpu is not None and model.memory_gib is not None:
        assert size.memory_gib_per_gpu == pytest.approx(model.memory_gib, rel=0.05)
    if size.mig:
        assert size.gpu in {m.id for m in gpu_models().values() if m.mig_aks}, "AKS can cut it"
    if size.mig is False and size.status == "supported":
        assert not model.mig_capable


@pytest.mark.parametrize(
    ("name", "gpus", "cards", "gpu", "family", "mig", "nvswitch"),
    [("Standard_NC4as_T4_v3", 1, 1, "T4", "cuda", False, False),
     ("Standard_NC64as_T4_v3", 4, 4, "T4", "cuda", False, False),
     ("Standard_NC96ads_A100_v4", 4, 4, "A100-80GB-PCIe", "cuda", True, False),
     ("Standard_NC80adis_H100_v5", 2, 2, "H100-NVL", "cuda", True, False),
     ("Standard_ND96asr_v4", 8, 8, "A100-SXM4-40GB", "cuda", True, True),
     ("Standard_ND96amsr_A100_v4", 8, 8, "A100-SXM4-80GB", "cuda", True, True),
     ("Standard_ND96isr_H200_v5", 8, 8, "H200", "cuda", True, True),
     ("Standard_NV6ads_A10_v5", 1, 0.1667, "A10-4Q", "grid", False, False),
     ("Standard_NV72ads_A10_v5", 2, 2, "A10-24Q", "grid", False, False),
     ("Standard_ND96isr_MI300X_v5", 8, 8, None, "amd", False, False),
     ("Standard_NC6s_v3", 1, 1, "V100-PCIE-16GB", "cuda", False, False)],
)  # fmt: skip
def test_sizes_that_users_name(
    name: str, gpus: int, cards: float, gpu: str | None, family: str, mig: bool, nvswitch: bool
) -> None:
    size = azure_size(name)
    assert size is not None
    found = (size.gpus_schedulable, size.cards, size.gpu, size.driver_family, size.mig, size.nvswitch)
    assert found == (gpus, cards, gpu, family, mig, nvswitch)


def test_eight_a100_with_mig1g_make_56() -> None:
    size = azure_size("Standard_ND96asr_v4")
    assert size is not None
    model = gpu_model(size.gpu or "")
    assert model is not None
    assert (size.gpus_schedulable or 0) * model.mig_profiles[model.mig_aks["MIG1g"]] == 56
    assert aks_mig_instances() == {"MIG1g": 7, "MIG2g": 3, "MIG3g": 2, "MIG4g": 1, "MIG7g": 1}


def test_scarce_sizes_are_nd_and_h100() -> None:
    scarce = {size.size for size in SIZES if size.scarce}
    assert scarce == {s.size for s in SIZES if s.size.startswith("Standard_ND") or "_H100_" in s.size}


def test_size_names_ignore_case_and_unknown_names_give_none() -> None:
    assert azure_size("standard_nc4AS_t4_V3") is azure_sizes()["Standard_NC4as_T4_v3"]
    assert azure_size("Standard_NC5as_T4_v3") is None
    assert azure_size("Standard_D4s_v5") is None


def test_unknown_stays_none() -> None:
    size = azure_sizes()["Standard_ND128isr_NDR_GB200_v6"]
    assert (size.memory_gib_per_gpu, size.mig, size.nvswitch) == (None, None, None)
    assert azure_sizes()["Standard_NC8ads_A10_v4"].cards is None


@pytest.mark.parametrize(
    ("name", "artifact", "version"),
    [("Standard_NC4as_T4_v3", "aks-gpu-cuda", "580.126.09"), ("Standard_NC6s_v3", "aks-gpu-cuda", "580.126.09"),
     ("Standard_NV36ads_A10_v5", "aks-gpu-grid", "570.211.01"),
     ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", "aks-gpu-grid-v20", "595.58.03")],
)  # fmt: skip
def test_driver_of_the_node_image(name: str, artifact: str, version: str) -> None:
    size = azure_size(name)
    assert size is not None
    driver = aks_node_driver(size)
    assert driver is not None
    assert (driver.artifact, driver.version) == (artifact, version)


def test_arm_and_amd_get_no_driver_of_aks() -> None:
    for name in ("Standard_ND128isr_GB300_v6", "Standard_ND96isr_MI300X_v5"):
        assert aks_node_driver(azure_sizes()[name]) is None
    assert {g for row in aks_node_drivers() for g in row.gpus} <= set(gpu_models())


def test_kubernetes_calendar_of_aks() -> None:
    assert {v.version: v.eol for v in aks_versions().values()} == {
        "1.34": "2026-11", "1.35": "2027-03", "1.36": "2027-06", "1.37": "2027-10",
    }  # fmt: skip
    assert aks_versions()["1.34"].lts_eol == "2027-11"


def test_gpu_profile_fields_are_those_of_the_installed_sdk() -> None:
    from pulumi_azure_native import containerservice

    parameters = inspect.signature(containerservice.GPUProfileArgs.__init__).parameters
    keywords = tuple(name for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY)
    assert azure_native_fields("GPUProfileArgs") == keywords
    assert component("pulumi-azure-native").version == importlib.metadata.version("pulumi-azure-native")


@pytest.mark.parametrize("row", reading.rows("aks", "azure_native_enums"), ids=lambda row: row["enum"])
def test_enums_are_those_of_the_installed_sdk(row: reading.Row) -> None:
    from pulumi_azure_native import containerservice

    assert set(row["members"]) == {str(member.value) for member in getattr(containerservice, row["enum"])}


@pytest.mark.parametrize(
    ("sku", "kubernetes", "expected"),
    [
        ("Ubuntu", "1.33", "ubuntu-22.04"),
        ("Ubuntu", "1.34.1", "ubuntu-24.04"),
        ("Ubuntu", "1.9", "ubuntu-22.04"),
        ("Ubuntu", None, None),
        ("Ubuntu2204", None, "ubuntu-22.04"),
        ("Ubuntu2204", "1.36", "ubuntu-22.04"),
        ("AzureLinux", "1.36", None),
    ],
)
def test_the_operating_system_of_nodes(sku: str, kubernetes: str | None, expected: str | None) -> None:
    assert aks_node_os(sku, kubernetes) == expected
