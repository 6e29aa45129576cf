"""The wheel, built once, and an environment for each set of extras that a test asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.package.environments import Environment, build_wheel, make_environment

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.package)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """The environment of an extra; "" is the one without."""

    @cache
    def make(extra: str) -> Environment:
        return make_environment(tmp_path_factory.mktemp(f"env-{extra or 'base'}"), wheel, extra)

    return make
