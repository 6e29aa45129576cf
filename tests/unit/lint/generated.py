"""Fleets and workloads by chance, for the comparison of lint with Kubernetes."""

from __future__ import annotations

import random
from typing import Any

from tests.unit.lint.fleets import AKS, host_pool, sections

Pools = list[dict[str, Any]]
TAINTS = ["team=ml:NoSchedule", "nvidia.com/gpu=present:NoSchedule", "dedicated:NoExecute", "soft=1:PreferNoSchedule"]
PROFILES: dict[str, dict[str, Any]] = {
    "ts": {"strategy": "timeSlicing", "replicas": 4},
    "many": {"strategy": "timeSlicing", "replicas": 3, "failRequestsGreaterThanOne": False},
    "renamed": {"strategy": "timeSlicing", "replicas": 2, "renameByDefault": True},
    "mps": {"strategy": "mps", "replicas": 2},
    "single": {"strategy": "mig", "profile": "1g.5gb", "naming": "single"},
    "mixed": {"strategy": "mig", "profile": "3g.20gb", "naming": "mixed"},
    "two": {"strategy": "mig", "instances": {"1g.5gb": 2, "3g.20gb": 1}},
    "slices": {"strategy": "mig", "profile": "2g.10gb", "naming": "mixed", "replicas": 2, "renameByDefault": True},
}
_MIG = ("single", "mixed", "two", "slices")
RESOURCES = [
    "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb",
    "nvidia.com/mig-3g.20gb", "nvidia.com/mig-2g.10gb.shared", "nvidia.com/mig-2g.10gb",
]  # fmt: skip
PRODUCTS = ["Tesla-T4", "Tesla-T4-SHARED", "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB-SHARED"]


def fleet(chance: random.Random, *, existing: bool = False) -> dict[str, Any]:
    """A stack of one to three pools; MIG strategies that one release can have together."""
    if not existing and chance.random() < 0.3:
        return _on_aks(chance)
    route = chance.choice(("operator", "plugin"))
    naming = chance.choice(("single", "mixed", "two", "slices"))
    pools, used, hosts = [], set(), not existing and chance.random() < 0.4
    for name in chance.sample(["gold", "silver", "h100", "a100"], chance.randint(1, 3)):
        sharing = chance.choice([None, "ts", "many", "renamed", naming, *([] if existing else ["mps"])])
        gpu = "A100-SXM4-40GB" if sharing in _MIG else chance.choice(("T4", "A100-SXM4-40GB"))
        keys: dict[str, Any] = {"sharing": sharing} if sharing else {}
        if sharing:
            used.add(sharing)
        if chance.random() < 0.4:
            keys["taints"] = chance.sample(TAINTS, chance.randint(1, 2))
        if chance.random() < 0.4:
            keys["labels"] = {"tier": chance.choice("123")}
        if hosts:
            keys["driver"] = "host"
        pools.append(host_pool(name, gpu, chance.choice((1, 2, 4)), chance.randint(1, 2), **keys))
    stack = sections(*pools, route=route, sharing={name: PROFILES[name] for name in sorted(used)})
    if route == "operator" and not existing and chance.random() < 0.4:
        stack["stack"]["values"] = {"cdi": {"enabled": False}}
    return stack


def _on_aks(chance: random.Random) -> dict[str, Any]:
    pools, used = [], set()
    for name in chance.sample(["gold", "silver", "h100"], chance.randint(1, 3)):
        sharing = chance.choice([None, "ts", "many", "renamed"])
        pool: dict[str, Any] = {"name": name, "vmSize": "Standard_NC64as_T4_v3", "driver": "aks"}
        pool |= {"autoscale": {"min": 1, "max": chance.randint(1, 3)}} if chance.random() < 0.5 else {"count": 2}
        if sharing:
            pool["sharing"] = sharing
            used.add(sharing)
        if chance.random() < 0.5:
            pool["taints"] = chance.sample(TAINTS, 1)
        pools.append(pool)
    return sections(*pools, route="plugin", cluster=AKS, sharing={name: PROFILES[name] for name in sorted(used)})


