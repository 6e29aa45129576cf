"""The plugin in the real ansible-inventory, against the command; inputs with errors end the run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli.main import main
from gpufleet.findings.finding import text

from tests.unit.config.samples import compile_text
from tests.unit.inventory.conftest import ROOT
from tests.unit.inventory.stacks import full_text

BIN = Path(sys.executable).parent
LIMIT = 120  # seconds; a run takes about one


def ansible(program: str, *words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """A program of Ansible with the project's configuration."""
    full = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", **env}
    full.pop("GPUFLEET_KUBECONFIG", None)
    command = [str(BIN / program), *words]
    return subprocess.run(command, cwd=cwd, env=full, capture_output=True, text=True, timeout=LIMIT, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one stack, full, and an inventory that names it."""
    (tmp_path / "Pulumi.yaml").write_text("name: gpufleet\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "inventories").mkdir()
    (tmp_path / "stacks/Pulumi.full.yaml").write_text(full_text())
    (tmp_path / "inventories/full.gpufleet.yml").write_text("plugin: gpufleet.hosts.stack\nstack: full\n")
    return tmp_path


def without_facts(value: Any) -> Any:
    """ansible-inventory adds an empty fact to every host where facts are not injected; the inventory has none."""
    if isinstance(value, dict):
        return {k: without_facts(v) for k, v in value.items() if k != "ansible_local"}
    return value


def same(theirs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Both print the same text."""
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)
    capsys.readouterr()
    assert main(["inventory", *words]) == 0
    ours = capsys.readouterr().out
    if "--graph" not in words:
        theirs = json.dumps(without_facts(json.loads(theirs)), sort_keys=True, indent=4) + "\n"
    assert ours == theirs


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("inventories/full.gpufleet.yml", ["--list"]),
        ("inventories/full.gpufleet.yml", ["--host", "gpu03"]),
        ("inventories/full.gpufleet.yml", ["--graph"]),
        ("stacks/Pulumi.full.yaml", ["--list"]),
    ],
)
def test_command_and_plugin_print_the_same(
    source: str, what: list[str], project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ansible("ansible-inventory", "-i", str(project / source), *what)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(project)
    same(done.stdout, capsys, monkeypatch, "-s", "full", *what)


def test_the_shipped_inventory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done = ansible("ansible-inventory", "-i", "inventories/idc.gpufleet.yml", "--list")
    monkeypatch.chdir(ROOT)
    same(done.stdout, capsys, monkeypatch, "-s", "idc", "--list")


def test_a_file_anywhere(project: Path) -> None:
    source = project / "inventories/x.gpufleet.yaml"
    source.write_text("plugin: gpufleet.hosts.stack\nfile: ../stacks/Pulumi.full.yaml\n")
    done = ansible("ansible-inventory", "-i", str(source), "--list")
    wanted = str(project / "idc.conf")
    assert json.loads(done.stdout)["_meta"]["hostvars"]["gpu01"]["upgrade_kubeconfig"] == wanted


def test_group_vars_add_to_it(project: Path) -> None:
    """What the stack file has no word for stands where Ansible always has it."""
    folder = project / "inventories/group_vars"
    folder.mkdir()
    (folder / "pool_t4.yml").write_text("gpu_driver_components: compute\n")
    done = ansible("ansible-inventory", "-i", str(project / "inventories/full.gpufleet.yml"), "--list")
    hosts = json.loads(done.stdout)["_meta"]["hostvars"]
    assert hosts["gpu04"]["gpu_driver_components"] == "compute"
    assert "gpu_driver_components" not in hosts["gpu01"]


def test_with_another_inventory(project: Path) -> None:
    """Every source keeps to its own hosts."""
    (project / "other.yml").write_text("all: {hosts: {x: {}}}\n")
    sources = ("-i", str(project / "other.yml"), "-i", str(project / "stacks/Pulumi.full.yaml"))
    done = ansible("ansible-inventory", *sources, "--list")
    assert "gpu_driver_method" not in json.loads(done.stdout)["_meta"]["hostvars"].get("x", {})
    assert "gpu01" in json.loads(done.stdout)["_meta"]["hostvars"]


WRONG = full_text().replace("gpusPerNode: 4", "gpusPerNod: 4").replace("rebootPolicy: if_required", "rebootPolicy: yes")


def diagnostics(name: str, content: str) -> list[str]:
    found = compile_text(content, name).found
    assert len(found) >= 2
    return [text(d) for d in found]


@pytest.mark.parametrize("source", ["inventories/full.gpufleet.yml", "stacks/Pulumi.full.yaml"])
def test_errors_are_those_of_the_plan_and_end_the_run(source: str, project: Path) -> None:
    (project / "stacks/Pulumi.full.yaml").write_text(WRONG)
    playbook = project / "play.yml"
    playbook.write_text("- hosts: gpu_hosts\n  gather_facts: false\n  tasks: []\n")
    done = ansible("ansible-playbook", "-i", str(project / source), str(playbook))
    assert done.returncode != 0
    said = done.stdout + done.stderr
    for wanted in diagnostics("full", WRONG):
        assert 1 <= said.count(wanted) <= 2, "Ansible shows an error of a plugin twice; `auto` does not show it again"
    assert "PLAY" not in said, "nothing ran"


@pytest.mark.parametrize("source", ["inventories/full.gpufleet.yml", "stacks/Pulumi.full.yaml"])
def test_nothing_is_half_built(source: str, project: Path) -> None:
    """Also where the configuration lets other sources go on."""
    (project / "stacks/Pulumi.full.yaml").write_text(WRONG)
    (project / "other.yml").write_text("all: {hosts: {x: {}}}\n")
    done = ansible("ansible-inventory", "-i", str(project / "other.yml"), "-i", str(project / source), "--list",
                   ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="false")  # fmt: skip
    if done.returncode == 0:
        content = json.loads(done.stdout)
        assert set(content) == {"_meta", "all", "ungrouped"} and set(content["_meta"]["hostvars"]) <= {"x"}
    else:
        assert done.stdout == "" and "GF101" in done.stderr


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("plugin: gpufleet.hosts.stack\nstack: ful\n", "no stack ful in stacks/ (there are: full); did you mean full?"),
        ("plugin: gpufleet.hosts.stack\n", "give stack or file"),
        ("plugin: gpufleet.hosts.stack\nstack: full\nfile: x\n", "give stack or file"),
        ("plugin: gpufleet.hosts.stack\nfile: ../x.yaml\n", "No such file or directory"),
        ("plugin: gpufleet.hosts.other\nstack: full\n", "Incorrect plugin name"),
    ],
)
def test_configurations_that_say_nothing(config: str, says: str, project: Path) -> None:
    source = project / "inventories/full.gpufleet.yml"
    source.write_text(config)
    done = ansible("ansible-inventory", "-i", str(source), "--list")
    assert done.returncode != 0 and says in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_other_files_are_left_to_other_plugins(project: Path) -> None:
    """A YAML inventory, and a stack file of somebody else's project."""
    (project / "hosts.yml").write_text("all: {hosts: {x: {ansible_host: 10.0.0.9}}}\n")
    (project / "Pulumi.dev.yaml").write_text("all: {hosts: {y: {ansible_host: 10.0.0.8}}}\n")
    sources = ("-i", str(project / "hosts.yml"), "-i", str(project / "Pulumi.dev.yaml"))
    done = ansible("ansible-inventory", *sources, "--list")
    assert set(json.loads(done.stdout)["_meta"]["hostvars"]) == {"x", "y"}


