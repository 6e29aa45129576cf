"""Usual bodies: a group, a cluster and a pool."""

from __future__ import annotations

from typing import Any

GROUP: dict[str, Any] = {"resourceGroupName": "rg", "location": "eastus"}
CLUSTER: dict[str, Any] = {
    "resourceGroupName": "rg", "resourceName": "aks", "location": "eastus", "dnsPrefix": "aks",
    "identity": {"type": "SystemAssigned"}, "kubernetesVersion": "1.36",
    "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}]}
POOL: dict[str, Any] = {
    "resourceGroupName": "rg", "resourceName": "aks", "agentPoolName": "t4", "vmSize": "Standard_NC4as_T4_v3",
    "count": 1, "mode": "User"}
