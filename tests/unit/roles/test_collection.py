"""The collection gpufleet.hosts as others get it: what is in it, three ways to install it, what works from there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import gpufleet
import pytest
import yaml
from ansible_collections.gpufleet.hosts.plugins.action import decide
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings

from tests.unit.roles.collection import ROOT, build, command, install, must

PLAYBOOKS = ("preflight", "site", "verify", "upgrade", "rollback")
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
MODULES = sorted(
    {path.stem for kind in ("action", "modules") for path in (ROOT / "plugins" / kind).glob("*.py")} - {"__init__"}
)
INVENTORIES = sorted(path.stem for path in (ROOT / "plugins/inventory").glob("*.py"))


def data(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def installed(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in which the tarball was installed."""
    folder = tmp_path_factory.mktemp("from_tarball")
    install(folder, str(tarball))
    return folder


@pytest.fixture(scope="module")
def workers(installed: Path) -> Path:
    """An INI inventory in that folder, whose group has a name of its own."""
    (installed / "hosts.ini").write_text("[workers]\ngpu01\n[storage]\nnfs01\n[all:vars]\nansible_connection=local\n")
    return installed


def test_the_tarball_holds_what_ansible_uses_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = [member.name for member in archive if member.isfile()]
    assert {name.partition("/")[0] for name in names} == {
        "CHANGELOG.md", "FILES.json", "LICENSE", "MANIFEST.json", "README.md", "meta", "playbooks", "plugins",
        "requirements.txt", "roles",
    }  # fmt: skip
    kinds = {"CHANGELOG.md", "LICENSE", "README.md", "requirements.txt"}
    wanted = kinds | {
        str(path.relative_to(ROOT))
        for folder in ("meta", "playbooks", "plugins", "roles")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in (".py", ".yml", ".md") and path.name != "document.py"
    }
    assert set(names) - {"FILES.json", "MANIFEST.json"} == wanted


def test_it_installs_from_a_git_checkout(tarball: Path, tmp_path: Path) -> None:
    """From the files as they are now: a repository is made of them."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    source = tmp_path / "source"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "shared")
    shutil.copytree(ROOT, source, ignore=left_out)
    person = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*person, "commit", "--quiet", "-m", "x")):
        subprocess.run(["git", *words], cwd=source, check=True, capture_output=True)
    there = install(tmp_path, f"git+file://{source}")
    files = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    with tarfile.open(tarball) as archive:
        built = {member.name for member in archive if member.isfile()}
    assert files - {"GALAXY.yml"} == built
    must(command(tmp_path, "ansible-playbook", "gpufleet.hosts.site", "--syntax-check", "-i", "gpu01,"))


def test_playbooks_run_by_name(workers: Path) -> None:
    """Each looks for its hosts first, then goes to the group that was named."""
    names = [f"gpufleet.hosts.{name}" for name in PLAYBOOKS]
    words = ("-i", "hosts.ini", "-e", "gpu_hosts_group=workers", "--list-hosts")
    done = must(command(workers, "ansible-playbook", *names, *words))
    shown = done.stdout.split("playbook: ")[1:]
    assert [Path(text.splitlines()[0]).stem for text in shown] == list(PLAYBOOKS)
    for text in shown:
        first, *others = text.split("play #")[1:]
        assert "Look for the GPU hosts" in first and others
        assert all("gpu01" in play and "nfs01" not in play for play in others)


def test_a_run_by_name_gets_to_the_hosts(workers: Path) -> None:
    """Playbook, role, dependency, action and module are all found in the installed collection. It only reads."""
    done = command(
        workers, "ansible-playbook", "gpufleet.hosts.preflight", "-i", "hosts.ini", "-e", "gpu_hosts_group=workers",
        "-e", "ansible_python_interpreter={{ ansible_playbook_python }}",
        "-e", '{"gpu_preflight_fail": false, "gpu_preflight_check_repositories": false}',
    )  # fmt: skip
    must(done)
    assert "gpufleet.hosts.gpu_preflight : Report everything that is wrong with the host" in done.stdout
    assert "gpu01" in done.stdout.partition("PLAY RECAP")[2] and "nfs01" not in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-i", "hosts.ini", "-e", "gpu_hosts_group=worker"), "no host in the group worker. Its groups: storage, work"),
        (
            ("-i", "hosts.ini", "-e", "gpu_hosts_group=workers", "--limit", "nfs01"),
            "--limit leaves no host of the grou",
        ),
        (("-i", "hosts.ini"), "The inventory has no host in the group gpu_hosts. Its groups: storage, workers."),
        (
            (),
            "The inventory has no host in the group gpu_hosts. Its groups: none. Name one of them with -e",
        ),
    ],
)
def test_without_hosts_a_run_ends_with_an_error(words: tuple[str, ...], says: str, workers: Path) -> None:
    done = command(workers, "ansible-playbook", "gpufleet.hosts.preflight", *words)
    assert done.returncode != 0 and says in " ".join((done.stdout + done.stderr).split())


def test_a_group_that_only_the_inventory_names_is_no_silent_end(workers: Path) -> None:
    """A play chooses its hosts before the inventory's variables are read."""
    text = (workers / "hosts.ini").read_text()
    (workers / "named.ini").write_text(f"{text}gpu_hosts_group=workers\n")
    done = command(workers, "ansible-playbook", "gpufleet.hosts.preflight", "-i", "named.ini")
    assert done.returncode != 0 and "no host in the group gpu_hosts" in " ".join(done.stdout.split())


