"""CUDA of images in manifests against the driver and the GPUs that are described; the rules: tests/unit/plan."""

from pathlib import Path

import pytest
from gpufleet.lint import Options, lint
from gpufleet.lint.stack import nodes_of

from tests.unit.lint.told import codes, one, pod


def image(tag: str, container: str = "") -> str:
    return pod(container).replace("example/app:1", tag)


def test_the_message_is_the_one_that_users_see() -> None:
    found = one("GF615", image("nvidia/cuda:13.0.1-base"), driver="560.35.05")
    assert found.message == "unsatisfied condition: cuda>=13.0"
    assert "Driver 560.35.05 supports CUDA 12.6" in found.reason and "580.65.06" in found.remedy
    assert codes(image("app:1-cu130"), driver="570.124.06") == ["GF615"]


def test_a_base_image_lets_older_branches_pass_on_data_centre_gpus() -> None:
    found = one("GF622", image("nvidia/cuda:13.0.1-base"), driver="570.124.06")
    assert "unsatisfied condition: cuda>=13.0" in found.reason and "error 804" in found.reason
    assert "Whether this is one is not known" in found.reason
    found = one("GF622", image("nvidia/cuda:13.0.1-base"), driver="570.124.06", gpus="1xH100-PCIe")
    assert "H100-PCIe is one" in found.reason


def test_a_base_image_refuses_branches_that_it_does_not_list() -> None:
    """CUDA 12 would run on them in minor-version mode; the image's own condition stops the container first."""
    found = one("GF615", image("nvidia/cuda:12.6.3-base"), driver="555.42.06")
    assert found.message == "unsatisfied condition: cuda>=12.6" and "from 560.28.03 on" in found.remedy
    assert codes(image("pytorch/pytorch:2.6.0-cuda12.6-cudnn9-runtime"), driver="555.42.06") == ["GF616"]


def test_minor_version_mode() -> None:
    found = one("GF616", image("nvidia/cuda:12.4.1-base"), driver="535.183.01")
    assert "550.54.14" in found.reason and "on driver 535.183.01" in found.message
    assert codes(image("nvidia/cuda:12.4.1-base"), driver="550.54.14") == []
    assert codes(image("nvidia/cuda:12.4.1-base")) == []  # no driver is known


def test_a_condition_of_the_pod_is_strict() -> None:
    env = "env: [{name: NVIDIA_REQUIRE_CUDA, value: 'cuda>=12.4'}]\n"
    assert one("GF615", image("app:1", env), driver="535.183.01").message == "unsatisfied condition: cuda>=12.4"
    assert codes(image("app:1", env), driver="560.35.05") == []
    off = "env: [{name: NVIDIA_DISABLE_REQUIRE, value: '1'}]\n"
    assert codes(image("nvidia/cuda:13.0.1-base", off), driver="560.35.05") == []


@pytest.mark.parametrize(("gpu", "told"), [("V100-SXM2-32GB", ["GF623"]), ("V100-32GB", ["GF623"]), ("T4", [])])
def test_cuda_that_compiles_nothing_for_the_gpu(gpu: str, told: list[str]) -> None:
    assert codes(image("nvidia/cuda:13.0.1-base"), driver="580.126.09", gpus=f"1x{gpu}") == told
    assert codes(image("nvidia/cuda:13.0.1-base"), gpus=f"1x{gpu}") == told  # whatever the driver
    assert codes(image("nvidia/cuda:12.8.1-base"), driver="580.126.09", gpus=f"1x{gpu}") == []


def test_drivers_known_to_fail_with_mig_on_some_gpus() -> None:
    text = "version: v1\nflags: {migStrategy: mixed}\n"
    assert codes(text, gpus="2xA100-80GB", mig="0=1g.10gb", driver="570.148.08") == ["GF621"]
    assert codes(text, gpus="2xA100-80GB", mig="0=1g.10gb", driver="575.57.08") == ["GF621"]
    assert codes(text, gpus="2xA100-80GB", mig="0=1g.10gb", driver="580.65.06") == []
    assert codes(text, gpus="2xA100-80GB", mig="0=1g.10gb;1=1g.10gb", driver="570.148.08") == []


STACK = """\
config:
  gpufleet:cluster: {kind: CLUSTER}
  gpufleet:pools: [POOL]
  gpufleet:stack: {kind: operator}
"""
AKS = "aks, name: v, location: eastus"
OWN = "existing, name: v, kubeconfig: {path: k}"


def on_stack(tmp_path: Path, cluster: str, hardware: str, text: str) -> list[str]:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(STACK.replace("CLUSTER", cluster).replace("POOL", f"{{name: p, {hardware}}}"))
    [pool] = nodes_of(None, file, None).pools
    return [d.code for d in lint([("f", text)], Options(pool.node, driver=pool.driver)).found]


def test_drivers_of_a_stack_are_those_of_its_owners(tmp_path: Path) -> None:
    t4, hosts = "vmSize: Standard_NC4as_T4_v3, count: 1", "hosts: {n1: {}}, gpu: T4, gpusPerNode: 1"
    new = image("app:1-cu130")
    assert on_stack(tmp_path, AKS, f"{t4}, driver: operator", new) == []  # the operator's default
    assert on_stack(tmp_path, AKS, f"{t4}, driver: operator, driverBranch: '535'", new) == ["GF615"]
    assert on_stack(tmp_path, OWN, f"{hosts}, driverBranch: '580'", new) == []  # the branch, whatever its version
    assert on_stack(tmp_path, OWN, f"{hosts}, driverBranch: '570'", new) == ["GF615"]
    assert on_stack(tmp_path, OWN, hosts, new) == []  # not known
    grid = "vmSize: Standard_NV6ads_A10_v5, count: 1"
    assert on_stack(tmp_path, AKS, grid, new) == ["GF617"]  # node images move
    assert on_stack(tmp_path, OWN, hosts.replace("T4", "P40"), new) == ["GF623"]
