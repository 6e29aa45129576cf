from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_kube import FakeKube

from twin.azure.service import Service
from twin.azure.store import Store

GROUP = {"resourceGroupName": "rg", "location": "eastus"}
CLUSTER = {"resourceGroupName": "rg", "resourceName": "aks", "location": "eastus", "dnsPrefix": "aks",
           "identity": {"type": "SystemAssigned"}, "kubernetesVersion": "1.36",
           "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}]}
POOL = {"resourceGroupName": "rg", "resourceName": "aks", "agentPoolName": "t4", "vmSize": "Standard_NC4as_T4_v3",
        "count": 1, "mode": "User"}


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