def test_a_missing_python_package_is_named(workers: Path) -> None:
    shadow = workers / "shadow/gpufleet"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'gpufleet'\")\n")
    words = ("gpufleet.hosts.preflight", "-i", "hosts.ini", "-e", "gpu_hosts_group=workers")
    done = command(workers, "ansible-playbook", *words, PYTHONPATH=str(shadow.parent))
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in said and "this is probably a bug" not in said
    assert "The collection gpufleet.hosts needs the Python package gpufleet" in said


def shown(folder: Path, kind: str, names: list[str]) -> dict[str, Any]:
    """What ansible-doc shows of plugins or roles of the installed collection, by short name."""
    full = [f"gpufleet.hosts.{name}" for name in names]
    found: dict[str, Any] = json.loads(must(command(folder, "ansible-doc", "-t", kind, "--json", *full)).stdout)
    assert sorted(found) == sorted(full)
    return {name.rpartition(".")[2]: value for name, value in found.items()}


def test_ansible_doc_shows_every_role(installed: Path) -> None:
    for role, document in shown(installed, "role", ROLES).items():
        point = document["entry_points"]["main"]
        assert point["short_description"] and point["description"] and point["author"], role
        assert set(point["options"]) == set(data(ROOT / f"roles/{role}/defaults/main.yml"))
        assert all(option["description"] and option["type"] for option in point["options"].values())


@pytest.mark.parametrize(("kind", "names"), [("module", MODULES), ("inventory", INVENTORIES)])
def test_ansible_doc_shows_every_plugin(kind: str, names: list[str], installed: Path) -> None:
    for name, document in shown(installed, kind, names).items():
        text = document["doc"]
        assert all(text.get(key) for key in ("short_description", "description", "options", "author")), name
        assert all(option["description"] and option["type"] for option in text["options"].values()), name
        assert f"gpufleet.hosts.{name}" in document["examples"]
        assert kind == "inventory" or document["return"], name


def test_ansible_doc_lists_nothing_else(installed: Path) -> None:
    listed = json.loads(must(command(installed, "ansible-doc", "-t", "module", "-l", "-j", "gpufleet.hosts")).stdout)
    assert sorted(listed) == [f"gpufleet.hosts.{name}" for name in MODULES]


def test_the_subjects_of_decide_are_documented() -> None:
    [text] = re.findall(
        r'^DOCUMENTATION = r"""\n(.*?)^"""', (ROOT / "plugins/modules/decide.py").read_text(), re.M | re.S
    )
    assert sorted(yaml.safe_load(text)["options"]["subject"]["choices"]) == sorted(decide._SUBJECTS)


