"""One twin for all engine tests of a session: the real API server, scheduler and Pulumi; simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from twin.engine import Twin, TwinError, make_project

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """A running twin in a folder of its own. Where its programs cannot be had, tests fail and say what to install."""
    try:
        running = Twin.start(tmp_path_factory.mktemp("twin") / "twin")
    except TwinError as error:
        pytest.fail(str(error), pytrace=False)
    yield running
    running.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the checkout's program without stack files; `write_stack` adds them."""
    return make_project(tmp_path / "project", {})
