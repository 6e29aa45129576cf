"""Pieces of stacks that the tables of cases share."""

from __future__ import annotations

from typing import Any

from tests.unit.config.samples import REMOVE

T4 = "Standard_NC4as_T4_v3"
GB200 = "Standard_ND128isr_NDR_GB200_v6"
OWNERS_AKS = ("aks", "operator", "managed", "none")
LISTED = ("610.57.04", "595.91.07", "580.173.02", "535.309.01")
SUBNET = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
SPOT = "kubernetes.azure.com/scalesetpriority"

def sharing(**profile: Any) -> dict[str, Any]:
    """The pool t4 with time-slicing."""
    return {"sharing.half": {"strategy": "timeSlicing", "replicas": 2, **profile}, "pools[0].sharing": "half"}


def second(base: str = "aks", **pool: Any) -> dict[str, Any]:
    """One more pool, called b."""
    if base == "aks":
        return {"pools[1]": {"name": "b", "vmSize": T4, "count": 1, **pool}}
    return {"pools[1]": {"name": "b", "hosts": {"n2": {}}, "gpu": "T4", "gpusPerNode": 1, **pool}}


TEAM = {"name": "x", "namespace": "x", "pools": ["t4"]}
SCALED = {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 0, "max": 3}}
SCALED_FROM_ONE = {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 1, "max": 3}}
BY_SELECTOR = {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "b"}}
