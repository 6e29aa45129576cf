"""CUDA against drivers: what an image needs, what a driver gives, and what is known of a pool's driver.

The expected values are those of NVIDIA's compatibility guide, release notes and image texts, typed here a second time.
"""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.catalog import (
    cuda_full_driver,
    cuda_image_branches,
    cuda_min_driver,
    driver_branches,
    driver_version,
    gpu_model,
)
from gpufleet.catalog.cuda import (
    Fit,
    Required,
    branch_bounds,
    driver_cuda,
    fit,
    forward_compatible,
    newest_cuda_major,
    required_cuda,
    satisfied,
)

from tests.unit.config.samples import compile_base


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("nvidia/cuda:12.4.1-base-ubuntu22.04", "12.4"),
        ("docker.io/nvidia/cuda:11.8.0-devel", "11.8"),
        ("nvcr.io/nvidia/cuda:13.0.2-runtime-ubuntu24.04", "13.0"),
        ("registry.example.com:5000/mirror/cuda:12.8.1-base", "12.8"),
        ("nvidia/cuda:9.2-base", "9.2"),
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime", "12.1"),
        ("nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1", "11.7"),
        ("vllm/vllm-openai:v0.28.0-cu129", "12.9"),
        ("registry/x:5000/app:1-cu118", "11.8"),
        ("app:cu124-py3", "12.4"),
        ("tensorflow/tensorflow:2.15.0-gpu", None),
        ("app:customcu12", None),
        ("barracuda:12.4", None),
        ("", None),
    ],
)
def test_cuda_of_an_image(image: str, version: str | None) -> None:
    found = required_cuda(image, {})
    assert (found.version if found else None) == version


def test_only_base_images_of_cuda_bring_a_condition_of_their_own() -> None:
    def branches(image: str) -> tuple[int, ...] | None:
        found = required_cuda(image, {})
        return found.branches if found else None

    assert branches("nvidia/cuda:12.4.1-base") == branches("mirror.example/cuda:12.4.1-base") == (470, 525, 535)
    assert branches("pytorch/pytorch:2.4.0-cuda12.4-cudnn9") is None
    assert branches("nvidia/cuda:11.2.2-base") is None  # not in the table


def test_the_variable_counts_before_the_tag() -> None:
    env = {"NVIDIA_REQUIRE_CUDA": "cuda>=12.6 brand=tesla,driver>=535,driver<536"}
    found = required_cuda("nvidia/cuda:11.8.0", env)
    assert found is not None and (found.version, found.said_by) == ("12.6", "NVIDIA_REQUIRE_CUDA")
    assert required_cuda("nvidia/cuda:11.8.0", {"NVIDIA_DISABLE_REQUIRE": "1"}) is None


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("470.82.01", None),
        ("520.61.05", (11, 8)),
        ("535.183.01", (12, 2)),
        ("570.26", (12, 8)),
        ("580.65.06", (13, 0)),
        ("580.178.04", (13, 0)),
        ("595.91.07", (13, 2)),
    ],
)
def test_cuda_of_a_driver(driver: str, cuda: tuple[int, int] | None) -> None:
    assert driver_cuda(driver) == cuda


@pytest.mark.parametrize(
    ("condition", "driver", "holds"),
    [
        ("cuda>=12.2", "535.183.01", True),
        ("cuda>=12.4", "535.183.01", False),
        ("cuda>=12.4 brand=tesla,driver>=535,driver<536", "535.183.01", True),
        ("cuda>=12.4 brand=tesla,driver>=470,driver<471", "535.183.01", False),
        ("driver>=470", "470.82.01", True),
        ("", "470.82.01", True),
        ("nonsense", "470.82.01", True),
    ],
)
def test_conditions(condition: str, driver: str, holds: bool) -> None:
    assert satisfied(condition, driver) is holds


FULL, MINOR, FORWARD, REFUSED, NO_CODE = Fit


@pytest.mark.parametrize(
    ("image", "driver", "verdict"),
    [
        # a driver runs all that is older than itself
        ("app:1-cuda12.8", "570.26", FULL),
        ("app:1-cuda12.8", "595.91.07", FULL),
        ("app:1-cu118", "620.1", FULL),
        ("nvidia/cuda:10.2-base", "535.183.01", FULL),
        # minor-version mode: from the floor of the major version on
        ("app:1-cuda12.8", "570.25", MINOR),
        ("app:1-cuda12.9", "525.60.13", MINOR),
        ("app:1-cuda13.2", "580.65.06", MINOR),
        ("app:1-cu118", "450.80.02", MINOR),
        # below the floor
        ("app:1-cuda12.0", "525.60.12", REFUSED),
        ("app:1-cuda13.0", "580.65.05", REFUSED),
        ("app:1-cuda13.0", "575.64.05", REFUSED),
        ("app:1-cu118", "450.80.01", REFUSED),
        # base images of CUDA decide by the driver's branch
        ("nvidia/cuda:13.0.2-base", "575.64.05", FORWARD),
        ("nvidia/cuda:13.0.2-base", "560.35.05", REFUSED),
        ("nvidia/cuda:13.0.2-base", "535.309.01", FORWARD),
        ("nvidia/cuda:12.4.1-base", "535.183.01", MINOR),
        ("nvidia/cuda:12.4.1-base", "545.23.06", REFUSED),
        ("nvidia/cuda:12.4.1-base", "470.82.01", FORWARD),
        ("nvidia/cuda:12.4.1-base", "550.54.14", FULL),
        # beyond the table: a newer minor version of a known major one, and a major version that is not out yet
        ("app:1-cuda13.9", "610.57.04", FULL),
        ("app:1-cu140", "615.71.09", REFUSED),
        ("app:1-cu140", "700.10", FULL),
    ],
)
def test_fit(image: str, driver: str, verdict: Fit) -> None:
    needs = required_cuda(image, {})
    assert needs is not None and fit(needs, driver) is verdict


