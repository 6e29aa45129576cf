"""Methods on both routes and both kinds of cluster: up, as predicted, another method, destroy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.engine.workloads import gpu_pod, remove_all, running, start
from twin.engine import Twin, write_stack

ROOT = Path(__file__).resolve().parents[2]
CHARTS = {
    "GPUFLEET_OPERATOR_CHART": str(ROOT / "twin" / "chart" / "gpu-operator"),
    "GPUFLEET_HAMI_CHART": str(ROOT / "twin" / "chart" / "hami"),
}
NODE = "met-1"
#: method -> (profile, what a node with two A100 of 80 GB then offers)
METHODS = {
    "whole": ({"strategy": "none"}, {"nvidia.com/gpu": 2}),
    "timeSlicing": ({"strategy": "timeSlicing", "replicas": 4, "renameByDefault": True}, {"nvidia.com/gpu.shared": 8}),
    "mps": ({"strategy": "mps", "replicas": 4}, {"nvidia.com/gpu": 8}),
    "mig": ({"strategy": "mig", "profile": "1g.10gb"}, {"nvidia.com/gpu": 14}),
    "mig-shared": ({"strategy": "mig", "profile": "3g.40gb", "replicas": 2}, {"nvidia.com/gpu": 8}),
    "mig-mixed": (
        {"strategy": "mig", "instances": {"1g.10gb": 2, "3g.40gb": 1}},
        {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-3g.40gb": 2},
    ),
    "hami": ({"strategy": "hami", "splitCount": 5}, {"nvidia.com/gpu": 10}),
}


def stack(kind: str, route: str, profile: dict[str, object]) -> str:
    """One pool with two A100 of 80 GB per node."""
    if kind == "aks":
        cluster = {"kind": "aks", "name": "met", "location": "eastus"}
        pool = {"name": "a100", "vmSize": "Standard_NC48ads_A100_v4", "count": 1}
        pool["driver"] = "aks" if route == "plugin" else "operator"
    else:
        cluster = {"kind": "existing", "name": "met", "kubeconfig": {"path": "kubeconfig"}}
        pool = {"name": "a100", "hosts": {NODE: {}}, "gpu": "A100-80GB-PCIe", "gpusPerNode": 2}
        pool["driver"] = "host" if route == "plugin" else "operator"
    sections = {
        "cluster": cluster,
        "pools": [{**pool, "taints": ["sku=gpu:NoSchedule"], "sharing": "way"}],
        "stack": {"kind": route, "namespace": "met-gpu"},
        "sharing": {"way": profile},
    }
    return yaml.safe_dump({"config": {f"gpufleet:{k}": v for k, v in sections.items()}})


@pytest.fixture
def node(twin: Twin, project: Path, kind: str) -> Iterator[None]:
    if kind == "existing":
        twin.add_node(NODE, gpus=2, model="A100-80GB-PCIe")
        twin.add_node("met-system")  # for the operator's own Deployments, which tolerate no taint of ours
    yield
    twin.pulumi(project, "met", "destroy", timeout=420, **CHARTS)  # where a test has stopped half-way
    if kind == "existing":
        remove_all(twin)
        twin.remove_node(NODE)
        twin.remove_node("met-system")


def prepare_host(twin: Twin, kind: str, route: str, method: str) -> None:
    """What the roles (owner host) do, or leave to the operator, on a machine of an existing cluster."""
    if kind != "existing":
        return
    spec = METHODS[method][0]
    instances = {"1g.10gb": 7} if spec.get("profile") == "1g.10gb" else {"3g.40gb": 2} if "profile" in spec else {}
    instances = spec.get("instances", instances)
    one = ",".join(p for p, n in instances.items() for _ in range(n))
    cut = f"0={one};1={one}" if one and route == "plugin" else None
    driver = "none" if route == "operator" else None
    notes = {"twin.gpufleet.dev/mig": cut, "twin.gpufleet.dev/driver": driver}
    twin.core.patch_node(NODE, {"metadata": {"annotations": notes}})


def arrived(twin: Twin, project: Path, method: str) -> None:
    status = twin.gpufleet(project, "status", "-s", "met", "--wait", "90", "--json")
    assert status.rc == 0, status.stdout + status.stderr
    offered = [n["observed"] for n in json.loads(status.stdout)["nodes"]]
    assert offered == [METHODS[method][1]]


#: Order per kind and route. Each method comes up by a change from the one before, and another one is destroyed last.
#: AKS cuts GPUs into one kind of instance only (GF314), so `mig-mixed` needs the operator there.
ORDERS = {
    ("existing", "plugin"): ("whole", "timeSlicing", "mps", "mig", "mig-shared", "mig-mixed", "hami"),
    ("existing", "operator"): ("hami", "whole", "timeSlicing", "mps", "mig", "mig-shared", "mig-mixed"),
    ("aks", "plugin"): ("mig-shared", "hami", "whole", "timeSlicing", "mig", "mps"),
    ("aks", "operator"): ("mig-mixed", "hami", "mps", "mig", "whole", "mig-shared", "timeSlicing"),
}
#: What a plain run tries of them: each method once, and one change per kind and route.
SHORT = {
    ("existing", "plugin"): ("timeSlicing", "mig-mixed"),
    ("existing", "operator"): ("hami", "mig"),
    ("aks", "plugin"): ("whole", "mps"),
    ("aks", "operator"): ("mig-shared", "timeSlicing"),
}
LIVES = [
    *(pytest.param(*key, order, id="-".join(key)) for key, order in SHORT.items()),
    *(pytest.param(*key, order, id=f"{'-'.join(key)}-all", marks=pytest.mark.long) for key, order in ORDERS.items()),
]


@pytest.mark.parametrize(("kind", "route", "order"), LIVES)
def test_methods_follow_each_other(
    twin: Twin, project: Path, kind: str, route: str, order: tuple[str, ...], node: None
) -> None:
    for method in order:
        write_stack(project, "met", stack(kind, route, METHODS[method][0]))
        prepare_host(twin, kind, route, method)
        done = twin.pulumi(project, "met", "up", timeout=420, **CHARTS).require()
        arrived(twin, project, method)
        if " keeps " in done.stdout:  # names of layouts, until nodes have another label
            twin.pulumi(project, "met", "up", timeout=420, **CHARTS).require()
        preview = twin.pulumi(project, "met", "preview", "--expect-no-changes", **CHARTS)
        assert preview.rc == 0, f"{method}: a second preview changes something\n{preview.stdout}"
    twin.pulumi(project, "met", "destroy", timeout=420, **CHARTS).require()
    left = json.loads(twin.pulumi(project, "met", "stack", "export").require().stdout)
    assert left["deployment"].get("resources", []) == []


def test_every_method_has_its_place_in_every_order() -> None:
    assert {method for order in SHORT.values() for method in order} == set(METHODS)
    assert set(SHORT) == set(ORDERS)
    for (kind, route), order in ORDERS.items():
        missing = set(METHODS) - set(order)
        assert missing == ({"mig-mixed"} if (kind, route) == ("aks", "plugin") else set())


@pytest.mark.parametrize("kind", ["existing"])
def test_a_node_in_use_keeps_its_method(twin: Twin, project: Path, kind: str, node: None) -> None:
    write_stack(project, "met", stack("existing", "plugin", METHODS["whole"][0]))
    twin.pulumi(project, "met", "up", **CHARTS).require()
    arrived(twin, project, "whole")
    start(twin, gpu_pod("train", pool="a100", taints=("sku=gpu:NoSchedule",)))
    twin.wait(lambda: running(twin) == {"train"}, 30, "the pod runs")

    write_stack(project, "met", stack("existing", "plugin", METHODS["timeSlicing"][0]))
    refused = twin.pulumi(project, "met", "up", **CHARTS)
    assert refused.rc != 0
    assert "GF450" in refused.stdout and "default/train" in refused.stdout and "Traceback" not in refused.stdout
    assert twin.allocatable(NODE) == 2, "nothing has changed"

    remove_all(twin)
    twin.pulumi(project, "met", "up", **CHARTS).require()
    arrived(twin, project, "timeSlicing")
    twin.pulumi(project, "met", "destroy", **CHARTS).require()
