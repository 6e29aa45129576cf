"""Variables: names that no role knows, forms that types cannot say, mirror profiles."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import gpufleet
import pytest
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.hosts.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


def malformed(**variables: Any) -> list[str]:
    wanted, wrong = settings.checked({**settings.defaults(), **variables})
    assert wrong == []
    return settings.malformed(wanted)


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("gpu_driver_verison", "gpu_driver_version"),
        ("gpu_reboot_polcy", "gpu_reboot_policy"),
        ("gpu_mig_layot", "gpu_mig_layout"),
        ("gpu_container_toolkit_default", "gpu_container_toolkit_default_runtime"),
    ],
)
def test_a_misspelt_variable_is_named_with_the_closest_one(name: str, closest: str) -> None:
    assert settings.unknown([name, "ansible_host"]) == [f"no role knows {name}; closest: {closest}"]


def test_what_is_not_the_roles_is_left_alone() -> None:
    mine = ["gpu_rack", "gpu_hosts", "upgrade_serial", "verify_facts_dir", "gpu_owner_team", *settings.INTERNAL]
    assert settings.unknown([*settings.defaults(), *mine]) == []


def test_what_the_roles_remember_is_what_their_files_say() -> None:
    found = set()
    for path in [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")]:
        text = path.read_text()
        found |= set(re.findall(r"^\s+(?:register|loop_var): (gpu_\w+)$", text, re.M))
        found |= set(re.findall(r"^\s+(gpu_\w+): ", text, re.M))
    assert found - set(settings.defaults()) == set(settings.INTERNAL)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"gpu_health_lock_clocks": "1200-1410"}, "gpu_health_lock_clocks: '1200-1410' is not one or two clocks"),
        ({"gpu_health_lock_clocks": "1200\nExecStart=/x"}, "is not one or two clocks"),
        ({"gpu_health_power_limit_watts": -1}, "gpu_health_power_limit_watts: -1 is less than 0"),
        ({"gpu_mig_start_timeout": 0}, "gpu_mig_start_timeout: 0 is less than 1"),
        ({"gpu_container_toolkit_runtime_name": "nvidia.cdi"}, "is not a name of letters"),
        ({"gpu_container_toolkit_version": "latest"}, "'latest' is not a version such as 1.20.0"),
        ({"gpu_driver_runfile_sha256": "abc"}, "'abc' is not a SHA-256 of 64 hexadecimal digits"),
        ({"gpu_preflight_cuda_target": "cuda12"}, "'cuda12' is not a CUDA version such as 12.8"),
        ({"gpu_mirror_profiles": {"a": "x"}}, "gpu_mirror_profiles.a: 'x' is not a mapping"),
        ({"gpu_mirror_profiles": {"a": {"cuda_ur": "x"}}}, "a: no such key cuda_ur; closest: cuda_url"),
        ({"gpu_mirror_profiles": {"a": {"allowed_hosts": "m"}}}, "a.allowed_hosts: 'm' is not a list of texts"),
        ({"gpu_mig_layouts": {"own": "x"}}, "gpu_mig_layouts.own: it is not a list of mappings"),
        ({"gpu_mig_layouts": {"own": [{"mig-enabled": "yes"}]}}, "own[0].mig-enabled: 'yes' is neither true nor false"),
        ({"gpu_mig_layouts": {"own": [{"mig-enabled": True, "devices": 0}]}}, "own[0].devices: 0 is neither all nor"),
        ({"gpu_mig_layouts": {"own": [{"mig-enabled": True, "mig-devices": ["1g.5gb"]}]}}, "is not a mapping"),
        (
            {"gpu_mig_layouts": {"own": [{"mig-enabled": True, "mig-devices": {"1g.5gb": "7"}}]}},
            "own[0].mig-devices.1g.5gb: '7' is no count",
        ),
        ({"gpu_mig_layouts": {"own": [{"mig-enabled": True, "mig_devices": {}}]}}, "own[0]: no such key mig_devices"),
        ({"gpu_driver_override": {"verison": "580.1"}}, "gpu_driver_override: no such key verison"),
        ({"gpu_driver_module_options": {"nvidia": ["a"]}}, "gpu_driver_module_options.nvidia: ['a'] is not a text"),
        ({"gpu_mirror_profiles": {"a": {"cuda_key": 7}}}, "a.cuda_key: 7 is not a text"),
    ],
)
def test_malformed(variables: dict[str, Any], says: str) -> None:
    found = malformed(**variables)
    assert len(found) == 1 and says in found[0]


def test_good_values_are_not_malformed() -> None:
    profile = {"cuda_url": "https://m/", "cuda_key_fingerprints": ["AB"], "allowed_hosts": ["m"]}
    assert malformed() == []
    assert malformed(
        gpu_health_lock_clocks="1410", gpu_container_toolkit_version="1.20.0-1", gpu_preflight_cuda_target=12.8,
        gpu_driver_runfile_sha256="aB" * 32, gpu_mig_manager_version="v0.15.0", gpu_mirror_profiles={"a": profile},
        gpu_mig_layouts={"own": [{"devices": [0], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
                                 {"devices": [1], "device-filter": "0x20B210DE", "mig-enabled": False}]},
        gpu_driver_override={"version": "580.126.09"}, gpu_driver_module_options={"nvidia_uvm": "uvm_disable_hmm=1"},
    ) == []  # fmt: skip


def test_booleans_are_read_as_ansible_reads_them() -> None:
    """-e name=false is the text "false", which is true to a condition that is not told so."""
    names = [n for n, option in settings.specification().items() if option["type"] == "bool"]
    names += ["upgrade_without_drain", "upgrade_force", "upgrade_evict_daemonsets"]
    seen = set()
    for path in [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")]:
        for line in path.read_text().splitlines():
            condition = re.match(r"\s*(?:when|that): (.*)", line)
            for name in re.findall(rf"\b({'|'.join(names)})\b", condition[1] if condition else ""):
                seen.add(name)
                assert re.search(rf"\b{name}(?: \| default\(\w+\))? \| bool", line), f"{path.name}: {line.strip()}"
    assert {"gpu_preflight_fail", "gpu_health_fail", "gpu_health_write_facts", "upgrade_evict_daemonsets"} <= seen


def test_every_variable_of_the_roles_has_a_type() -> None:
    assert list(Settings.model_fields) == list(settings.specification())


def test_decisions_do_without_ansible_and_without_the_collection() -> None:
    """The package is installed where the collection is not."""
    files = sorted((Path(gpufleet.__file__).parent / "hosts").glob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}
    named |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    assert files and not {name for name in named if name.startswith("ansible")}
    tops = {".".join(name.split(".")[:2]) for name in named if name.startswith("gpufleet")}
    assert tops <= {"gpufleet.catalog", "gpufleet.findings", "gpufleet.hosts"}, "a floor above"