def pod(chance: random.Random, stack: dict[str, Any], name: str = "p") -> dict[str, Any]:
    """A pod that is meant for one of the pools: every second one as it should be, the others with slips."""
    pools = stack["pools"]
    aim = chance.choice(pools)
    if chance.random() < 0.5:
        return _careful(chance, stack, aim, name)
    resource = _offered(chance, stack, aim) if chance.random() < 0.7 else chance.choice(RESOURCES)
    number = chance.choice((1, 1, 1, 2, 3, 4, 5, 8))
    spec: dict[str, Any] = {"containers": [_container("c", {resource: number})]}
    if chance.random() < 0.15:
        spec["containers"].append(_container("d", {chance.choice((resource, *RESOURCES)): chance.choice((1, 2))}))
    if chance.random() < 0.15:
        first = _container("i", {resource: chance.choice((1, 2, 4))})
        spec["initContainers"] = [{**first, **({"restartPolicy": "Always"} if chance.random() < 0.5 else {})}]
    if chance.random() < 0.6:
        wanted = [taint for taint in aim.get("taints", []) if chance.random() < 0.9]
        spec["tolerations"] = [_toleration(chance, taint) for taint in wanted]
    elif chance.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists"}]
    _choose_nodes(chance, spec, aim, pools)
    if chance.random() < 0.6:
        spec["runtimeClassName"] = chance.choice(("nvidia", "nvidia", "nvidia", "nvidia-container-runtime"))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _careful(chance: random.Random, stack: dict[str, Any], aim: dict[str, Any], name: str) -> dict[str, Any]:
    several = aim.get("sharing") in (None, "many") and aim.get("gpusPerNode", 4) > 1
    number = chance.choice((1, 2)) if several else 1
    spec: dict[str, Any] = {"containers": [_container("c", {_offered(chance, stack, aim): number})]}
    spec["tolerations"] = [_right(taint) for taint in aim.get("taints", [])]
    if chance.random() < 0.7:
        spec["nodeSelector"] = {"gpufleet.dev/pool": aim["name"]}
    if stack["cluster"]["kind"] == "existing" and chance.random() < 0.9:
        spec["runtimeClassName"] = "nvidia"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _right(taint: str) -> dict[str, Any]:
    body, _, effect = taint.rpartition(":")
    key, _, value = body.partition("=")
    if not value:
        return {"key": key, "operator": "Exists", "effect": effect}
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}


def _container(name: str, limits: dict[str, int]) -> dict[str, Any]:
    return {"name": name, "image": "example/train:1", "resources": {"limits": limits}}


def _offered(chance: random.Random, stack: dict[str, Any], pool: dict[str, Any]) -> str:
    return {
        "renamed": "nvidia.com/gpu.shared", "mixed": "nvidia.com/mig-3g.20gb", "two": "nvidia.com/mig-1g.5gb",
        "slices": "nvidia.com/mig-2g.10gb.shared",
    }.get(pool.get("sharing", ""), "nvidia.com/gpu")  # fmt: skip


def _toleration(chance: random.Random, taint: str) -> dict[str, Any]:
    body, _, effect = taint.rpartition(":")
    key = body.partition("=")[0]
    form = chance.randrange(5)
    if form == 0:
        return {"key": key, "operator": "Exists"}
    if form == 1:
        return {"key": key, "operator": "Exists", "effect": "NoExecute" if effect != "NoExecute" else "NoSchedule"}
    if form == 2:
        return {"key": key, "operator": "Equal", "value": "other", "effect": effect}
    return _right(taint)


def _choose_nodes(chance: random.Random, spec: dict[str, Any], aim: dict[str, Any], pools: Pools) -> None:
    roll = chance.random()
    label = "gpufleet.dev/pool"
    if roll < 0.3:
        name = aim["name"] if chance.random() < 0.8 else aim["name"] + "x"
        spec["nodeSelector"] = {label: name}
    elif roll < 0.4 and any("labels" in pool for pool in pools):
        spec["nodeSelector"] = {"tier": chance.choice("1234")}
    elif roll < 0.5:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": chance.choice(PRODUCTS)}
    elif roll < 0.7:
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [_expression(chance, pools) for _ in range(chance.randint(1, 2))]}
                        for _ in range(chance.randint(1, 2))
                    ]
                }
            }
        }


def _expression(chance: random.Random, pools: Pools) -> dict[str, Any]:
    keys = ["gpufleet.dev/pool", *(["tier"] if any("labels" in pool for pool in pools) else [])]
    key = chance.choice(keys)
    numeric = ("Gt", "Lt") if key == "tier" else ()
    operator = chance.choice(("In", "In", "In", "NotIn", "Exists", "DoesNotExist", *numeric))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        return {"key": key, "operator": operator, "values": [chance.choice("012")]}
    values = [str(pool["name"]) for pool in pools] + ["bronze"] if key != "tier" else list("1234")
    return {"key": key, "operator": operator, "values": sorted(chance.sample(values, chance.randint(1, 2)))}
