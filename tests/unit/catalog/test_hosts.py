"""Tables that the host roles read: PCI ids, packages, repositories, fabric."""

import pytest
from gpufleet.catalog import (
    architecture_directory,
    driver_branches,
    gpu_models,
    package_names,
    packages_for,
    pci_gpu,
    pci_gpus,
    reading,
    repo_directories,
)
from gpufleet.catalog.packages import FABRIC_ROLES


def test_pci_ids_name_models() -> None:
    for row in pci_gpus():
        assert row.gpu in gpu_models()
        assert row.device == row.device.lower()
        assert len(row.device) == 4
        product = gpu_models()[row.gpu].product
        assert row.name is None or row.name.replace(" ", "-") == product, "the label is the driver's name of the card"


def test_cards_without_a_pci_id_are_known() -> None:
    """A vGPU has the id of its card; every other model can be told on a host without a driver."""
    missing = {m.id for m in gpu_models().values() if not m.virtual} - {row.gpu for row in pci_gpus()}
    assert missing == set()


@pytest.mark.parametrize(
    ("device", "subsystem", "gpu"),
    [("2330", None, "H100-SXM5-80GB"), ("0x2335", None, "H200"), ("20B5", "0x1533", "A100-80GB-PCIe"),
     ("1eb8", None, "T4"), ("1db4", None, "V100-PCIE-16GB"), ("25b6", "157e", "A2"), ("25B6", "0x14A9", "A16"),
     ("25b6", None, None), ("2bb3", "227a", None), ("2204", None, None)],
)  # fmt: skip
def test_gpu_of_a_pci_device(device: str, subsystem: str | None, gpu: str | None) -> None:
    row = pci_gpu(device, subsystem)
    assert (row.gpu if row else None) == gpu


def test_nvswitch_ids() -> None:
    assert {row["device"]: row["generation"] for row in reading.rows("pci", "pci_nvswitches")} == {"1af1": 2, "22a3": 3}


@pytest.mark.parametrize("branch", driver_branches())
@pytest.mark.parametrize("family", ["debian", "redhat"])
def test_every_branch_has_one_package_scheme(branch: int, family: str) -> None:
    fits = [
        row for row in package_names()
        if (row.method, row.os_family) == ("cuda_repo", family)
        and (row.min_branch or 0) <= branch <= (row.max_branch or 10**6)
    ]  # fmt: skip
    assert fits == [packages_for(branch, family)]


@pytest.mark.parametrize(
    ("branch", "family", "fabric_manager", "nscq", "imex", "open_name", "closed_name"),
    [(535, "debian", "nvidia-fabricmanager-<branch>", "libnvidia-nscq-<branch>", None, "nvidia-open",
      "cuda-drivers-<branch>"),
     (570, "debian", "nvidia-fabricmanager-<branch>", "libnvidia-nscq-<branch>", "nvidia-imex-<branch>", "nvidia-open",
      "cuda-drivers-<branch>"),
     (580, "debian", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-imex", "nvidia-open", "cuda-drivers-<branch>"),
     (590, "debian", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-imex", "nvidia-open", "cuda-drivers"),
     (620, "debian", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-imex", "nvidia-open", None),
     (570, "redhat", "nvidia-fabric-manager", "libnvidia-nscq-<branch>", "nvidia-imex-<branch>", "nvidia-open",
      "cuda-drivers"),
     (580, "redhat", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-imex", "nvidia-open", "cuda-drivers"),
     (620, "redhat", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-imex", "nvidia-open", None)],
)  # fmt: skip
def test_package_names_by_branch(
    branch: int, family: str, fabric_manager: str, nscq: str, imex: str | None, open_name: str, closed_name: str | None
) -> None:
    row = packages_for(branch, family)
    assert row is not None
    meta = row.driver_meta
    found = (row.fabric_manager, row.nscq, row.imex, meta["open"], meta["proprietary"])
    assert found == (fabric_manager, nscq, imex, open_name, closed_name)


def test_bound_packages_exist() -> None:
    """A package that must carry the driver's version has a name in that range."""
    for row in package_names():
        assert set(row.version_bound) == {role for role in FABRIC_ROLES if row.name(role)}, row.id


def test_repository_directories() -> None:
    found = {name: row.directory for name, row in repo_directories().items()}
    assert found["ubuntu-24.04"] == "ubuntu2404"
    assert found["rocky-9"] == found["ol-9"] == "rhel9"
    assert found["openEuler-22.03"] is None
    assert all((row.directory is None) == (row.status == "none") for row in repo_directories().values())


def test_arm_servers_are_called_sbsa() -> None:
    assert [architecture_directory(m) for m in ("x86_64", "aarch64", "riscv64")] == ["x86_64", "sbsa", None]


def test_platforms_are_told_apart_by_support() -> None:
    rows = {row["platform"]: row for row in reading.rows("platforms", "platforms")}
    assert {p for p, row in rows.items() if row["support"] == "first-class"} == {
        "ubuntu-22.04", "ubuntu-24.04", "ubuntu-26.04", "debian-12", "debian-13", "rhel-9", "rhel-10",
    }  # fmt: skip
    assert {p for p, row in rows.items() if row["support"] == "refused"} == {
        "rhel-8", "kylin-V10", "openEuler-20.03", "anolis",
    }  # fmt: skip
    assert all(row.get("reason") for row in rows.values() if row["support"] == "refused")
    for name, row in rows.items():
        if "cuda_repo" in row["routes"]:
            assert repo_directories()[name].directory is not None


def test_fabric_platforms_name_models() -> None:
    rows = reading.rows("fabric", "fabric_platforms")
    named = [gpu for row in rows for gpu in row["gpus"]]
    assert set(named) <= set(gpu_models())
    assert len(named) == len(set(named)), "a model decides for one platform"
    needs = {row["id"]: (row["roles"], row["vendor_packages"], row["unit"]) for row in rows}
    assert needs == {
        "hgx-a100-h100-h200": (["fabric_manager", "nscq"], [], "nvidia-fabricmanager.service"),
        "hgx-b200-b300": (["fabric_manager", "nscq", "nvsdm"], ["nvlsm"], "nvidia-fabricmanager.service"),
        "nvl72": (["imex"], [], "nvidia-imex.service"), "none": ([], [], None),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("system", "row"), [("ubuntu", "ubuntu-archive"), ("debian", None), ("madeup", None)]
)  # fmt: skip
def test_names_of_one_distribution_are_no_names_of_another(system: str, row: str | None) -> None:
    found = packages_for(580, "debian", "distro", system)
    assert (found.id if found else None) == row
