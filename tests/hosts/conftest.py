"""Fixtures of the host tests: they skip, with the precise reason, where this machine cannot run host twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from twin.hosts import machine
from twin.hosts.engine import HostTwin, ScenarioLike
from twin.hosts.errors import UnavailableError

StartHosts = Callable[..., HostTwin]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder as a host test."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.hosts)


@pytest.fixture(scope="session")
def host_machine() -> None:
    """Skip where this machine cannot run host twins, and say why."""
    try:
        machine.check()
    except UnavailableError as error:
        pytest.skip(str(error))


def _starter(folder: Callable[[], Path], running: list[HostTwin]) -> StartHosts:
    def start(count: int, scenarios: Sequence[ScenarioLike] = (), nspawn_args: Sequence[str] = ()) -> HostTwin:
        twin = HostTwin(folder())
        running.append(twin)
        try:
            twin.start(count, scenarios, nspawn_args)
        except UnavailableError as error:
            pytest.skip(str(error))
        return twin

    return start


@pytest.fixture
def start_hosts(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartHosts]:
    """`start_hosts(count, scenarios)` gives a running HostTwin; it is stopped when the test ends."""
    running: list[HostTwin] = []
    yield _starter(lambda: tmp_path_factory.mktemp("hosts"), running)
    for twin in running:
        twin.stop()


@pytest.fixture(scope="module")
def start_module_hosts(host_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartHosts]:
    """As `start_hosts`, for hosts that the tests of one module share."""
    running: list[HostTwin] = []
    yield _starter(lambda: tmp_path_factory.mktemp("hosts"), running)
    for twin in running:
        twin.stop()
