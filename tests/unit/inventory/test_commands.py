"""The commands `inventory` and `mirror-list`: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK, EXIT_USAGE, main

from tests.unit.config.samples import sections, stack_text
from tests.unit.inventory.stacks import full_text


@pytest.fixture
def full(tmp_path: Path) -> str:
    """The path of the full stack."""
    path = tmp_path / "Pulumi.full.yaml"
    path.write_text(full_text())
    return str(path)


def wrong(tmp_path: Path, changes: dict[str, Any]) -> str:
    path = tmp_path / "Pulumi.wrong.yaml"
    path.write_text(stack_text(sections("existing-plugin", changes)))
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == EXIT_OK
    return capsys.readouterr().out


def test_the_same_bytes_every_time(full: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command, *more in (("inventory", "--list"), ("mirror-list",), ("mirror-list", "--json")):
        words = (command, "-f", full, *more)
        assert printed(capsys, *words) == printed(capsys, *words)


def test_an_unknown_host(full: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory", "-f", full, "--host", "gpu011"]) == EXIT_USAGE
    assert "no host gpu011 in this stack; did you mean gpu01?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("inventory", "--list"), ("mirror-list", "--json")])
def test_errors_print_nothing_else(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = wrong(tmp_path, {"pools[0].gpusPerNode": 0, "hosts.rebootPolicy": "maybe"})
    assert main([words[0], "-f", path, *words[1:]]) == EXIT_ERRORS
    out, err = capsys.readouterr()
    assert out == "" and "GF105" in err and "GF103" in err and "2 errors" in err


def test_an_inventory_without_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = wrong(tmp_path, {})
    assert main(["plan", "-f", path]) == EXIT_OK
    assert main(["inventory", "-f", path, "--list"]) == EXIT_ERRORS
    out, err = capsys.readouterr()
    assert "GF811 pools[0].hosts.n1" in err and f"{path}:" in err and not out.startswith("{")


def test_a_secret_kubeconfig_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {"cluster.kubeconfig": {"secret": True}, "kubeconfig": {"secure": "v1:x"}}
    path = wrong(tmp_path, {**secret, "pools[0].hosts.n1.address": "10.0.0.1"})
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)
    assert main(["inventory", "-f", path, "--host", "n1"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert "GF813" in err and "upgrade_kubeconfig" not in json.loads(out)
    monkeypatch.setenv("GPUFLEET_KUBECONFIG", "/run/kubeconfig")
    assert main(["inventory", "-f", path, "--host", "n1"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert err == "" and json.loads(out)["upgrade_kubeconfig"] == "/run/kubeconfig"


def test_everything_to_mirror(full: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(printed(capsys, "mirror-list", "-f", full, "--json"))
    assert {"source": "registry.example.com/a:cuda12.8", "pulled_as": "registry.example.com/a:cuda12.8"} in content[
        "images"
    ]
    assert content["charts"] == [
        {"name": "gpu-operator", "version": "v26.7.0", "repository": "https://helm.ngc.nvidia.com/nvidia"}
    ]
    assert [f["address"] for f in content["files"]] == [
        "https://us.download.nvidia.com/tesla/580.126.09/NVIDIA-Linux-x86_64-580.126.09.run"
    ]
    cuda = next(r for r in content["repositories"] if r["name"] == "cuda")
    assert cuda["address"] == "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
    assert cuda["used"] == "https://m.example.com/cuda/ubuntu2404/x86_64/"
    assert cuda["keys"] == [
        {"address": f"{cuda['address']}3bf863cc.pub", "fingerprint": "EB693B3035CD5710E231E123A4B469963BF863CC"}
    ]
    packages = {p["name"]: p["version"] for p in cuda["packages"]}
    assert packages["nvidia-open"] == packages["nvidia-fabricmanager"] == "580.178.04"
    toolkit = next(r for r in content["repositories"] if r["name"] == "container-toolkit")
    assert {p["name"] for p in toolkit["packages"]} == {
        "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools",
        "libnvidia-container1",
    }  # fmt: skip


def test_what_is_unknown_is_said(full: str, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = json.loads(printed(capsys, "mirror-list", "-f", full, "--json"))["unknown"]
    for part in (
        "image nvcr.io/nvidia/driver:595.91.07-OS of pools",
        "packages for the hosts of pool mixed: set pools[1].os",
        "packages for the hosts of pool t4: set pools[2].os",
        "driver version of pool t4 after today",
        "nvidia-mig-manager 0.15.0",
    ):
        assert any(part in line for line in unknown), part
    assert not any("pool ops" in line or "pool spare" in line for line in unknown), "the roles install nothing there"
    text = printed(capsys, "mirror-list", "-f", full)
    assert all(line in text for line in unknown)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pools[0].os": "rocky-9"}, "addresses and keys of epel, crb"),
        ({"pools[0].driverBranch": "620"}, "driver version of pool t4: set pools[0].driverVersion"),
        ({"stack.kind": "operator", "stack.chart": {"path": "./chart"}}, "chart ./chart: it is taken from disk"),
        ({"sharing.h": {"strategy": "hami"}, "pools[0].sharing": "h"}, "kube-scheduler: the tag is the exact version"),
        (
            {"pools[0].os": "openEuler-24.03", "hosts.mirror.cuda": {"url": "https://m.example.com/"}},
            "driver packages for openEuler-24.03 on x86_64: the vendor has no repository",
        ),
    ],
)
def test_unknown_by_case(
    changes: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = json.loads(printed(capsys, "mirror-list", "-f", wrong(tmp_path, changes), "--json"))["unknown"]
    assert any(says in line for line in unknown), unknown


def test_the_driver_image_is_one_only_where_the_operator_installs_drivers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(**changes: Any) -> list[str]:
        path = wrong(tmp_path, {"stack.kind": "operator", "pools[0].driverBranch": "580", **changes})
        found: list[str] = json.loads(printed(capsys, "mirror-list", "-f", path, "--json"))["unknown"]
        return found

    assert unknown(**{"pools[0].os": "debian-12"}) == []
    (line,) = unknown(**{"pools[0].driver": "operator"})
    assert line.startswith("image nvcr.io/nvidia/driver:580.173.02-OS of pools t4: ")
    assert unknown(**{"pools[0].driver": "operator", "pools[0].os": "ubuntu-22.04"}) == []


def test_images_under_an_own_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = wrong(tmp_path, {"stack.images": {"registry": "r.example.com/nv"}})
    images = json.loads(printed(capsys, "mirror-list", "-f", path, "--json"))["images"]
    plugin = "k8s-device-plugin:v0.20.0"
    assert images == [{"source": f"nvcr.io/nvidia/{plugin}", "pulled_as": f"r.example.com/nv/{plugin}"}]


def test_a_cloud_stack_has_images_and_no_packages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "Pulumi.aks.yaml"
    path.write_text(stack_text(sections("aks-plugin")))
    content = json.loads(printed(capsys, "mirror-list", "-f", str(path), "--json"))
    assert content["repositories"] == [] == content["unknown"] and len(content["images"]) == 1
    assert main(["inventory", "-f", str(path), "--graph"]) == EXIT_ERRORS
    assert "GF810" in capsys.readouterr().err
