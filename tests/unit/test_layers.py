"""Who may import whom: the contracts of pyproject.toml, and no circles in the collection's plugins."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"
COLLECTION = "ansible_collections.gpufleet.hosts.plugins."


def test_the_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    code = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert code == 0, capsys.readouterr().out


def _imports(file: Path) -> set[str]:
    """Plugins that a plugin imports, as folder.name."""
    own, found = file.parent.name, set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = f"{COLLECTION}{own}.{node.module or ''}".rstrip(".") if node.level else node.module or ""
            found |= {module, *(f"{module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name.removeprefix(COLLECTION) for name in found if name.startswith(COLLECTION)}


def test_plugins_have_no_circles() -> None:
    files = {f"{file.parent.name}.{file.stem}": file for file in PLUGINS.rglob("*.py")}
    graph = {name: _imports(file) & files.keys() for name, file in files.items()}
    assert sum(map(len, graph.values())) > 10, "imports are seen"
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle in it
