"""Values of charts against the stack: the plan's own values are the yardstick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.cli.main import main
from gpufleet.compiled import compile_file
from gpufleet.findings.finding import Finding
from gpufleet.lint import lint
from gpufleet.lint.release import check_release

from tests.unit.config.samples import compile_data
from tests.unit.lint.fleets import AKS, LAB, host_pool, sections, write

STACKS = sorted((Path(__file__).parents[3] / "stacks").glob("Pulumi.*.yaml"))
OFF: dict[str, Any] = {"devicePlugin": {"enabled": True}, "driver": {"enabled": False}, "toolkit": {"enabled": False}}


def check(data: dict[str, Any], *values: Any) -> list[Finding]:
    fleet = compile_data(data).fleet
    assert fleet is not None
    texts = [(f"f{i}.yaml", v if isinstance(v, str) else yaml.safe_dump(v)) for i, v in enumerate(values)]
    return check_release(lint(texts).documents, fleet)


def told(found: list[Finding]) -> list[tuple[str, str]]:
    return sorted({(one.code, one.path) for one in found})


ML = sections(host_pool("ml", os="ubuntu-24.04", driver="host", driverBranch="580", taints=["team=ml:NoSchedule"]))
TOLERATES = [{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}]
LISTS = ["daemonsets.tolerations", "node-feature-discovery.worker.tolerations"]


def test_rp_06_taints_of_the_pools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("devicePlugin: {enabled: true}\ndriver: {enabled: false}\ntoolkit: {enabled: false}\n")
    assert main(["lint", str(values), "--stack-file", str(write(tmp_path, ML)), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(x["code"], x["path"], x["severity"]) for x in found] == [("GF590", p, "error") for p in LISTS]
    assert all("team=ml:NoSchedule" in x["message"] for x in found)


def test_rp_06_lists_that_tolerate_are_quiet() -> None:
    both = {"daemonsets": {"tolerations": TOLERATES}, "node-feature-discovery": {"worker": {"tolerations": TOLERATES}}}
    assert told(check(ML, {**OFF, **both})) == []
    every = [{"operator": "Exists"}]
    assert told(check(ML, {**OFF, "daemonsets": {"tolerations": every}})) == [("GF590", LISTS[1])]
    nfd = {"nfd": {"enabled": False}, "daemonsets": {"tolerations": every}}
    assert told(check(ML, {**OFF, **nfd})) == []
    assert told(check(ML, {**OFF, "daemonsets": {"tolerations": []}})) == [("GF590", p) for p in LISTS]


def test_rp_06_what_the_charts_tolerate_by_themselves() -> None:
    own = sections(host_pool("a", driver="host", taints=["nvidia.com/gpu=present:NoSchedule"]))
    assert told(check(own, OFF)) == []
    soft = sections(host_pool("a", driver="host", taints=["team=ml:PreferNoSchedule"]))
    assert told(check(soft, OFF)) == []
    emptied = {**OFF, "daemonsets": {"tolerations": []}}
    assert told(check(own, emptied)) == [("GF590", "daemonsets.tolerations")]


def test_rp_06_values_in_several_texts_and_in_other_objects() -> None:
    first = {"daemonsets": {"tolerations": TOLERATES}, **OFF}
    second = {"node-feature-discovery": {"worker": {"tolerations": TOLERATES}}, "dcgmExporter": {"enabled": True},
              "devicePlugin": {"enabled": True}}  # fmt: skip
    assert told(check(ML, first, second)) == []
    assert told(check(ML, second, first)) == []
    release = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "gpu"},
        "spec": {"chart": {"spec": {"chart": "gpu-operator"}}, "values": OFF},
    }  # fmt: skip
    assert told(check(ML, release)) == [("GF590", f"spec.values.{path}") for path in LISTS]
    release["spec"]["valuesFrom"] = [{"kind": "ConfigMap", "name": "more"}]  # type: ignore[index]
    assert told(check(ML, release)) == []  # what is not written here may stand there
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "c"},
              "spec": {**OFF, "daemonsets": {"tolerations": []}}}  # fmt: skip
    assert told(check(ML, policy)) == [("GF590", "spec.daemonsets.tolerations")]


def test_rp_06_who_installs_driver_and_toolkit() -> None:
    host, operator = sections(host_pool("a", driver="host")), sections(host_pool("a", driver="operator"))
    assert told(check(host, OFF)) == []
    assert told(check(host, {"devicePlugin": {"enabled": True}})) == [
        ("GF591", "driver.enabled"), ("GF591", "toolkit.enabled"),
    ]  # fmt: skip
    assert told(check(operator, {"devicePlugin": {"enabled": True}})) == []
    assert told(check(operator, {**OFF, "toolkit": {"enabled": True}})) == [("GF591", "driver.enabled")]
    vgpu = sections(host_pool("a", driver="host", sharing="v"), sharing={"v": {"strategy": "hami"}})
    assert told(check(vgpu, OFF)) == [("GF591", "devicePlugin.enabled")]
    assert told(check(vgpu, {**OFF, "devicePlugin": {"enabled": False}})) == []


def test_rp_06_cdi() -> None:
    operator = sections(host_pool("a", driver="operator"))
    on = {"devicePlugin": {"enabled": True}}
    assert told(check(operator, {**on, "cdi": {"enabled": True}})) == []
    assert told(check(operator, {**on, "cdi": {"enabled": False}})) == [("GF591", "cdi.enabled")]
    vgpu = sections(host_pool("a", driver="operator", sharing="v"), sharing={"v": {"strategy": "hami"}})
    off = {"devicePlugin": {"enabled": False}}
    assert told(check(vgpu, off)) == [("GF591", "cdi.enabled")]  # HAMi hands out GPUs by a variable
    assert told(check(vgpu, {**off, "cdi": {"enabled": False}})) == []


def test_rp_06_what_the_distribution_decides() -> None:
    on = {"devicePlugin": {"enabled": True}}
    rke2 = sections(host_pool("a", os="ubuntu-22.04"), cluster={**LAB, "distribution": "rke2"})
    assert told(check(rke2, on)) == [("GF592", "toolkit.env")]
    socket = [{"name": "CONTAINERD_SOCKET", "value": "/run/k3s/containerd/containerd.sock"}]
    assert told(check(rke2, {**on, "toolkit": {"env": socket}})) == []
    wrong = [{**socket[0], "value": "/run/containerd/containerd.sock"}]
    assert told(check(rke2, {**on, "toolkit": {"env": wrong}})) == [("GF592", "toolkit.env")]
    assert told(check(rke2, {**on, "cdi": {"nriPluginEnabled": True}})) == []
    pool = {"name": "h100", "vmSize": "Standard_NC40ads_H100_v5", "driver": "aks"}
    aks = sections(pool, cluster=AKS)
    assert told(check(aks, OFF)) == [("GF592", "operator.runtimeClass")]
    own = {**OFF, "operator": {"runtimeClass": "nvidia-container-runtime"}}
    assert told(check(aks, own)) == []


def test_rp_06_the_strategy_of_mig() -> None:
    mig = {"m": {"strategy": "mig", "profile": "1g.10gb", "naming": "mixed"}}
    stack = sections(host_pool("a", "A100-SXM4-80GB", driver="host", sharing="m"), sharing=mig)
    assert told(check(stack, OFF)) == [("GF592", "mig.strategy")]
    assert told(check(stack, {**OFF, "mig": {"strategy": "mixed"}})) == []
    assert told(check(sections(host_pool("a", driver="host")), {**OFF, "mig": {"strategy": "mixed"}})) == []


def test_rp_06_the_plugins_own_chart() -> None:
    chart = {"migStrategy": "none", "failOnInitError": True}
    stack = sections(host_pool("a", taints=["team=ml:NoSchedule"]), route="plugin")
    assert told(check(stack, chart)) == [("GF590", "tolerations"), ("GF592", "runtimeClassName"), ("GF593", "")]
    right = {**chart, "tolerations": TOLERATES, "runtimeClassName": "nvidia"}
    assert told(check(stack, right)) == [("GF593", "")]  # the stack has a plugin of its own
    assert ("GF593", "devicePlugin.enabled") in told(check(stack, OFF))
    assert told(check(sections(host_pool("a", driver="none"), route="plugin",
                               acknowledge={"GF205": "a driver under test"}), chart)) == []  # fmt: skip


@pytest.mark.parametrize("path", STACKS, ids=lambda p: p.name)
def test_the_values_of_the_plan_fit_the_plan(path: Path) -> None:
    plan = compile_file(path)
    assert plan.plan is not None and plan.fleet is not None
    if plan.plan.operator is not None:
        text = yaml.safe_dump(plan.plan.operator.values, sort_keys=False)
        assert check_release(lint([("values.yaml", text)]).documents, plan.fleet) == []
