"""Repositories, keys, mirrors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpufleet.hosts import (
    driver,
    preflight,
    sources,
    toolkit,
    verify,
)
from gpufleet.hosts.reading import Reading

from . import plans
from .converged import VERSION, converged, on, resolved_driver
from .hosts import codes, package, probe


def test_the_vendors_keyring_package_and_source_make_way() -> None:
    vendor = {
        "file": "/etc/apt/sources.list.d/cuda-ubuntu2404-x86_64.list",
        "suite": "/",
        "components": [],
        "signed_by": "/k",
        "uri": "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/",
        "enabled": True,
    }
    plan = resolved_driver(on(probe(sources=[vendor], packages={"cuda-keyring": package("1.1-1")})))
    assert plan["absent"] == [vendor["file"]] and plan["packages"]["remove"] == ["cuda-keyring"]


def test_a_retired_key_that_is_alone_in_its_file_is_removed() -> None:
    retired = {"fingerprint": "AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80", "sha1_only": False}
    other = {"fingerprint": "A" * 40, "sha1_only": False}
    reading = probe(keyrings={"/etc/apt/trusted.gpg.d/cuda.gpg": [retired], "/etc/apt/trusted.gpg": [retired, other]})
    assert plans.driver(on(reading))["absent"] == ["/etc/apt/trusted.gpg.d/cuda.gpg"]


def test_keys_are_fetched_with_their_fingerprint_or_not_at_all() -> None:
    plan = plans.driver(on())
    assert plan["keyrings"][0]["fingerprints"] == ["EB693B3035CD5710E231E123A4B469963BF863CC"]
    debian13 = plans.driver(on(probe(system={"id": "debian", "version_id": "13"})))
    assert debian13["keyrings"][0]["fingerprints"] == ["02182E60104FCDC26EAE1B8597A5D4CB8793F200"]
    assert debian13["keyrings"][0]["url"].endswith("/debian13/x86_64/8793F200.pub")
    own = on(probe(system={"id": "openEuler", "version_id": "22.03"}), gpu_driver_repo_url="https://mirror/own/")
    assert codes(plans.driver(own)["problems"]) == ["GF738"]


def _source(file: str, uri: str, **more: Any) -> dict[str, Any]:
    return {"file": file, "uri": uri, "suite": "/", "components": [], "signed_by": None, "enabled": True, **more}


UBUNTU = _source("/etc/apt/sources.list.d/internal.list", "https://mirror.example/ubuntu")
CUDA = "https://mirror.example/cuda/ubuntu2404/x86_64/"


def test_a_file_that_holds_other_sources_too_is_never_removed() -> None:
    alone = _source("/etc/apt/sources.list.d/cuda.list", CUDA)
    plan = plans.driver(on(probe(sources=[UBUNTU, alone]), **MIRROR))
    assert plan["absent"] == ["/etc/apt/sources.list.d/cuda.list"] and plan["problems"] == []
    beside = _source(UBUNTU["file"], CUDA)
    plan = plans.driver(on(probe(sources=[UBUNTU, beside]), **MIRROR))
    assert plan["absent"] == [] and codes(plan["problems"]) == ["GF761"]
    assert "GF761" in codes(preflight.findings(on(probe(sources=[UBUNTU, beside]), **MIRROR)))
    kit = _source(UBUNTU["file"], "https://mirror.example/toolkit/amd64/")
    plan = plans.toolkit(on(probe(sources=[UBUNTU, kit]), **MIRROR))
    assert plan["absent"] == [] and codes(plan["problems"]) == ["GF761"]


@pytest.mark.parametrize(
    "change", [{"enabled": False}, {"uri": "https://developer.download.nvidia.com/compute/cuda/repos/x/"}]
)
def test_what_apt_does_not_refuse_in_such_a_file_is_no_error(change: dict[str, Any]) -> None:
    plan = plans.driver(on(probe(sources=[UBUNTU, {**_source(UBUNTU["file"], CUDA), **change}]), **MIRROR))
    assert plan["absent"] == [] and plan["problems"] == []


def test_a_repository_file_of_dnf_with_other_sections_stays() -> None:
    el9 = {"id": "rocky", "version_id": "9.4", "manager": "dnf"}
    found = [{"file": "/etc/yum.repos.d/idc.repo", "id": i, "uri": u, "enabled": True} for i, u in (
        ("baseos", "https://mirror.example/baseos"), ("cuda", "https://mirror.example/compute/cuda/repos/rhel9/x86_64"),
    )]  # fmt: skip
    plan = plans.driver(on(probe(system=el9, sources=found)))
    assert plan["absent"] == [] and "GF761" not in codes(plan["problems"])
    assert plans.driver(on(probe(system=el9, sources=found[1:])))["absent"] == ["/etc/yum.repos.d/idc.repo"]


MIRROR: dict[str, Any] = {
    "gpu_mirror_profile": "idc",
    "gpu_mirror_profiles": {
        "idc": {
            "cuda_url": "https://mirror.example/cuda/<directory>/<architecture directory>",
            "toolkit_url": "https://mirror.example/toolkit/<architecture>",
            "runfile_url": "https://mirror.example/run/<version>.run",
            "toolkit_key_url": "https://mirror.example/key",
            "allowed_hosts": ["mirror.example"],
        }
    },
}


def test_a_mirror_profile_covers_every_address() -> None:
    context = on(probe(system={"architecture": "aarch64"}), **MIRROR)
    repo, kit = driver.repository_of(context), toolkit.repository_of(context)
    assert repo.url == "https://mirror.example/cuda/ubuntu2404/sbsa/"
    assert repo.key_url == "https://mirror.example/cuda/ubuntu2404/sbsa/3bf863cc.pub"
    assert (kit.url, kit.key_url) == ("https://mirror.example/toolkit/arm64/", "https://mirror.example/key")
    run = plans.driver(on(gpu_driver_method="runfile", gpu_driver_runfile_sha256="0", **MIRROR))
    assert run["runfile"]["url"] == f"https://mirror.example/run/{VERSION}.run"
    everything = json.dumps([plans.driver(on(**MIRROR)), plans.toolkit(on(**MIRROR))])
    assert "nvidia.com" not in everything and "github.io" not in everything


def test_own_variables_win_over_the_profile() -> None:
    own = on(
        gpu_driver_repo_url="http://other.example/<directory>/",
        gpu_driver_repo_suite="stable",
        gpu_driver_repo_components=["main"],
        **MIRROR,
    )
    repo = driver.repository_of(own)
    assert (repo.url, repo.suite) == ("http://other.example/ubuntu2404/", "stable")
    assert "Suites: stable\nComponents: main\n" in repo.source_text()


def test_hosts_outside_the_mirror_are_drift() -> None:
    outside = {
        "file": "/etc/apt/sources.list.d/cuda.list",
        "uri": "https://developer.download.nvidia.cn/x/",
        "suite": "/",
        "components": [],
        "signed_by": None,
        "enabled": True,
    }
    upper = {"idc": {**MIRROR["gpu_mirror_profiles"]["idc"], "allowed_hosts": ["Mirror.Example"]}}
    settings = on(**{**MIRROR, "gpu_mirror_profiles": upper}).settings
    assert sources.outside_hosts(settings, Reading.model_validate(probe(sources=[UBUNTU])), []) == []
    assert sources.outside_hosts(on(**MIRROR).settings, Reading.model_validate(probe(sources=[outside])), []) == [
        ("/etc/apt/sources.list.d/cuda.list", "developer.download.nvidia.cn")
    ]
    found = verify.verify(on(converged(sources=[outside]), **MIRROR))[0]
    assert ("GF741", "error") in [(code, values.get("severity")) for code, values in found]


@pytest.mark.parametrize("identity", [("ol", "8.9"), ("rocky", "9.4"), ("openEuler", "22.03"), ("kylin", "V11")])
def test_the_toolkits_tree_does_not_depend_on_the_distribution(identity: tuple[str, str]) -> None:
    reading = probe(system={"id": identity[0], "version_id": identity[1], "manager": "dnf"})
    assert toolkit.repository_of(on(reading)).url == "https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64"
