"""Workloads against the pools of a stack: what the plan promises is what lint compares with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.findings.finding import Finding, Severity
from gpufleet.lint.stack import of_fleet

from tests.unit.config.samples import compile_data
from tests.unit.lint.fleets import (
    AKS,
    LAB,
    codes,
    errors,
    host_pool,
    lint_file,
    lint_pools,
    lint_stack,
    sections,
    write,
)
from tests.unit.lint.told import GPU4, limits, one, pod, told

CUDA = "nvcr.io/nvidia/cuda:12.8.1-base-ubuntu24.04"
SHARED = {"strategy": "timeSlicing", "replicas": 4}
BOUND = "env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: '0.2'}]\n"


def cuda_pod(limit: dict[str, Any], **spec: Any) -> str:
    container = {"name": "c", "image": CUDA, "resources": {"limits": limit}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    return yaml.safe_dump(body)


def deployment(replicas: int, limit: dict[str, Any], kind: str = "Deployment", **spec: Any) -> str:
    container = {"name": "c", "image": CUDA, "resources": {"limits": limit}}
    template = {"spec": {"containers": [container], **spec}}
    count = {"parallelism": replicas} if kind == "Job" else {"replicas": replicas}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "d"}, "spec": {**count, "template": template}}
    return yaml.safe_dump(body)


def the(code: str, found: list[Finding]) -> Finding:
    [only] = [x for x in found if x.code == code]
    return only


# --- resources and shares


def test_rp_01_two_shares_are_refused() -> None:
    stack = sections(host_pool("t4", os="ubuntu-22.04", sharing="ts"), cluster={**LAB, "distribution": "rke2"},
                     sharing={"ts": SHARED})  # fmt: skip
    found = the("GF601", lint_stack(stack, cuda_pod({"nvidia.com/gpu": 2})))
    assert found.severity is Severity.ERROR
    assert "1" in found.remedy and "failRequestsGreaterThanOne" in found.reason
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}))) == []
    more = {"ts": {**SHARED, "failRequestsGreaterThanOne": False}}
    assert codes(lint_stack({**stack, "sharing": more}, pod(limits(number=2) + BOUND))) == ["GF600"]


def test_rp_02_a_name_that_the_pool_does_not_offer(tmp_path: Path) -> None:
    ml = host_pool("ml", os="ubuntu-24.04", driver="host", driverBranch="580", sharing="a")
    stack = sections(ml, route="plugin", sharing={"a": {**SHARED, "renameByDefault": True}})
    spec = {"nodeSelector": {"gpufleet.dev/pool": "ml"}, "runtimeClassName": "nvidia"}
    found = lint_file(write(tmp_path, stack), cuda_pod({"nvidia.com/gpu": 1}, **spec))
    assert errors(found) == ["GF603"]
    wrong = the("GF603", found)
    assert "pool ml" in wrong.message and wrong.closest == "nvidia.com/gpu.shared"
    assert "nvidia.com/gpu.shared: 4" in wrong.reason
    assert errors(lint_file(write(tmp_path, stack), cuda_pod({"nvidia.com/gpu.shared": 1}, **spec))) == []


def test_rp_02_names_of_mig_instances() -> None:
    stack = sections(host_pool("a", "A100-SXM4-80GB", 2, sharing="m"),
                     sharing={"m": {"strategy": "mig", "profile": "1g.10gb", "naming": "mixed"}})  # fmt: skip
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/mig-1g.10gb": 1}))) == []
    wrong = the("GF603", lint_stack(stack, cuda_pod({"nvidia.com/mig-1g.5gb": 1})))
    assert wrong.closest == "nvidia.com/mig-1g.10gb"
    assert the("GF603", lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}))).closest == "nvidia.com/mig-1g.10gb"


def test_rp_03_more_than_any_node_has() -> None:
    sixteen = pod(limits(number=16))
    found = one("GF624", sixteen, "version: v1\n", gpus="8xH100-SXM5-80GB")
    assert found.path.endswith('limits["nvidia.com/gpu"]') and "8" in found.reason and "split" in found.remedy
    assert one("GF624", sixteen, gpus="8xH100-SXM5-80GB").severity is Severity.ERROR  # without a configuration too
    assert not [x for x in told(pod(limits(number=8)), gpus="8xH100-SXM5-80GB") if x.severity is Severity.ERROR]
    assert "GF624" not in [x.code for x in told(sixteen)]
    cut = told(pod(limits(number=14)), gpus="2xA100-80GB", mig="7x1g.10gb")
    assert "GF624" not in [x.code for x in cut]  # under `single` they are all called nvidia.com/gpu
    stack = sections(host_pool("a", gpus=2), host_pool("b", gpus=4))
    wrong = the("GF624", lint_stack(stack, cuda_pod({"nvidia.com/gpu": 5})))
    assert wrong.value == "5" and "pool" in wrong.message
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 4}))) == []


def test_rp_03_the_containers_of_a_pod_count_together() -> None:
    stack = sections(host_pool("a", gpus=4))

    def containers(first: int, second: int, init: int = 0, sidecar: bool = False) -> str:
        def c(name: str, n: int) -> dict[str, Any]:
            return {"name": name, "image": CUDA, "resources": {"limits": {"nvidia.com/gpu": n}}}

        spec: dict[str, Any] = {"containers": [c("a", first), c("b", second)]}
        if init:
            spec["initContainers"] = [{**c("i", init), **({"restartPolicy": "Always"} if sidecar else {})}]
        return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})

    assert errors(lint_stack(stack, containers(2, 2))) == []
    assert errors(lint_stack(stack, containers(3, 2))) == ["GF624"]
    assert errors(lint_stack(stack, containers(2, 2, init=4))) == []  # it ends before the others begin
    assert errors(lint_stack(stack, containers(2, 2, init=1, sidecar=True))) == ["GF624"]


# --- labels


H100 = {"name": "h100", "vmSize": "Standard_NC40ads_H100_v5", "driver": "operator", "taints": ["sku=gpu:NoSchedule"]}
TOLERATES = [{"key": "sku", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("value", "closest"), [("h1OO", "h100"), ("h10", "h100"), ("a100", "h100"), ("something", "h100")]
)
def test_rp_04_a_misspelt_pool(value: str, closest: str) -> None:
    stack = sections(H100, cluster=AKS)
    spec = {"nodeSelector": {"gpufleet.dev/pool": value}, "tolerations": TOLERATES}
    found = lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, **spec))
    assert errors(found) == ["GF625"]
    wrong = the("GF625", found)
    assert wrong.closest == closest and value in wrong.message and wrong.path.endswith('["gpufleet.dev/pool"]')
    right = {**spec, "nodeSelector": {"gpufleet.dev/pool": "h100"}}
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, **right))) == []
    assert errors(lint_stack(stack, cuda_pod({}, **spec))) == ["GF625"]  # a pod without a GPU waits as well


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    listed = [{"matchExpressions": expressions} for expressions in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def wants(key: str, operator: str = "In", *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


POOL = "gpufleet.dev/pool"


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([[wants(POOL, "In", "gold")]], True),
        ([[wants(POOL, "In", "golden")]], False),
        ([[wants(POOL, "In", "golden", "silver")]], True),
        ([[wants(POOL, "In", "golden")], [wants(POOL, "In", "gold")]], True),
        ([[wants(POOL, "In", "golden")], [wants(POOL, "In", "golf")]], False),
        ([[wants(POOL, "NotIn", "gold", "silver")]], False),
        ([[wants(POOL, "NotIn", "gold")]], True),
        ([[wants(POOL, "Exists")]], True),
        ([[wants(POOL, "DoesNotExist")]], False),
        ([[wants("tier", "In", "1")]], True),
        ([[wants("tier", "In", "3")]], False),
        ([[wants("tier", "Gt", "1")]], True),
        ([[wants("tier", "Gt", "2")]], False),
        ([[wants("tier", "Lt", "1")]], False),
        ([[wants("tier", "In", "1"), wants(POOL, "In", "silver")]], False),
        ([[wants("rack", "In", "r7")]], True),  # a label that nobody here knows
        ([[wants("only", "Exists")]], True),
        ([[wants("only", "Exists"), wants(POOL, "In", "gold")]], False),  # the stack sets it on the other pool
        ([[wants("nvidia.com/gpu.product", "In", "Tesla-T4")]], True),
        ([[wants("nvidia.com/gpu.product", "In", "Tesla-T4-SHARED")]], False),
        ([[wants("nvidia.com/gpu.count", "Gt", "1")]], False),
    ],
)
def test_rp_04_required_affinity(terms: list[list[dict[str, Any]]], fits: bool) -> None:
    stack = sections(
        host_pool("gold", labels={"tier": "1"}), host_pool("silver", labels={"tier": "2", "only": "silver"})
    )
    found = errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, affinity=affinity(*terms))))
    assert found == ([] if fits else ["GF625"])


def test_rp_04_nodes_that_somebody_else_labels() -> None:
    stack = sections({"name": "r7", "nodeSelector": {"rack": "r7"}, "gpu": "A30", "gpusPerNode": 4,
                      "driver": "operator"})  # fmt: skip
    one_gpu = {"nvidia.com/gpu": 1}
    assert errors(lint_stack(stack, cuda_pod(one_gpu, nodeSelector={"rack": "r7"}))) == []
    wrong = the("GF625", lint_stack(stack, cuda_pod(one_gpu, nodeSelector={POOL: "r7"})))
    assert "rack: r7" in wrong.remedy
    assert errors(lint_stack(stack, cuda_pod(one_gpu, nodeSelector={"room": "a"}))) == []
    beside = {**stack, "pools": [*stack["pools"], host_pool("t4", labels={"room": "b"}, driver="operator")]}
    assert errors(lint_stack(beside, cuda_pod(one_gpu, nodeSelector={"room": "a"}))) == []  # some of r7 may have it


def test_products_of_shared_pools() -> None:
    stack = sections(host_pool("t4", sharing="ts"), sharing={"ts": SHARED})
    product = "nvidia.com/gpu.product"
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, nodeSelector={product: "Tesla-T4-SHARED"}))) == []
    wrong = the("GF625", lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, nodeSelector={product: "Tesla-T4"})))
    assert wrong.closest == "Tesla-T4-SHARED"
    plugin = sections(host_pool("t4", nvidiaDefaultRuntime=True), route="plugin")
    wrong = the("GF625", lint_stack(plugin, cuda_pod({"nvidia.com/gpu": 1}, nodeSelector={product: "Tesla-T4"})))
    assert product in wrong.reason  # without the operator nothing writes it


# --- taints


def test_rp_05_only_the_taints_of_the_stack_count() -> None:
    maxq = host_pool("maxq", "RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition", 2, os="ubuntu-24.04",
                     driver="operator", driverBranch="580", sharing="q")  # fmt: skip
    mig = {"q": {"strategy": "mig", "profile": "1g.24gb+gfx", "naming": "mixed"}}
    asks = {"nvidia.com/mig-1g.24gb.gfx": 1}
    assert codes(lint_stack(sections(maxq, sharing=mig), cuda_pod(asks))) == []
    tainted = {**maxq, "taints": ["nvidia.com/gpu=present:NoSchedule"]}
    found = lint_stack(sections(tainted, sharing=mig), cuda_pod(asks))
    assert codes(found) == ["GF620"]
    exists = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert codes(lint_stack(sections(tainted, sharing=mig), cuda_pod(asks, tolerations=exists))) == []


def test_tolerations_that_clusters_add_by_themselves() -> None:
    own = {**H100, "taints": ["nvidia.com/gpu=present:NoSchedule"]}
    assert errors(lint_stack(sections(own, cluster=AKS), cuda_pod({"nvidia.com/gpu": 1}))) == []
    tainted = host_pool("t4", taints=["nvidia.com/gpu=present:NoSchedule"])  # kubeadm leaves the plugin off
    assert errors(lint_stack(sections(tainted), cuda_pod({"nvidia.com/gpu": 1}))) == ["GF620"]


# --- runtime classes


def test_rp_07_the_class_that_pods_need() -> None:
    stack = sections(host_pool("l4", "L4", os="ubuntu-22.04", driverBranch="580"), route="plugin")
    asks = {"nvidia.com/gpu": 1}
    missing = the("GF626", lint_stack(stack, cuda_pod(asks)))
    assert missing.severity is Severity.ERROR and "runtimeClassName: nvidia" in missing.message
    assert missing.path == "spec.runtimeClassName" and "l4" in missing.message
    assert errors(lint_stack(stack, cuda_pod(asks, runtimeClassName="nvidia"))) == []
    for foreign in ("runc", "gvisor", "nvidia-container-runtime"):
        assert the("GF627", lint_stack(stack, cuda_pod(asks, runtimeClassName=foreign))).closest in (None, "nvidia")
    assert errors(lint_stack(stack, cuda_pod({}))) == []


def test_rp_07_classes_that_do_not_exist() -> None:
    asks, spec = {"nvidia.com/gpu": 1}, {"tolerations": TOLERATES}
    plugin = sections({**H100, "driver": "aks"}, route="plugin", cluster=AKS)
    assert errors(lint_stack(plugin, cuda_pod(asks, **spec))) == []
    assert errors(lint_stack(plugin, cuda_pod(asks, runtimeClassName="nvidia", **spec))) == ["GF627"]
    operator = sections(host_pool("t4"))
    assert errors(lint_stack(operator, cuda_pod(asks, runtimeClassName="nvidia"))) == []
    assert errors(lint_stack(operator, cuda_pod(asks, runtimeClassName="nvidia-cdi"))) == []
    assert errors(lint_stack(operator, cuda_pod(asks, runtimeClassName="nvidia-container-runtime"))) == ["GF627"]
    assert errors(lint_stack(operator, cuda_pod(asks, runtimeClassName="kata"))) == []  # others may have made it


def test_rp_07_hami_writes_the_class_itself() -> None:
    stack = sections(host_pool("l4", "L4", sharing="v"), route="plugin", sharing={"v": {"strategy": "hami"}})
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}))) == []


# --- several pools


def test_a_pod_that_one_pool_takes_is_quiet() -> None:
    stack = sections(
        host_pool("shared", sharing="ts", taints=["team=ml:NoSchedule"]), host_pool("whole", gpus=4),
        sharing={"ts": {**SHARED, "renameByDefault": True}},
    )  # fmt: skip
    assert codes(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 4}))) == []
    tolerates = [{"key": "team", "operator": "Equal", "value": "ml"}]
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu.shared": 1}, tolerations=tolerates))) == []
    nearest = lint_stack(stack, cuda_pod({"nvidia.com/gpu.shared": 1}))
    assert errors(nearest) == ["GF620"] and "nearest is shared" in the("GF620", nearest).message


def test_a_pool_that_refuses_is_named_where_the_scheduler_may_choose_it() -> None:
    stack = sections(host_pool("shared", sharing="ts"), host_pool("whole", gpus=4), sharing={"ts": SHARED})
    found = the("GF601", lint_stack(stack, cuda_pod({"nvidia.com/gpu": 2})))
    assert found.message.startswith("On pool shared: ")
    pinned = cuda_pod({"nvidia.com/gpu": 2}, nodeSelector={POOL: "whole"})
    assert codes(lint_stack(stack, pinned)) == []  # nor a word about memory that is not shared there


def test_pools_of_which_nothing_is_known_may_take_anything() -> None:
    compiled = compile_data(sections(host_pool("a"), host_pool("b")))
    assert compiled.fleet is not None
    first, second = of_fleet(compiled.fleet)
    unknown = (first, replace(second, offers=None, node=None))
    assert errors(lint_pools(unknown, cuda_pod({"nvidia.com/gpu": 64}))) == []
    assert errors(lint_pools(unknown, cuda_pod({"nvidia.com/gpu": 64}, nodeSelector={POOL: "a"}))) == ["GF624"]


def test_a_pool_without_a_driver_offers_nothing() -> None:
    bare = {**H100, "driver": "none", "taints": []}
    stack = sections(bare, {**H100, "name": "h2"}, cluster=AKS, acknowledge={"GF205": "a driver under test"})
    found = the("GF603", lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, nodeSelector={POOL: "h100"})))
    assert "nothing" in found.reason


def test_one_pool_alone(tmp_path: Path) -> None:
    file = write(tmp_path, sections(host_pool("a"), host_pool("b", gpus=4)))
    assert errors(lint_file(file, cuda_pod({"nvidia.com/gpu": 4}), pool="a")) == ["GF624"]
    assert errors(lint_file(file, cuda_pod({"nvidia.com/gpu": 4}), pool="b")) == []


def test_a_configuration_among_the_texts_counts_before_the_plan() -> None:
    stack = sections(host_pool("t4"))
    asks = pod(limits("nvidia.com/gpu.shared") + BOUND)
    assert errors(lint_stack(stack, asks)) == ["GF603"]
    renamed = GPU4.replace("    resources:", "    renameByDefault: true\n    resources:")
    assert errors(lint_stack(stack, renamed, asks)) == []


def test_of_several_configurations_each_pool_reads_its_own() -> None:
    stack = sections(host_pool("whole"), host_pool("t4", sharing="ts"), sharing={"ts": SHARED})
    compiled = compile_data(stack)
    assert compiled.plan is not None and compiled.plan.operator is not None
    made = compiled.plan.operator.config_map
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": made.name}, "data": made.data})
    two = cuda_pod({"nvidia.com/gpu": 2}, nodeSelector={POOL: "whole"})
    assert "GF624" in errors(lint_stack(stack, text, two))


def test_labels_under_a_configuration_of_the_users_own() -> None:
    product = cuda_pod({"nvidia.com/gpu": 1}, nodeSelector={"nvidia.com/gpu.product": "Tesla-T4-SHARED"})
    stack = sections(host_pool("t4"))
    assert errors(lint_stack(stack, product)) == ["GF625"]
    assert errors(lint_stack(stack, GPU4, product)) == []


def test_values_that_are_still_to_be_filled_in() -> None:
    stack = sections(host_pool("l4", "L4", taints=["team=ml:NoSchedule"]), route="plugin")
    filled = {"nodeSelector": {POOL: "${POOL}"}, "runtimeClassName": "{{ class }}",
              "tolerations": [{"key": "${TAINT}", "operator": "Exists"}]}  # fmt: skip
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": "${GPUS}"}, **filled))) == []


def test_pods_that_are_on_a_node_already() -> None:
    stack = sections(host_pool("t4", taints=["team=ml:NoSchedule"]))
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, nodeName="t4-0"))) == []


def test_shares_are_judged_where_the_pod_can_be() -> None:
    more = {**SHARED, "failRequestsGreaterThanOne": False}
    stack = sections(host_pool("whole", gpus=4), host_pool("ts", sharing="ts", taints=["team=ml:NoSchedule"]),
                     sharing={"ts": more})  # fmt: skip
    assert codes(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 2}))) == []
    renamed = {"ts": {**SHARED, "renameByDefault": True}}
    both = sections(host_pool("whole", gpus=4), host_pool("ts", sharing="ts"), sharing=renamed)
    assert codes(lint_stack(both, cuda_pod({"nvidia.com/gpu.shared": 2}))) == ["GF601", "GF612"]


def test_what_holds_on_every_pool_is_said_once() -> None:
    stack = sections(host_pool("a"), host_pool("b", sharing="ts"), host_pool("c", sharing="re"),
                     sharing={"ts": SHARED, "re": {**SHARED, "renameByDefault": True}})  # fmt: skip
    text = cuda_pod({}).replace(CUDA, "vllm/vllm-openai:v0.10.1")
    assert [x.code for x in lint_stack(stack, text)] == ["GF638"]
    wrong = the("GF602", lint_stack(stack, cuda_pod({"nvidia.com/gpus": 1})))
    assert "pool" not in wrong.message and wrong.closest == "nvidia.com/gpu"


def test_resources_of_other_software_are_not_the_plugins() -> None:
    stack = sections(host_pool("t4"))
    for name in ("nvidia.com/hostdev", "nvidia.com/GA102GL_A10", "rdma/hca", "amd.com/gpu"):
        assert errors(lint_stack(stack, cuda_pod({name: 1}))) == []
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}))) == ["GF603"]


def test_patches_and_parts_of_larger_objects() -> None:
    stack = sections(host_pool("l4", "L4", taints=["team=ml:NoSchedule"]), route="plugin")
    workflow = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  SPEC
  templates:
  - name: a
    container: {image: example/app:1, resources: {limits: {nvidia.com/gpu: 1}}}
"""
    both = "tolerations: [{key: team, operator: Exists}]\n  podSpecPatch: '{\"runtimeClassName\": \"nvidia\"}'\n  "
    both += "runtimeClassName: nvidia"
    assert errors(lint_stack(stack, workflow.replace("SPEC", both))) == []
    assert errors(lint_stack(stack, workflow.replace("SPEC", "entrypoint: a"))) == ["GF620", "GF626"]
    patch = deployment(1, {"nvidia.com/gpu": 1}).replace(f"image: {CUDA}", "env: []")
    assert errors(lint_stack(stack, patch)) == []  # the rest stands in what it is a patch of
    assert errors(lint_stack(stack, patch.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2"))) == ["GF624"]


# --- capacity and quotas


@pytest.mark.parametrize(
    ("replicas", "each", "fits"),
    [(4, 2, True), (5, 2, False), (8, 1, True), (9, 1, False), (2, 3, True), (3, 3, False)],
)
def test_replicas_against_all_nodes_of_a_pool(replicas: int, each: int, fits: bool) -> None:
    stack = sections(host_pool("a", gpus=4, hosts=2))
    found = lint_stack(stack, deployment(replicas, {"nvidia.com/gpu": each}))
    assert errors(found) == ([] if fits else ["GF628"])
    if not fits:
        assert the("GF628", found).path == "spec.replicas"


def test_replicas_may_spread_over_pools_and_jobs_wait() -> None:
    stack = sections(host_pool("a", gpus=4), host_pool("b", gpus=2))
    assert errors(lint_stack(stack, deployment(6, {"nvidia.com/gpu": 1}))) == []
    assert errors(lint_stack(stack, deployment(7, {"nvidia.com/gpu": 1}))) == ["GF628"]
    assert errors(lint_stack(stack, deployment(70, {"nvidia.com/gpu": 1}, kind="Job"))) == []
    assert errors(lint_stack(stack, deployment(7, {}))) == []
    unknown = sections({"name": "r7", "nodeSelector": {"rack": "r7"}, "gpu": "A30", "gpusPerNode": 4,
                        "driver": "operator"})  # fmt: skip
    assert errors(lint_stack(unknown, deployment(70, {"nvidia.com/gpu": 1}))) == []  # nobody counts its nodes


def test_the_autoscalers_maximum_counts() -> None:
    pool = {**H100, "autoscale": {"min": 0, "max": 3}, "taints": []}
    stack = sections(pool, cluster=AKS)
    assert errors(lint_stack(stack, deployment(3, {"nvidia.com/gpu": 1}))) == []
    found = the("GF628", lint_stack(stack, deployment(4, {"nvidia.com/gpu": 1})))
    assert "h100 takes 3" in found.reason


def test_quotas_of_teams() -> None:
    team = {"name": "vision", "namespace": "vision", "pools": ["a"], "quota": {"gpu": 3}}
    stack = sections(host_pool("a", gpus=8), teams=[team])

    def within(text: str) -> str:
        body = yaml.safe_load(text)
        body["metadata"]["namespace"] = "vision"
        return yaml.safe_dump(body)

    assert errors(lint_stack(stack, within(cuda_pod({"nvidia.com/gpu": 3})))) == []
    assert errors(lint_stack(stack, within(cuda_pod({"nvidia.com/gpu": 4})))) == ["GF629"]
    assert errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 4}))) == []  # another namespace
    found = the("GF629", lint_stack(stack, within(deployment(2, {"nvidia.com/gpu": 2}))))
    assert (found.path, found.value) == ("spec.replicas", "4 of nvidia.com/gpu")


@pytest.mark.parametrize(("value", "fits"), [("15360", True), ("15109", True), ("16384", False), ("40960", False)])
def test_memory_labels_differ_with_the_driver(value: str, fits: bool) -> None:
    stack = sections(host_pool("t4"))
    found = errors(lint_stack(stack, cuda_pod({"nvidia.com/gpu": 1}, nodeSelector={"nvidia.com/gpu.memory": value})))
    assert found == ([] if fits else ["GF625"])