def test_roles_are_named_in_full() -> None:
    """Otherwise they are found in a checkout alone, through a roles_path."""
    files = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("roles/*/meta/main.yml"), *ROOT.glob("playbooks/**/*.yml")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    named = re.findall(r"^\s*- role: (\S+)$", text, re.M)
    named += re.findall(r"include_role:\n\s+name: (.*)$", text, re.M)
    assert len(named) >= 10 and [name for name in named if not name.strip('"').startswith("gpufleet.hosts.")] == []
    assert "roles_path" not in (ROOT / "ansible.cfg").read_text()


def test_included_files_of_playbooks_lie_beside_them() -> None:
    for path in ROOT.glob("playbooks/**/*.yml"):
        for name in re.findall(r"(?:include_tasks|import_playbook): (\S+)$", path.read_text(encoding="utf-8"), re.M):
            assert (path.parent / name).is_file(), f"{path.name}: {name}"


def test_only_tasks_of_a_cluster_need_another_collection() -> None:
    files = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
    foreign = {
        path.parent.name for path in files if re.search(r"^\s+(?:kubernetes|community)\.", path.read_text(), re.M)
    }
    assert foreign == {"cluster"}


def test_versions_are_said_once_and_agree() -> None:
    galaxy, project = data(ROOT / "galaxy.yml"), tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = gpufleet.__version__
    assert galaxy["version"] == version
    [line] = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    major, minor, _ = version.split(".")
    assert line == f"gpufleet>={major}.{minor},<{major}.{int(minor) + 1}"
    wanted = {item["name"]: item["version"] for item in data(ROOT / "requirements.yml")["collections"]}
    assert galaxy["dependencies"] == wanted
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    cores = {line for names in lists for line in names if line.startswith("ansible-core")}
    range_ = data(ROOT / "meta/runtime.yml")["requires_ansible"]
    assert cores == {"ansible-core" + range_.replace(".0,", ",").removesuffix(".0")}
    assert data(ROOT / "meta/execution-environment.yml")["dependencies"]["python"] == "requirements.txt"


def plays(page: Path) -> list[dict[str, Any]]:
    """The example plays of a page."""
    return [play for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S) for play in yaml.safe_load(text)]


def wrong_with(variables: dict[str, Any]) -> list[str]:
    """What the roles would say of variables."""
    mine = {name: value for name, value in variables.items() if name in settings.defaults()}
    typed, wrong = settings.checked({**settings.defaults(), **mine})
    return wrong or settings.malformed(typed) + settings.unknown(variables)


@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_a_page_with_an_example(role: str) -> None:
    page = ROOT / f"roles/{role}/README.md"
    headings = [f"# gpufleet.hosts.{role}", "## Example", "## Requirements", "## Variables"]
    assert re.findall(r"^#+ .*$", page.read_text(encoding="utf-8"), re.M) == headings
    parts = [part for play in plays(page) for part in play["roles"]]
    assert f"gpufleet.hosts.{role}" in [part["role"] for part in parts]
    assert [wrong_with(part.get("vars", {})) for part in parts] == [[]] * len(parts)


def test_the_examples_are_plays(installed: Path) -> None:
    found = [play for role in ROLES for play in plays(ROOT / f"roles/{role}/README.md")]
    (installed / "example.yml").write_text(yaml.safe_dump(found))
    must(command(installed, "ansible-playbook", "--syntax-check", "-i", "gpu01,", "example.yml"))


def test_the_example_inventory_holds(installed: Path) -> None:
    source = ROOT / "examples/hosts/hosts.ini"
    done = must(command(installed, "ansible-inventory", "-i", str(source), "--list"))
    content = json.loads(done.stdout)
    assert content["inference"]["hosts"] == ["gpu01", "gpu02"] and "gpu_hosts" not in content
    for host in ("gpu01", "gpu02"):
        given = content["_meta"]["hostvars"][host]
        assert wrong_with(given) == [] and given["gpu_driver_branch"] == "580"
    assert "-e gpu_hosts_group=inference" in source.read_text(encoding="utf-8")
