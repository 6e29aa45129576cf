"""From a stack file to prepared hosts and back: inventory, preflight, site, facts, and the plan that reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.hosts.plays import LIMIT, ROOT
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

BIN = Path(sys.executable).parent
#: The operator's plugin hands out CDI devices, which Debian 12's containerd 1.6 does not resolve.
SCENARIOS = [{"extends": name, "runtime": "containerd2"} for name in ("t4", "a100-pcie")]


@dataclass
class Road:
    """The stack's folder, and what each playbook ended with."""

    folder: Path
    runs: dict[str, subprocess.CompletedProcess[str]]

    @property
    def stack(self) -> Path:
        return self.folder / "stacks/Pulumi.idc.yaml"

    def change(self, pool: int, **values: Any) -> Path:
        """A copy of the stack file with other values in a pool."""
        data = yaml.safe_load(self.stack.read_text())
        data["config"]["gpufleet:pools"][pool] |= values
        changed = self.folder / "stacks/Pulumi.changed.yaml"
        changed.write_text(yaml.safe_dump(data))
        return changed

    def plan(self, stack: Path) -> list[tuple[str, str]]:
        """Errors of `gpufleet plan --facts`."""
        done = run("gpufleet", "plan", "-f", str(stack), "--facts", str(self.folder / "facts"), "--json")
        content = json.loads(done.stdout)
        return [(d["code"], d["path"]) for d in content["diagnostics"] if d["severity"] == "error"]


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    command = [str(BIN / program), *words]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)


def stack_file(twin: HostTwin) -> str:
    """A stack of two pools, whose packages come from the twin's server and from nowhere else."""
    places = twin.places()
    t4, a100 = (host.address for host in twin.hosts)
    config = {
        "cluster": {"kind": "existing", "name": "idc", "kubeconfig": {"path": "kubeconfig"}},
        "pools": [
            {"name": "t4", "gpu": "T4", "gpusPerNode": 1, "driverBranch": "580", "hosts": {"gpu01": {"address": t4}},
             "os": "debian-12"},
            {"name": "a100", "gpu": "A100-80GB-PCIe", "gpusPerNode": 4, "driverBranch": "580", "os": "debian-12",
             "hosts": {"gpu02": {"address": a100}}, "nvidiaDefaultRuntime": True},
        ],
        "hosts": {
            "ssh": {"user": "root"},
            "rebootPolicy": "if_required",
            "mirror": {
                "cuda": {"url": f"{places['cuda_base']}/<directory>/<architecture directory>/",
                         "keyUrl": places["cuda_key"], "keyFingerprints": [places["cuda_fingerprint"]]},
                "toolkit": {"url": places["toolkit_base"], "keyUrl": places["toolkit_key"],
                            "keyFingerprints": [places["toolkit_fingerprint"]]},
                "allowedHosts": [urlsplit(places["package_server"]).hostname],
            },
        },
        "stack": {"kind": "operator"},
    }  # fmt: skip
    return yaml.safe_dump({"config": {f"gpufleet:{key}": value for key, value in config.items()}})


@pytest.fixture(scope="module")
def road(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Road]:
    """Two hosts after preflight, site, a second site and verify; every run takes its hosts from the stack file."""
    with HostTwin(tmp_path_factory.mktemp("twin")) as twin:
        try:
            twin.start(len(SCENARIOS), SCENARIOS)
        except UnavailableError as error:
            pytest.skip(str(error))
        folder = tmp_path_factory.mktemp("project")
        for name in ("stacks", "inventories/group_vars", "facts"):
            (folder / name).mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text("name: gpufleet\nstackConfigDir: stacks\n")
        (folder / "stacks/Pulumi.idc.yaml").write_text(stack_file(twin))
        source = folder / "inventories/idc.gpufleet.yml"
        source.write_text("plugin: gpufleet.hosts.stack\nstack: idc\n")
        places, login = twin.places(), twin.inventory()["all"]["vars"]
        simulated = {
            "ansible_ssh_common_args": login["ansible_ssh_common_args"],
            "ansible_python_interpreter": login["ansible_python_interpreter"],
            "gpu_sysfs_root": places["sysfs_root"],
            "gpu_proc_root": places["proc_root"],
            "gpu_preflight_min_free_mib": 100,
        }
        (folder / "inventories/group_vars/gpu_hosts.yml").write_text(yaml.safe_dump(simulated))
        runs = {}
        for name, more in (
            ("preflight", ()),
            ("site", ()),
            ("second", ()),
            ("verify", ("-e", f"verify_facts_dir={folder / 'facts'}")),
        ):
            playbook = f"playbooks/{'site' if name == 'second' else name}.yml"
            runs[name] = run("ansible-playbook", "-i", str(source), playbook, *more)
        yield Road(folder, runs)


@pytest.mark.parametrize("name", ["preflight", "site", "second", "verify"])
def test_playbooks_end_well(road: Road, name: str) -> None:
    assert road.runs[name].returncode == 0, road.runs[name].stdout[-4000:] + road.runs[name].stderr


def test_the_second_run_changes_nothing(road: Road) -> None:
    recap = road.runs["second"].stdout.partition("PLAY RECAP")[2]
    assert recap.count("changed=0") == len(SCENARIOS), recap


def test_the_plan_takes_the_facts(road: Road) -> None:
    assert sorted(path.name for path in (road.folder / "facts").iterdir()) == ["gpu01.json", "gpu02.json"]
    assert road.plan(road.stack) == []


@pytest.mark.parametrize(
    ("pool", "values", "code"),
    [
        (0, {"driverVersion": "580.95.05"}, "GF827"),
        (0, {"driverBranch": "595"}, "GF828"),
        (0, {"gpu": "A10"}, "GF834"),
        (0, {"gpusPerNode": 2}, "GF833"),
        (0, {"nvidiaDefaultRuntime": True}, "GF839"),
        (1, {"nvidiaDefaultRuntime": False}, "GF839"),
        (1, {"hostDriver": {"flavour": "proprietary"}}, "GF840"),
    ],
)
def test_the_plan_refuses_another_stack(road: Road, pool: int, values: dict[str, Any], code: str) -> None:
    host = ("gpu01", "gpu02")[pool]
    assert road.plan(road.change(pool, **values)) == [(code, f"pools[{pool}].hosts.{host}")]
