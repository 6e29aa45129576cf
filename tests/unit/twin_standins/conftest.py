from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.twin_standins.bodies import CLUSTER, GROUP, POOL
from tests.unit.twin_standins.fake_kube import FakeKube
from twin.azure.service import Service
from twin.azure.store import Store


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def azure(tmp_path: Path, kube: FakeKube, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A subscription with a group and a cluster."""
    monkeypatch.setenv("TWIN_AZURE_CONTROL", str(tmp_path / "control.json"))
    service = Service(Store(tmp_path / "azure.json"), lambda: kube)  # type: ignore[arg-type, return-value]
    service.put("ResourceGroup", GROUP, create=True)
    service.put("ManagedCluster", CLUSTER, create=True)
    return service


@pytest.fixture
def put_pool(azure: Service) -> Callable[..., dict[str, Any]]:
    """Create a pool (or, with create=False, replace it) from the usual body with changes; None drops a property."""

    def put(create: bool = True, **changes: Any) -> dict[str, Any]:
        body = {key: value for key, value in {**POOL, **changes}.items() if value is not None}
        return azure.put("AgentPool", body, create)

    return put
