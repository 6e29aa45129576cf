"""The local repositories: the binary format, and names, versions and dependencies as the catalogue has them."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from functools import cache

import pytest
from gpufleet.catalog import reading

from twin.hosts import deb, payloads, repository, runfile, scenarios

CONTEXT = payloads.Context()
DATA = repository.table()


@cache
def cuda() -> dict[tuple[str, str], deb.Package]:
    """Every package of the CUDA repository by name and version."""
    return {(p.name, p.version): p for p in repository.driver_packages(repository.table(), CONTEXT)}


def names(version: str) -> set[str]:
    """Names of the packages that carry a driver version."""
    return {name for name, full in cuda() if full == f"{version}-1"}


def members(data: bytes) -> dict[str, bytes]:
    """Split an ar archive."""
    assert data.startswith(b"!<arch>\n")
    found, at = {}, 8
    while at < len(data):
        name, size = data[at : at + 16].decode().strip(), int(data[at + 48 : at + 58])
        found[name] = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return found


def test_a_package_is_what_dpkg_expects() -> None:
    package = deb.Package(
        "a", "1:2-3", files={"/usr/bin/x": deb.Entry(b"#!/bin/sh\n", 0o755), "/l": deb.Entry(target="x")}
    )
    package.scripts["postinst"] = "#!/bin/sh\n"
    package.conffiles = ["/etc/c"]
    parts = members(package.data())
    assert list(parts) == ["debian-binary", "control.tar.gz", "data.tar.gz"]
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(parts["control.tar.gz"]))) as control:
        assert {member.name for member in control} == {".", "./control", "./postinst", "./conffiles"}
        assert control.getmember("./postinst").mode == 0o755
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(parts["data.tar.gz"]))) as content:
        listed = {member.name: member.linkname for member in content}
    assert listed == {".": "", "./l": "x", "./usr": "", "./usr/bin": "", "./usr/bin/x": ""}
    assert package.filename == "a_2-3_amd64.deb"  # the epoch is not part of the file name


def test_the_same_input_gives_the_same_bytes() -> None:
    assert [package.data() for package in repository.driver_packages(repository.table(), CONTEXT)] == [
        package.data() for package in repository.driver_packages(repository.table(), CONTEXT)
    ]


def expand(text: str, version: str) -> str:
    return text.replace("<branch>", version.split(".", maxsplit=1)[0]).replace("<version>", version)


@pytest.mark.parametrize("driver", repository.table()["drivers"], ids=lambda driver: driver["version"])
def test_every_name_of_the_catalogue_exists_for_its_branch(driver: dict[str, object]) -> None:
    version = str(driver["version"])
    branch = int(version.split(".", maxsplit=1)[0])
    rows = [row for row in reading.rows("packages", "package_names") if row["repo"] == "cuda"]
    row = next(
        row for row in rows
        if row["os_family"] == "debian" and (row["min_branch"] or 0) <= branch <= (row["max_branch"] or 9999)
    )  # fmt: skip
    wanted = [name for name in row["driver_meta"].values() if name]
    wanted += [name for group in row["compute_only"].values() for name in group or []]
    if driver.get("fabric", True):
        wanted += [row[key] for key in ("fabric_manager", "fabric_manager_devel", "nscq", "nvsdm", "imex") if row[key]]
    assert {expand(name, version) for name in wanted} <= names(version)
    pinning = {expand(name, version) for name in row["pinning"] or []}
    assert pinning <= {name for name, _ in cuda()}


def test_names_change_where_the_vendor_changed_them() -> None:
    before, after = names("580.95.05"), names("590.48.01")
    assert {"nvidia-driver-580-open", "libnvidia-compute-580", "cuda-drivers-580", "nvidia-fabricmanager"} <= before
    assert {"nvidia-driver-open", "libnvidia-compute", "cuda-drivers"} <= after
    assert not any(name.endswith("-590") or "-590-" in name for name in after)
    assert {"nvidia-fabricmanager-570", "libnvidia-nscq-570", "libnvsdm-570", "nvidia-imex-570"} <= names("570.133.20")
    assert "nvidia-fabricmanager-580" in cuda()["nvidia-fabricmanager", "580.95.05-1"].relations["Provides"]


def test_proprietary_modules_end_with_620() -> None:
    assert "cuda-drivers" in names("615.71.09") and "cuda-drivers" not in names("620.30.01")
    assert "nvidia-dkms" not in names("620.30.01") and "nvidia-dkms-open" in names("620.30.01")


def test_a_meta_package_asks_for_at_least_its_version_and_does_not_pin() -> None:
    meta = cuda()["cuda-drivers-535", "535.216.03-1"]
    assert meta.relations["Depends"] == ["nvidia-driver-535 (>= 535.216.03-1)"]


def test_one_driver_has_no_fabric_manager() -> None:
    assert "nvidia-driver-535" in names("535.183.01")
    assert not any("fabricmanager" in name for name in names("535.183.01"))


def test_fabric_manager_and_libraries_depend_on_no_driver_of_another_version() -> None:
    for (name, version), package in cuda().items():
        for relation in package.relations.get("Depends", []):
            if match := re.search(r"\((=|>=) ([^)]+)\)", relation):
                assert match[2] == version, f"{name} {version}: {relation}"


@pytest.mark.parametrize("suite", repository.table()["distribution"])
def test_every_dependency_of_the_repositories_exists_somewhere(suite: str) -> None:
    data = repository.table()
    everything = [*cuda().values(), *repository.toolkit_packages(data, CONTEXT)]
    everything += [package for _, package in repository.distribution_packages(data, suite, "6.1.0-twin")]
    everything += repository.archive_packages(data, CONTEXT, "6.1.0-twin")
    known = {package.name for package in everything} | {"runc"}
    for package in everything:
        known |= set(package.relations.get("Provides", []))
    for package in everything:
        for relation in package.relations.get("Depends", []):
            for choice in relation.split("|"):
                assert choice.split()[0] in known, f"{package.name}: {relation}"


def test_the_archive_of_ubuntu_has_the_names_of_the_catalogue() -> None:
    row = next(row for row in reading.rows("packages", "package_names") if row["id"] == "ubuntu-archive")
    packages = {p.name: p for p in repository.archive_packages(repository.table(), CONTEXT, "6.8.0-60-generic")}
    wanted = [*row["driver_meta"].values(), *row["signed_modules"].values(), row["utils"], row["fabric_manager"]]
    for version in repository.table()["archive"]["drivers"]:
        assert {expand(name, version).replace("<kernel flavour>", "generic") for name in wanted} <= set(packages)
    # The archive's fabric manager pairs with the -server flavour of exactly its version.
    assert packages["nvidia-fabricmanager-535"].relations["Depends"] == ["nvidia-kernel-common-535-server-535.309.01"]
    assert (
        "nvidia-kernel-common-535-server-535.309.01"
        in packages["nvidia-kernel-common-535-server"].relations["Provides"]
    )


def test_toolkit_packages_demand_each_other_exactly() -> None:
    packages = {(p.name, p.version): p for p in repository.toolkit_packages(repository.table(), CONTEXT)}
    assert packages["nvidia-container-toolkit", "1.20.0-1"].relations["Depends"] == [
        "nvidia-container-toolkit-base (= 1.20.0-1)",
        "libnvidia-container-tools (= 1.20.0-1)",
    ]


def test_the_keyring_brings_the_vendors_own_source_and_a_pin() -> None:
    package = repository.keyring_package("1.1-1", "debian12", b"key")
    source = package.files["/etc/apt/sources.list.d/cuda-debian12-x86_64.list"].content.decode()
    assert "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/ /" in source
    assert b"Pin-Priority: 600" in package.files["/etc/apt/preferences.d/cuda-repository-pin-600"].content


@pytest.mark.parametrize(("suite", "compiler"), [("bookworm", "gcc-12"), ("trixie", "gcc-14")])
def test_a_suite_has_headers_of_the_running_kernel_and_its_own_compiler(suite: str, compiler: str) -> None:
    found = {package.name: package for _, package in repository.distribution_packages(DATA, suite, "6.1.0-9")}
    assert {"linux-headers-6.1.0-9", "linux-image-6.1.0-9", "linux-headers-6.99.1-twin"} <= set(found)
    assert found["gcc"].files["/usr/bin/cc"].target == compiler
    answer = found[compiler].files[f"/usr/bin/{compiler}"].content.decode()
    assert f"-dumpversion) echo {compiler.removeprefix('gcc-')} ;;" in answer


def test_directories_and_keys_are_those_of_the_catalogue() -> None:
    """A directory has a key of its own in the twin exactly where the vendor has one, and every suite's is served."""
    keys = [row for row in reading.rows("host_repositories", "repository_keys") if row["manager"] == "apt"]
    assert DATA["resigned"] == [row["directory"] for row in keys if not row["sha1"]]
    assert {row["file"]: row["sha1"] for row in keys} == {"3bf863cc.pub": True, "8793F200.pub": False}
    assert (repository.KEYS["cuda"], repository.KEYS["resigned"]) == ("SHA1", "SHA512")
    assert {values["cuda_directory"] for values in DATA["distribution"].values()} <= set(DATA["cuda_directories"])
    assert set(DATA["keyrings"]) == set(DATA["cuda_directories"])
    assert set(DATA["distribution"]) == set(scenarios.SUITES.values())


def test_the_run_file_carries_its_version() -> None:
    assert "version=580.95.05\n" in runfile.text("580.95.05")
    assert "@" not in re.sub(r'\$@|"\$@"', "", runfile.text("580.95.05"))
