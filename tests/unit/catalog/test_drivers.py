"""Driver branches, known-bad versions, CUDA against driver, version order."""

from itertools import pairwise

import pytest
from gpufleet.catalog import (
    component,
    cuda_compat_unknown,
    cuda_full_driver,
    cuda_image_branches,
    cuda_min_driver,
    driver_branch,
    driver_branches,
    driver_version,
    gpu_models,
    operator_drivers,
)


def cuda_order(text: str) -> tuple[int, ...]:
    version, _, update = text.partition(" U")
    return (*map(int, version.split(".")), int(update or 0))


def test_versions_compare_field_by_field() -> None:
    assert driver_version("570.26") < driver_version("570.124.06")
    assert driver_version("580.9.1") < driver_version("580.10")
    assert driver_version("580") < driver_version("580.65.06") < driver_version("595.45.04")
    assert driver_version("v1.20.0") == driver_version("1.20.0")
    assert driver_version("580.126.09").branch == 580
    assert driver_version("580.65.06") == driver_version("580.65.6"), "a leading zero is no digit"


@pytest.mark.parametrize("text", ["", "latest", "580.", "580.x", "580.126.09-1", "٥٨٠", "-580"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        driver_version(text)


def test_branches_hold_their_newest_version() -> None:
    for branch in driver_branches().values():
        if branch.newest_seen is not None:
            assert driver_version(branch.newest_seen).branch == branch.branch
        assert branch.kernel_modules in ("proprietary", "both", "open")
        assert branch.kind in ("LTS", "production", "new-feature", None)
    assert list(driver_branches()) == sorted(driver_branches())


@pytest.mark.parametrize(
    ("branch", "kind", "eol", "modules"),
    [("535", "LTS", "2026-06", "both"), ("570", "production", "2026-02", "both"), ("580", "LTS", "2028-06", "both"),
     ("595", "production", "2027-03", "both"), ("610", "new-feature", "2026-08", "both"),
     ("620", "LTS", "2029-09", "open"), ("615", None, None, "both"), ("450", None, None, "proprietary")],
)  # fmt: skip
def test_branch_facts(branch: str, kind: str | None, eol: str | None, modules: str) -> None:
    row = driver_branch(branch)
    assert row is not None
    assert (row.kind, row.eol, row.kernel_modules) == (kind, eol, modules)


def test_branch_of_a_version_and_unknown_branches() -> None:
    assert driver_branch("580.126.09") is driver_branch(580) is driver_branches()[580]
    assert driver_branch("581") is None
    assert driver_branches()[620].newest_seen is None, "no source names an exact version"


def test_branches_are_open_from_515_and_only_open_from_620() -> None:
    for number, row in driver_branches().items():
        assert row.kernel_modules == ("proprietary" if number < 515 else "both" if number < 620 else "open")


def test_operator_lists_its_default() -> None:
    assert operator_drivers()[:2] == ("610.57.04", "595.91.07")
    assert component("operator-driver").version in operator_drivers()
    assert all(driver_branch(version) for version in operator_drivers())


def test_cuda_tables_are_monotone() -> None:
    full = cuda_full_driver()
    assert list(full) == sorted(full, key=cuda_order)
    for older, newer in pairwise(full):
        assert driver_version(full[older]) < driver_version(full[newer]), f"{older} and {newer}"
    floors = cuda_min_driver()
    assert [driver_version(v) for v in floors.values()] == sorted(driver_version(v) for v in floors.values())


@pytest.mark.parametrize(("major", "driver"), [(11, "450.80.02"), (12, "525.60.13"), (13, "580.65.06")])
def test_cuda_floor(major: int, driver: str) -> None:
    assert cuda_min_driver()[major] == driver
    for version, full in cuda_full_driver().items():
        if cuda_order(version)[0] == major:
            assert driver_version(full) >= driver_version(driver)


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [("11.8", "520.61.05"), ("12.0 U1", "525.85.12"), ("12.4", "550.54.14"), ("12.4 U1", "550.54.15"),
     ("12.8", "570.26"), ("12.9 U1", "575.57.08"), ("13.0 U2", "580.95.05"), ("13.1 U1", "590.48.01"),
     ("13.2 U1", "595.58.03"), ("13.3", "610.43.02")],
)  # fmt: skip
def test_driver_of_a_cuda_release(cuda: str, driver: str) -> None:
    assert cuda_full_driver()[cuda] == driver
    assert driver_branch(driver) is not None


def test_images_let_older_branches_pass_than_the_one_of_their_version() -> None:
    for version, branches in cuda_image_branches().items():
        own = driver_version(cuda_full_driver()[version]).branch
        assert list(branches) == sorted(branches) and all(b < own for b in branches), version
    assert cuda_image_branches()["12.4"] == (470, 525, 535)
    assert cuda_image_branches()["13.0"] == (535, 550, 565, 570, 575)
    assert set(cuda_image_branches()) == {v for v in cuda_full_driver() if " " not in v}


def test_forward_compatibility_is_doubted_for_real_models_only() -> None:
    """RTX cards and vGPUs; every other model is a data-centre GPU."""
    doubted = cuda_compat_unknown()
    assert doubted == {m.id for m in gpu_models().values() if m.virtual or m.id.startswith("RTX")}
