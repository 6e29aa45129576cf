"""Fixtures of the host tests: sets of hosts that several tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from twin.hosts import machine
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder as a host test."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.hosts)


@pytest.fixture(scope="session")
def host_machine() -> None:
    """Skip, with the precise reason, where this machine cannot run host twins."""
    try:
        machine.check()
        machine.debian_sources("bookworm")
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def start_hosts(
    host_machine: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[int, Sequence[str]], HostTwin]]:
    """Start hosts for one test: `start_hosts(count, scenarios)`; they are stopped when the test ends."""
    running: list[HostTwin] = []

    def start(count: int, scenarios: Sequence[str] = ()) -> HostTwin:
        twin = HostTwin(tmp_path_factory.mktemp("hosts"))
        running.append(twin)
        try:
            twin.start(count, scenarios)
        except UnavailableError as error:
            pytest.skip(str(error))
        return twin

    yield start
    for twin in running:
        twin.stop()
