"""Every combination that decides how a GPU gets into a container: refused, or it really gets there (RP-09 to RP-12)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from gpufleet.fleet.model import Fleet
from gpufleet.fleet.resolve import resolve
from gpufleet.inventory.inventory import pool_variables
from gpufleet.parts.artifact import HelmRelease
from gpufleet.places.existing.hosts import listed_pools
from gpufleet.routes import software
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.source import Source
from gpufleet.stackfile.validate import validate
from gpufleet.teams.teams import pool_access

from tests.unit.config.samples import compile_data
from tests.unit.fleet import runtime_world as world

VERSIONS = ("v26.7.0", "v26.3.3", "v25.10.1", "v25.3.4")
NVIDIA = "nvidia"
#: The rules that refuse a combination; every other finding here is a warning about versions and methods.
REFUSALS = {"GF235", "GF236", "GF237", "GF238"}


def combinations() -> Iterator[dict[str, Any]]:
    """All that a stack file can say about it."""
    for distribution, made in (
        *((name, False) for name in ("kubeadm", "k3s", "rke2", "microk8s", "aks")), ("aks", True)
    ):  # fmt: skip
        own = "aks" if distribution == "aks" else "host"
        for method, default in itertools.product(("timeSlicing", "hami"), (False, True) if own == "host" else (False,)):
            plain = {"made": made, "distribution": distribution, "method": method, "default": default}
            yield {**plain, "route": "plugin", "owners": (own,), "version": None, "cdi": None, "nri": None}
            for owners, version, cdi, nri in itertools.product(
                ((own,), ("operator",), (own, "operator")), VERSIONS, (None, True, False), (None, True)
            ):
                yield {**plain, "route": "operator", "owners": owners, "version": version, "cdi": cdi, "nri": nri}


def stack(c: dict[str, Any]) -> dict[str, Any]:
    aks = c.get("made", False)
    values = {"cdi": {k: v for k, v in (("enabled", c["cdi"]), ("nriPluginEnabled", c["nri"])) if v is not None}}
    pools = []
    for i, owner in enumerate(c["owners"]):
        pool: dict[str, Any] = {"name": f"p{i}", "driver": owner, "sharing": "s"}
        if aks:
            pool |= {"vmSize": "Standard_NC4as_T4_v3", "count": 1}
        else:
            pool |= {"gpu": "T4", "gpusPerNode": 1}
            if c["distribution"] == "aks":
                names = {"nvidia.com/device-plugin.config": "s"} if c["method"] == "timeSlicing" else {"gpu": "on"}
                if "operator" in c["owners"] and owner != "operator":
                    names |= {f"nvidia.com/gpu.deploy.{part}": "false" for part in ("driver", "container-toolkit")}
                needed = c["route"] == "operator" or c["method"] == "hami"
                pool["nodeSelector"] = {"agentpool": f"p{i}", **(names if needed else {})}
            else:
                pool["hosts"] = {f"n{i}": {"address": f"10.0.0.{i + 1}"}}
                pool["nvidiaDefaultRuntime"] = c["default"]
        pools.append(pool)
    existing = {"kind": "existing", "name": "idc", "kubeconfig": {"path": "k"}, "distribution": c["distribution"]}
    route: dict[str, Any] = {"kind": c["route"]}
    if c["route"] == "operator":
        route |= {"version": c["version"], "values": values}
    sharing = {"timeSlicing": {"strategy": "timeSlicing", "replicas": 2}, "hami": {"strategy": "hami"}}[c["method"]]
    cluster = {"kind": "aks", "name": "dev", "location": "eastus"} if aks else existing
    return {"cluster": cluster, "pools": pools, "stack": route, "sharing": {"s": sharing}}


def faults(c: dict[str, Any], found: Stack, containerd: str) -> list[str]:
    """What goes wrong on real nodes with everything that the stack registers."""
    fleet: Fleet = resolve(found)
    installed = {artifact.id: artifact for artifact in software(fleet)}
    operator: Any = installed.get("operator")
    plugin: Any = installed.get("plugin")
    hami: Any = installed.get("hami")
    version = c["version"] or ""
    values = operator.values if operator else None
    if values and (why := world.refused(values)):
        return [why]
    known, wrong = world.classes(c["distribution"], values, version, plugin.runtime_class if plugin else None)
    listed = {pool.name for pool in listed_pools(fleet)} if c["distribution"] != "aks" else set()
    for pool in fleet.served:
        if c["distribution"] == "aks":
            node = world.aks("Install" if pool.owner == "aks" else "None")
            made = fleet.place.pool_resource(pool, found)
            assert not c["made"] or made.driver == ("Install" if pool.owner == "aks" else "None")
        else:
            assert pool.name in listed
            variables = {"gpu_container_toolkit_state": "absent", **pool_variables(pool, fleet)}
            node = world.host(variables, containerd)
        if values:
            node = world.with_operator(node, version, values, dict(pool.labels), c["distribution"])
            if not world.nri_on(version, values):
                problem, _ = world.runs(node, values["operator"]["runtimeClass"], known)
                wrong += [f"{pool.name}: the operator's own pods: {problem}"] if problem else []
        if pool.runtime is not None and pool.runtime.default != node.default:
            wrong.append(f"{pool.name}: the plan says that the default is {pool.runtime.default}")
        offer = world.Offer("variable", None)
        if values and not hami:
            offer = world.operator_offer(version, values)
        own = hami.values["devicePlugin"].get("runtimeClassName") if hami else None
        if plugin and plugin.daemon_sets:
            own = next(d.runtime_class for d in plugin.daemon_sets if pool.name in d.pools)
        if (hami or plugin) and (problem := world.sees_gpus(node, own, known)):
            wrong.append(f"{pool.name}: {problem}")
        # Both pods that name what teams are told to name, and nothing else.
        if problem := world.gets_gpu(node, offer, pool_access(pool).runtime_class, known):
            wrong.append(f"{pool.name}: {problem}")
    return wrong


def test_every_combination_is_refused_or_works(capsys: pytest.CaptureFixture[str]) -> None:
    """With containerd 1.7, which resolves no CDI devices unless it is told so, and with 2.1, which does."""
    counted: Counter[str] = Counter()
    for c in combinations():
        compiled = compile_data(stack(c))
        refusals = {d.code for d in compiled.found if d.severity.value == "error"}
        read = validate(Source(data=stack(c)), []).stack  # what a plan would be made of if nothing were refused
        assert read is not None and refusals <= REFUSALS, (c, refusals)
        wrong = {containerd: faults(c, read, containerd) for containerd in ("1.7", "2.1")}
        if refusals:
            # A value that the chart does not know does nothing: refused, though pods would run.
            assert any(wrong.values()) or refusals == {"GF238"}, f"refused for nothing: {c} {refusals}"
        else:
            assert not any(wrong.values()), (c, wrong)
        counted["refused" if refusals else "works"] += 1
    with capsys.disabled():
        print(f"\ncontainer runtimes: {counted['works']} combinations work, {counted['refused']} are refused")
    assert counted["works"] > 300 and counted["refused"] > 300


RP = {
    "RP-09 HAMi with the operator's toolkit": (
        {"distribution": "rke2", "method": "hami", "default": False, "route": "operator", "owners": ("operator",),
         "version": "v26.7.0", "cdi": None, "nri": None}, {"cdi": {"enabled": False}}, set(),
    ),
    "RP-10 hosts with containerd 1.7 under the operator": (
        {"distribution": "kubeadm", "method": "timeSlicing", "default": False, "route": "operator", "owners": ("host",),
         "version": "v26.7.0", "cdi": None, "nri": None}, {"cdi": {"enabled": True}}, set(),
    ),
    "RP-11 host and operator in one release": (
        {"distribution": "kubeadm", "method": "timeSlicing", "default": False, "route": "operator",
         "owners": ("host", "operator"), "version": "v26.7.0", "cdi": None, "nri": None}, None, {"GF235"},
    ),
    "RP-12 aks and operator in one release": (
        {"distribution": "aks", "method": "timeSlicing", "default": False, "route": "operator",
         "owners": ("aks", "operator"), "made": True, "version": "v26.7.0", "cdi": None, "nri": None}, None, {"GF236"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", RP)
def test_rows_of_users(row: str) -> None:
    c, values, refusals = RP[row]
    compiled = compile_data(stack(c))
    assert {d.code for d in compiled.found if d.severity.value == "error"} == refusals
    if values is not None:
        assert compiled.plan is not None and compiled.plan.operator is not None
        assert values.items() <= compiled.plan.operator.values.items()


def test_hosts_are_told_to_resolve_cdi_devices_where_the_plugin_hands_them_out() -> None:
    """RP-10; with CDI off, or under the standalone plugin, the host is left as it is."""
    c, _, _ = RP["RP-10 hosts with containerd 1.7 under the operator"]

    def told(**changes: Any) -> tuple[bool, bool]:
        fleet = compile_data(stack({**c, **changes})).fleet
        assert fleet is not None
        variables = pool_variables(fleet.pools[0], fleet)
        return variables["gpu_container_toolkit_cdi"], variables["gpu_container_toolkit_unprivileged_envvar"]

    assert told() == (True, False)
    assert told(cdi=False) == (False, True)
    assert told(method="hami") == (False, True)
    assert told(route="plugin") == (False, True)


@pytest.mark.parametrize("distribution", ["k3s", "rke2"])
@pytest.mark.parametrize(("method", "version"), [("hami", "v26.7.0"), ("timeSlicing", "v25.3.4")])
def test_k3s_and_rke2_keep_their_default_runtime(distribution: str, method: str, version: str) -> None:
    """RP-09: the operator's toolkit cannot make its runtime the default there, so everybody names the class."""
    c, _, _ = RP["RP-09 HAMi with the operator's toolkit"]
    compiled = compile_data(stack({**c, "distribution": distribution, "method": method, "version": version}))
    assert compiled.fleet is not None and compiled.plan is not None
    (pool,) = compiled.fleet.pools
    assert pool.runtime is not None and pool.runtime.default == "runc"
    assert pool_access(pool).runtime_class == NVIDIA
    if method == "hami":
        (hami,) = [artifact for artifact in software(compiled.fleet) if artifact.id == "hami"]
        assert isinstance(hami, HelmRelease)
        assert hami.values["devicePlugin"]["runtimeClassName"] == NVIDIA