def test_every_cuda_version_runs_in_full_on_its_own_driver_and_not_on_the_one_before() -> None:
    """The driver one step below is at best in minor-version mode, whatever the release."""
    for version, driver in cuda_full_driver().items():
        if " " in version:
            continue
        major, minor = map(int, version.split("."))
        needs = Required(major, minor, "image")
        assert fit(needs, driver) is FULL
        fields = list(driver_version(driver).fields)
        fields[-1] -= 1
        assert fit(needs, ".".join(map(str, fields))) in (MINOR, REFUSED), version


def test_every_floor_divides_minor_version_mode_from_refusal() -> None:
    for major, floor in cuda_min_driver().items():
        needs = Required(major, 99, "image")
        fields = list(driver_version(floor).fields)
        fields[-1] -= 1
        assert fit(needs, floor) is FULL  # a release that the table does not know
        assert fit(needs, ".".join(map(str, fields))) is REFUSED


def test_base_images_are_refused_on_every_branch_between_that_they_do_not_list() -> None:
    for version, branches in cuda_image_branches().items():
        needs = required_cuda(f"nvidia/cuda:{version}.0-base", {})
        assert needs is not None
        own = driver_version(cuda_full_driver()[version]).branch
        for branch in (470, 510, 525, 530, 535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595):
            if branch < own:
                verdict = fit(needs, f"{branch}.999")
                assert (verdict is REFUSED) == (branch not in branches), (version, branch, verdict)


def test_cuda_compat_lifts_what_would_be_refused_or_minor() -> None:
    needs = Required(13, 1, "image")
    assert [fit(needs, d, compat=True) for d in ("535.309.01", "580.65.06", "590.48.01")] == [FORWARD, FORWARD, FULL]


@pytest.mark.parametrize(
    ("gpu", "newest"),
    [
        ("V100-SXM2-32GB", 12),
        ("P100-PCIE-16GB", 12),
        ("P4", 12),
        ("T4", None),
        ("A100-SXM4-80GB", None),
        ("B200", None),
    ],
)
def test_cuda_13_leaves_volta_and_older_behind(gpu: str, newest: int | None) -> None:
    model = gpu_model(gpu)
    assert model is not None and newest_cuda_major(model.compute_capability) == newest
    verdict = fit(Required(13, 0, "image"), "580.126.09", newest, compat=True)
    assert verdict is (NO_CODE if newest else FULL)
    assert newest_cuda_major(None) is None and newest_cuda_major("6.9") is None


@pytest.mark.parametrize(
    ("gpu", "works"), [("T4", True), ("H200", True), ("RTX-PRO-4500-Blackwell", None), ("A10-8Q", None)]
)
def test_forward_compatibility_is_claimed_for_data_centre_gpus_only(gpu: str, works: bool | None) -> None:
    assert forward_compatible(gpu_model(gpu)) is works
    assert forward_compatible(None) is None


def known(base: str, **pool: Any) -> tuple[str, str, bool] | None:
    fleet = compile_base(base, {f"pools[0].{k}": v for k, v in pool.items()}).fleet
    assert fleet is not None
    found = fleet.pools[0].driver
    return (found.low, found.high, found.certain) if found else None


@pytest.mark.parametrize(
    ("base", "pool", "driver"),
    [
        ("aks-operator", {}, ("595.91.07", "595.91.07", True)),  # the operator's default
        ("aks-operator", {"driverBranch": "580"}, ("580.173.02", "580.173.02", True)),  # what its release lists
        ("existing-plugin", {"driverVersion": "570.124.06"}, ("570.124.06", "570.124.06", True)),
        ("existing-plugin", {"driverBranch": "580"}, ("580.65.06", "580.178.04", True)),  # first and newest release
        ("existing-plugin", {}, None),
        ("aks-plugin", {}, ("580.126.09", "580.126.09", False)),  # the node image of the day
        ("aks-plugin", {"vmSize": "Standard_NV36ads_A10_v5"}, ("570.211.01", "570.211.01", False)),
        ("aks-plugin", {"driver": "none"}, None),
    ],
)
def test_driver_of_a_pool(base: str, pool: dict[str, Any], driver: tuple[str, str, bool] | None) -> None:
    assert known(base, **pool) == driver


def test_bounds_of_a_branch_that_no_cuda_release_came_with() -> None:
    found = branch_bounds("615")
    assert (found.low, found.high) == ("615.71.09", "615.71.09")
    assert (branch_bounds("620").low, branch_bounds("620").high) == ("620", "620")


def test_a_branch_decides_for_all_of_its_versions() -> None:
    """So the plan may judge a pool by its branch alone, against every image that the tables know."""
    images = [f"{kind}{v}" for v in cuda_full_driver() if " " not in v for kind in ("app:1-cuda", "nvidia/cuda:")]
    for branch in driver_branches():
        bounds = branch_bounds(str(branch))
        for image in images:
            needs = required_cuda(image, {})
            assert needs is not None
            assert fit(needs, bounds.low) is fit(needs, bounds.high), (branch, image)


def test_nothing_is_concluded_from_a_driver_that_was_not_read() -> None:
    team = {"name": "x", "namespace": "x", "pools": ["t4"], "images": ["app:1-cu130"]}
    for wrong in ({"pools[0].driverBranch": 570}, {"pools[0].driver": "hosts"}):
        found = compile_base("existing-plugin", {"teams": [team], **wrong}).found
        assert [d.path for d in found] == list(wrong), found
