"""CUDA of images against drivers."""

import pytest

from infra.lint.cuda import driver_cuda, required_cuda, satisfied
from tests.unit.lint.told import codes, one, pod


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("nvidia/cuda:12.4.1-base-ubuntu22.04", "12.4"),
        ("docker.io/nvidia/cuda:11.8.0-devel", "11.8"),
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime", "12.1"),
        ("registry/x:5000/app:1-cu118", "11.8"),
        ("app:cu124-py3", "12.4"),
        ("tensorflow/tensorflow:2.15.0-gpu", None),
        ("app:customcu12", None),
        ("", None),
    ],
)
def test_cuda_of_an_image(image: str, version: str | None) -> None:
    found = required_cuda(image, {})
    assert (found.version if found else None) == version


def test_the_variable_counts_before_the_tag() -> None:
    env = {"NVIDIA_REQUIRE_CUDA": "cuda>=12.6 brand=tesla,driver>=535,driver<536"}
    found = required_cuda("nvidia/cuda:11.8.0", env)
    assert found is not None and (found.version, found.said_by) == ("12.6", "NVIDIA_REQUIRE_CUDA")
    assert required_cuda("nvidia/cuda:11.8.0", {"NVIDIA_DISABLE_REQUIRE": "1"}) is None


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("470.82.01", None), ("520.61.05", (11, 8)), ("535.183.01", (12, 2)), ("570.26", (12, 8)), ("580.65.06", (13, 0))],
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


def image(tag: str, container: str = "") -> str:
    return pod(container).replace("example/app:1", tag)


def test_the_message_is_the_one_that_users_see() -> None:
    found = one("GF615", image("nvidia/cuda:13.0.1-base"), driver="570.124.06")
    assert found.message == "unsatisfied condition: cuda>=13.0"
    assert "supports CUDA 12.8" in found.reason and "580.65.06" in found.remedy


def test_minor_version_mode() -> None:
    found = one("GF616", image("nvidia/cuda:12.4.1-base"), driver="535.183.01")
    assert "550.54.14" in found.reason
    assert codes(image("nvidia/cuda:12.4.1-base"), driver="550.54.14") == []
    assert codes(image("nvidia/cuda:12.4.1-base")) == []  # no driver is known


def test_a_condition_of_the_pod_is_strict() -> None:
    env = "env: [{name: NVIDIA_REQUIRE_CUDA, value: 'cuda>=12.4'}]\n"
    assert one("GF615", image("app:1", env), driver="535.183.01").message == "unsatisfied condition: cuda>=12.4"
    assert codes(image("app:1", env), driver="560.35.05") == []


def test_drivers_known_to_fail_with_mig_on_some_gpus() -> None:
    text = "version: v1\nflags: {migStrategy: mixed}\n"
    assert codes(text, gpus="2xA100-80GB", mig="0=1g.10gb", driver="570.148.08") == ["GF621"]
    assert codes(text, gpus="2xA100-80GB", mig="0=1g.10gb", driver="580.65.06") == []
    assert codes(text, gpus="2xA100-80GB", mig="7x1g.10gb", driver="570.148.08") == []
