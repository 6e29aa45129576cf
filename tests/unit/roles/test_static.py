"""What can be seen in the roles' files alone: variables, documentation, handlers, lint."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.findings.registry import rules

ROOT = Path(__file__).resolve().parents[3]
ROLES = ROOT / "roles"

_spec = importlib.util.spec_from_file_location("document", ROLES / "document.py")
assert _spec and _spec.loader
document = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(document)


@pytest.mark.parametrize("role", document.role_names())
def test_defaults_equal_argument_specs(role: str) -> None:
    assert document.differences(role) == []


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        document, "defaults", lambda role: {"gpu_fabric_mode": "none", "gpu_fabric_ready_timeout": "300"}
    )
    assert len(document.differences("gpu_fabric")) == 4  # another value, another type (twice), a key without default


def test_tables_in_the_documentation_are_current() -> None:
    stale = [str(path) for path, text in document.outputs().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python roles/document.py"


@pytest.mark.parametrize("role", document.role_names())
def test_defaults_are_literal_and_carry_the_roles_name(role: str) -> None:
    for name, value in document.defaults(role).items():
        assert name.startswith(f"{role}_")
        assert "{{" not in str(value)


def tasks_of(node: Any) -> list[dict[str, Any]]:
    """Every task in a parsed file, blocks opened."""
    found: list[dict[str, Any]] = []
    for item in node or []:
        if isinstance(item, dict):
            found.append(item)
            for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
                found += tasks_of(item.get(part))
    return found


def all_tasks() -> list[tuple[Path, dict[str, Any]]]:
    files = [*ROLES.glob("*/tasks/*.yml"), *ROLES.glob("*/handlers/*.yml"), *(ROOT / "playbooks").glob("*.yml")]
    return [
        (path, task) for path in sorted(files) for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8")))
    ]


def names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def test_every_notified_handler_exists_letter_by_letter() -> None:
    handlers = set()
    for path in [*ROLES.glob("*/handlers/*.yml"), *(ROOT / "playbooks").glob("*.yml")]:
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            handlers |= {task.get("name"), *names(task.get("listen"))}
    unknown = [
        (path.name, name) for path, task in all_tasks() for name in names(task.get("notify")) if name not in handlers
    ]
    assert unknown == []


def test_the_roles_have_no_handlers() -> None:
    """A run that dies between a change and its handler would never make up for it."""
    assert [path for path, task in all_tasks() if "notify" in task] == []
    assert list(ROLES.glob("*/handlers")) == []


FORBIDDEN = ("ansible.builtin.shell", "ansible.builtin.raw", "ansible.builtin.apt_key", "ansible.builtin.script")


def test_no_shell_and_no_ignored_error() -> None:
    assert [(path.name, task["name"]) for path, task in all_tasks() if set(task) & set(FORBIDDEN)] == []
    assert [(path.name, task["name"]) for path, task in all_tasks() if task.get("ignore_errors")] == []


def test_commands_say_when_they_change_something() -> None:
    for path, task in all_tasks():
        if "ansible.builtin.command" in task:
            arguments = task["ansible.builtin.command"]
            assert "changed_when" in task or {"creates", "removes"} & set(arguments), (path.name, task["name"])


def test_every_code_is_used_and_every_used_code_has_a_rule() -> None:
    folders = (ROOT / "infra/gpufleet/hosts", ROOT / "plugins/plugin_utils", ROOT / "plugins/action")
    text = "".join(path.read_text() for folder in folders for path in folder.glob("*.py"))
    used = set(re.findall(r'"(GF7\d\d)"', text))
    assert used == {code for code in rules() if code.startswith("GF7")}


def test_packages_wait_for_the_lock_and_never_ask() -> None:
    calls = [task for _path, task in all_tasks() if "gpufleet.hosts.packages" in task]
    assert calls
    for task in calls:
        assert task["gpufleet.hosts.packages"]["lock_timeout"] == "{{ gpu_lock_timeout }}"
        assert task["environment"] == {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}


def test_a_reboot_has_one_place_and_a_guard() -> None:
    places = [path.relative_to(ROOT) for path, task in all_tasks() if "ansible.builtin.reboot" in task]
    assert places == [Path("roles/gpu/tasks/reboot.yml")]
    for path, task in all_tasks():
        if task.get("ansible.builtin.include_tasks") == "reboot.yml":
            conditions = " ".join(str(c) for c in names(task["when"]))
            assert "gpu_reboot_policy != 'never'" in conditions and "!= 'local'" in conditions, path


def test_the_lowest_ansible_is_stated_everywhere() -> None:
    for role in document.role_names():
        meta = yaml.safe_load((ROLES / role / "meta/main.yml").read_text(encoding="utf-8"))
        assert meta["galaxy_info"]["min_ansible_version"] == "2.19"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / command[0]
    if not program.exists():
        pytest.skip(f"{command[0]} is not installed (a development dependency)")
    return subprocess.run([str(program), *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_lint_production_with_nothing_skipped() -> None:
    settings = yaml.safe_load((ROOT / ".ansible-lint").read_text())
    assert settings["profile"] == "production" and not {"skip_list", "warn_list", "enable_list"} & set(settings)
    result = run("ansible-lint", "--offline", "--nocolor", "roles", "playbooks", "plugins", "meta")
    assert result.returncode == 0, result.stdout + result.stderr


def test_yamllint() -> None:
    files = ("roles", "playbooks", "meta", "inventories", "galaxy.yml", "requirements.yml", "tests/hosts")
    result = run("yamllint", "--strict", "-c", ".yamllint", *files)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("playbook", sorted(path.name for path in (ROOT / "playbooks").glob("*.yml")))
def test_syntax(playbook: str) -> None:
    result = run("ansible-playbook", "--syntax-check", "-i", "localhost,", f"playbooks/{playbook}")
    assert result.returncode == 0, result.stdout + result.stderr
