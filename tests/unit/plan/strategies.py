"""Stacks without errors, of all kinds, for property tests."""

from __future__ import annotations

from typing import Any

from gpufleet.parts.names import OPERATOR_CONFIG_LABEL, UNSHARED
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: No limits of time: the machine may be busy.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

_SIZES = (
    "Standard_NC4as_T4_v3",
    "Standard_NC64as_T4_v3",
    "Standard_NC24ads_A100_v4",
    "Standard_NC40ads_H100_v5",
    "Standard_ND96isr_H200_v5",
)
_GPUS = ("T4", "A10", "A100-SXM4-80GB", "A100-80GB", "H100-SXM5-80GB", "H200", "L40S")
_KEYS = ("sku", "nvidia.com/gpu", "team.example.com/owner", "batch")

names = st.sampled_from(("a", "abcdefg8", "t4", "t4spot", "h100", "z9", "b", "gpu"))
words = st.sampled_from(("a", "half", "two-words", "x-1", "third", "abcdefghijabcdefghijabcdefghij"))
label_values = st.sampled_from(("", "a", "A_b.c-1", "0", "x" * 63))


@st.composite
def taints(draw: st.DrawFn) -> list[str]:
    """Up to four taints, one per key and effect."""
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(_KEYS), st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))),
            unique=True,
            max_size=4,
        )
    )
    return [f"{key}{draw(st.sampled_from(('', '=a', '=b.c_d-1')))}:{effect}" for key, effect in pairs]


@st.composite
def profiles(draw: st.DrawFn) -> dict[str, Any]:
    """Up to three sharing profiles."""
    out: dict[str, Any] = {}
    for name in draw(st.lists(words.filter(lambda w: w != UNSHARED), unique=True, max_size=3)):
        if draw(st.booleans()):
            out[name] = {"strategy": "none"}
            continue
        out[name] = {"strategy": "timeSlicing", "replicas": draw(st.integers(2, 48))}
        for key in ("renameByDefault", "failRequestsGreaterThanOne"):
            if draw(st.booleans()):
                out[name][key] = draw(st.booleans())
    return out


@st.composite
def _pool(draw: st.DrawFn, name: str, aks: bool, operator: bool, sharing: dict[str, Any]) -> dict[str, Any]:
    own = "aks" if aks else "host"
    pool: dict[str, Any] = {"name": name, "driver": draw(st.sampled_from((own, own, "none", *["operator"] * operator)))}
    pool["taints"] = draw(taints())
    if sharing and pool["driver"] != "none" and draw(st.booleans()):
        pool["sharing"] = draw(st.sampled_from(sorted(sharing)))
    if aks:
        pool["vmSize"] = draw(st.sampled_from(_SIZES))
        pool["spot"] = draw(st.booleans())
        pool["labels"] = draw(st.dictionaries(words, label_values, max_size=2))
        _aks_size(draw, pool, sharing)
        return pool
    pool["gpu"] = draw(st.sampled_from(_GPUS))
    pool["gpusPerNode"] = draw(st.integers(1, 16))
    if draw(st.booleans()):
        count = draw(st.integers(1, 3))
        pool["hosts"] = {
            f"{name}-{i}": draw(st.sampled_from((None, {}, {"address": f"{name}.{i}"}))) for i in range(count)
        }
        pool["labels"] = draw(st.dictionaries(words, label_values, max_size=2))
    else:
        pool["nodeSelector"] = {"pool.example.com/name": name, **_by_others(pool)}
    return pool


def _by_others(pool: dict[str, Any]) -> dict[str, str]:
    """Labels that nodes found by a selector need on the operator route."""
    if pool["driver"] == "none":
        return {"nvidia.com/gpu.deploy.operands": "false"}
    labels = {OPERATOR_CONFIG_LABEL: pool.get("sharing", UNSHARED)}
    if pool["driver"] == "host":
        labels |= {"nvidia.com/gpu.deploy.driver": "false", "nvidia.com/gpu.deploy.container-toolkit": "false"}
    return labels


def _aks_size(draw: st.DrawFn, pool: dict[str, Any], sharing: dict[str, Any]) -> None:
    if draw(st.booleans()):
        pool["count"] = draw(st.integers(0, 5))
        return
    renamed = sharing.get(pool.get("sharing", ""), {}).get("renameByDefault", False)
    low = draw(st.integers(1 if renamed else 0, 3))
    pool["autoscale"] = {"min": low, "max": draw(st.integers(max(low, 1), 9))}


@st.composite
def stacks(draw: st.DrawFn) -> dict[str, Any]:
    """The sections of a stack that has no errors."""
    aks, operator = draw(st.booleans()), draw(st.booleans())
    sharing = draw(profiles())
    pools = [
        draw(_pool(name, aks, operator, sharing)) for name in draw(st.lists(names, unique=True, min_size=1, max_size=4))
    ]
    if not aks:
        default = draw(st.booleans())
        for pool in pools:
            pool["nvidiaDefaultRuntime"] = default
    cluster = {"kind": "aks", "name": "dev", "location": "eastus"}
    if not aks:
        distribution = draw(st.sampled_from(("kubeadm", "k3s", "rke2", "microk8s")))
        cluster = {"kind": "existing", "name": "idc", "kubeconfig": {"path": "k"}, "distribution": distribution}
    stack: dict[str, Any] = {
        "cluster": cluster,
        "pools": pools,
        "stack": {"kind": "operator" if operator else "plugin"},
        "sharing": sharing,
    }
    drivers = {pool["driver"] for pool in pools}
    if drivers >= {"host", "operator"}:
        stack["stack"]["values"] = {"cdi": {"enabled": False}}
    if drivers >= {"aks", "operator"}:
        for pool in pools:
            pool["driver"] = "none" if pool["driver"] == "none" else "operator"
    served = [p["name"] for p in pools if p["driver"] != "none"]
    if served and draw(st.booleans()):
        stack["teams"] = [
            {"name": "x", "namespace": "x", "pools": [served[0]], "quota": {"gpu": draw(st.integers(0, 99))}}
        ]
    return stack
