"""Options of all tests, and which of them a plain run leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the golden files anew (tests/golden)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `long`, unless `-m` chooses, or the test or its file is named on the command line."""
    if config.option.markexpr:
        return
    named = {(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args}
    files = {path for path in named if Path(path).is_file()}
    left = [item for item in items if item.get_closest_marker("long") and item.path.resolve() not in files]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