def test_warnings_are_shown_unless_acknowledged(project: Path) -> None:
    source = project / "stacks/Pulumi.full.yaml"
    source.write_text(full_text().replace("  gpufleet:acknowledge:\n    GF205: spare hosts\n", ""))
    done = ansible("ansible-inventory", "-i", str(source), "--list")
    assert done.returncode == 0 and "warning GF205 pools[4].driver  stacks/Pulumi.full.yaml:" in done.stderr
    source.write_text(full_text())
    assert "GF205" not in ansible("ansible-inventory", "-i", str(source), "--list").stderr


def test_without_the_requirements_it_says_so(project: Path) -> None:
    """Ansible from elsewhere: the product's own modules are found in the checkout, what they need is not."""
    fake = project / "fake/pydantic"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("raise ImportError('No module named pydantic')\n")
    done = ansible("ansible-inventory", "-i", str(project / "inventories/full.gpufleet.yml"), "--list",
                   PYTHONPATH=str(project / "fake"))  # fmt: skip
    assert done.returncode != 0
    assert "pip install 'gpufleet[hosts]'" in done.stderr and "Traceback" not in done.stderr


def test_the_plugin_is_documented() -> None:
    done = ansible("ansible-doc", "-t", "inventory", "gpufleet.hosts.stack")
    assert done.returncode == 0, done.stderr
    assert "inventories/idc.gpufleet.yml" in done.stdout and shutil.which("ansible-doc", path=str(BIN))
