"""The wheel in a project of somebody else's: what works without extras, what is said where one is missing."""

from __future__ import annotations

import json
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from gpufleet import __version__, extras
from gpufleet.cli import main

from tests.package.environments import ROOT, Environment

Install = Callable[[str], Environment]
MOST_MB = 60
DEV = ROOT / "stacks" / "Pulumi.aks-dev.yaml"
IDC = ROOT / "stacks" / "Pulumi.idc.yaml"
VALUES = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
PREDICT = '{"config": "version: v1", "gpus": 1}\n'

#: Commands that need no extra.
COMMANDS = [
    ("--version",),
    ("plan", "-s", "dev"),
    ("plan", "-s", "idc", "--json"),
    ("lint", "values.yaml"),
    ("lint", "--stack", "idc", "values.yaml"),
    ("predict", "rows.jsonl"),
    ("advise", "--gpu", "H200", "--workload", "inference", "--memory", "4", "--users", "12"),
    ("schema",),
    ("catalog", "show", "gpu_models"),
    ("inventory", "-s", "idc", "--list"),
    ("mirror-list", "-s", "idc"),
    ("explain", "GF307"),
    ("bench", "--from-catalogue", "H200"),
    ("bench", "--job", "--stack", "idc", "--pool", "t4"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Pulumi's usual layout: stack files beside Pulumi.yaml. The project has a package `infra` of its own."""
    (tmp_path / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(DEV.read_text())
    (tmp_path / "Pulumi.idc.yaml").write_text(IDC.read_text())
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "__init__.py").write_text("OWN = True\n")
    (tmp_path / "values.yaml").write_text(VALUES)
    (tmp_path / "rows.jsonl").write_text(PREDICT)
    return tmp_path


def test_a_plain_install_is_small(installed: Install) -> None:
    base = installed("")
    size = base.size() / 1e6
    print(f"{size:.1f} MB in {len(base.packages)} packages: {', '.join(sorted(base.packages))}")
    assert {"pyyaml", "pydantic"} <= base.packages.keys()
    assert size < MOST_MB


def test_every_command_is_tried() -> None:
    assert {words[0] for words in COMMANDS} - {"--version"} == main.COMMANDS.keys() - {"status"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_that_need_no_extra(installed: Install, project: Path, words: tuple[str, ...]) -> None:
    done = installed("").run("gpufleet", *words, cwd=project)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout


def test_the_version_stands_in_one_place(installed: Install, project: Path) -> None:
    assert installed("").run("gpufleet", "--version", cwd=project).stdout == f"gpufleet {__version__}\n"
    asked = "import importlib.metadata as m; print(m.version('gpufleet'))"
    assert installed("").run("python", "-c", asked, cwd=project).stdout == f"{__version__}\n"


def test_the_wheel_beside_a_package_infra_of_the_projects(installed: Install, project: Path) -> None:
    both = "import infra, gpufleet.compiled; print(infra.OWN, gpufleet.__file__)"
    own, place = installed("").run("python", "-c", both, cwd=project).stdout.split()
    assert own == "True" and "site-packages" in place


@pytest.mark.parametrize("stacks", [None, "config/of stacks"])
def test_the_stack_file_is_where_pulumi_keeps_it(installed: Install, project: Path, stacks: str | None) -> None:
    wrong = DEV.read_text().replace("vmSize: Standard_NC", "vmSize: Standard_XX", 1)
    line = next(i for i, text in enumerate(wrong.splitlines(), 1) if "Standard_XX" in text)
    file = project / (stacks or ".") / "Pulumi.dev.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(wrong)
    if stacks:
        (project / "Pulumi.dev.yaml").unlink()
        (project / "Pulumi.yaml").write_text(f"name: mine\nruntime: python\nstackConfigDir: {stacks}\n")
    below = project / "infra"
    done = installed("").run("gpufleet", "plan", "-s", "dev", cwd=below)
    assert done.returncode == 1
    assert f"  {file.relative_to(project)}:{line}\n" in done.stdout
    other = installed("").run("gpufleet", "plan", "-s", "dve", cwd=below)
    where = f"{stacks}/" if stacks else "the project's folder"
    assert other.returncode == 2 and f"no stack dve in {where} (there are: dev" in other.stderr


def _lacks(done: subprocess.CompletedProcess[str], who: str, extra: str) -> None:
    assert done.stderr == f"""{who} needs the extra "{extra}": pip install 'gpufleet[{extra}]'\n"""
    assert (done.returncode, done.stdout) == (2, "")


def test_without_its_extra_each_says_which(installed: Install, project: Path) -> None:
    base = installed("")
    _lacks(base.run("gpufleet", "status", "-s", "idc", cwd=project), "gpufleet status", "status")
    plot = base.run("gpufleet", "bench", "--from-catalogue", "H200", "--plot", "p.png", cwd=project)
    _lacks(plot, "gpufleet bench --plot", "bench")
    program = "from gpufleet.deploy.program import run; run()"
    _lacks(base.run("python", "-c", program, cwd=project), "The Pulumi program", "deploy")


def test_status_with_its_extra(installed: Install, project: Path) -> None:
    nobody = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
    }  # fmt: skip
    stack = yaml.safe_load(IDC.read_text())
    stack["config"]["gpufleet:cluster"]["kubeconfig"] = {"path": "kubeconfig"}
    (project / "Pulumi.idc.yaml").write_text(yaml.safe_dump(stack))
    (project / "kubeconfig").write_text(json.dumps(nobody))
    done = installed("status").run("gpufleet", "status", "-s", "idc", cwd=project)
    assert done.returncode == 2 and "the API server does not answer" in done.stderr


PROGRAM = """\
import json, sys, yaml, pulumi
class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args): return args.name, args.inputs
    def call(self, args): return {}
pulumi.runtime.set_mocks(Mocks(), project="mine", stack=sys.argv[1])
config = yaml.safe_load(open(f"Pulumi.{sys.argv[1]}.yaml"))["config"]
pulumi.runtime.set_all_config({k: v if isinstance(v, str) else json.dumps(v) for k, v in config.items()})
from gpufleet.deploy.program import run
try:
    run()
except pulumi.RunError as error:
    sys.exit(f"RunError: {error}")
"""


def test_the_program_on_aks_needs_one_more(installed: Install, project: Path) -> None:
    done = installed("deploy").run("python", "-c", PROGRAM, "dev", cwd=project)
    assert """RunError: A stack on AKS needs the extra "azure": pip install 'gpufleet[azure]'""" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_inventory_plugin_with_its_extra(installed: Install, project: Path) -> None:
    place = project / "collections" / "ansible_collections" / "gpufleet"
    place.mkdir(parents=True)
    (place / "hosts").symlink_to(ROOT)
    command = "import sys; from ansible.cli.inventory import main; main(sys.argv)"
    done = installed("hosts").run(
        "python", "-c", command, "-i", "Pulumi.idc.yaml", "--list", cwd=project, ANSIBLE_HOME=str(project / "home"),
        ANSIBLE_COLLECTIONS_PATH=str(project / "collections"), ANSIBLE_INVENTORY_ENABLED="gpufleet.hosts.stack",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    own = installed("").run("gpufleet", "inventory", "-s", "idc", "--list", cwd=project)
    assert json.loads(done.stdout)["gpu_hosts"] == json.loads(own.stdout)["gpu_hosts"]


def test_the_wheel_holds_every_table_and_no_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as bundle:
        inside = {name for name in bundle.namelist() if ".dist-info/" not in name}
    package = ROOT / "infra" / "gpufleet"
    kept = {".py", ".yaml", ".json", ".typed", ".md", ".txt"}
    expected = {str(p.relative_to(package.parent)) for p in package.rglob("*") if p.suffix in kept}
    assert inside == expected
    assert "gpufleet/py.typed" in inside


def test_the_extras_are_those_that_commands_ask_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(declared) == {*extras.EXTRAS, "all", "dev"}
