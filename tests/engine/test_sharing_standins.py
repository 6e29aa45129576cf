"""MIG, MPS and HAMi on the twin, with programs of the test's own: what the product's tests take for granted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from twin.engine import Result, Twin

PROGRAM = '''
import json, os
import pulumi
import pulumi_kubernetes as k8s
spec = json.loads(os.environ["SPEC"])
provider = k8s.Provider("provider", kubeconfig=os.environ["KUBECONFIG"], cluster_identifier="sharing")
opts = pulumi.ResourceOptions(provider=provider)
for name, release in spec.get("releases", {}).items():
    k8s.helm.v3.Release(name, name=name, namespace=name, create_namespace=True, atomic=True, timeout=120, opts=opts,
        **release)
for body in spec.get("objects", []):
    kind = {"ConfigMap": k8s.core.v1.ConfigMap, "DaemonSet": k8s.apps.v1.DaemonSet}[body["kind"]]
    kind(body["metadata"]["name"], metadata=body["metadata"], opts=opts,
         **{key: body[key] for key in ("data", "spec") if key in body})
'''
CHARTS = Path(__file__).parents[2] / "twin" / "chart"
TAINT = "sku=gpu:NoSchedule"
TOLERATIONS = [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]
GPU, IMAGE = "nvidia.com/gpu", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
MPS_ROOT, RUNTIME = "/run/nvidia/mps", "hami-runtime"
READ = "twin.gpufleet.dev/read"
SECOND, STATE = "twin.gpufleet.dev/second-plugin", "nvidia.com/mig.config.state"


class Stack:
    """A project whose program deploys what it is told to, and the nodes that a test adds."""

    def __init__(self, twin: Twin, folder: Path) -> None:
        self.twin, self.folder = twin, folder
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text("name: sharing\nruntime: python\n")
        (folder / "__main__.py").write_text(PROGRAM)
        self.names: list[str] = []

    def run(self, command: str, **spec: Any) -> Result:
        return self.twin.pulumi(self.folder, "dev", command, SPEC=json.dumps(spec))

    def add(self, name: str, labels: dict[str, str] | None = None, gpus: int = 2, model: str = "A100-SXM4-80GB") -> str:
        self.twin.add_node(name, labels, [TAINT] if gpus else [], gpus, model)
        self.names.append(name)
        return name

    def offers(self, name: str, seconds: float = 30, **wanted: int) -> None:
        """Wait until the node offers just this; names without nvidia.com/, `_` for `-` and `__` for `.`."""
        full = {f"nvidia.com/{key.replace('__', '.').replace('_', '-')}": count for key, count in wanted.items()}

        def there() -> bool:
            shown = self.twin.core.read_node(name).status.allocatable or {}
            return full == {key: int(n) for key, n in shown.items() if key.startswith("nvidia.com/") and n != "0"}

        self.twin.wait(there, seconds, f"{name} offers {full}")

    def pods(self, selector: str) -> list[Any]:
        found: list[Any] = self.twin.core.list_namespaced_pod("kube-system", label_selector=selector).items
        return found

    def judged(self, selector: str) -> bool:
        """Whether the advertiser knows what the pods read."""
        pods = self.pods(selector)
        return bool(pods) and all(READ in (one.metadata.annotations or {}) for one in pods)

    def note(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.twin.core.read_node(name).metadata.annotations.get(SECOND, "{}"))
        return found

    def label(self, name: str, **labels: str | None) -> None:
        changed = {f"nvidia.com/{key.replace('_', '.')}": value for key, value in labels.items()}
        self.twin.core.patch_node(name, {"metadata": {"labels": changed}})

    def labels(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.twin.core.read_node(name).metadata.labels
        return found


@pytest.fixture
def stack(twin: Twin, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(twin, tmp_path / "sharing")
    yield made
    made.run("destroy").require()
    for name in made.names:
        twin.remove_node(name)


def daemon_set(name: str, container: str, config: str, command: list[str] | None = None) -> dict[str, Any]:
    """A DaemonSet as the standalone route has it, for nodes with the taint."""
    one: dict[str, Any] = {
        "name": container, "image": IMAGE,
        "env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}, {"name": "MPS_ROOT", "value": MPS_ROOT}],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}, {"name": "mps-root", "mountPath": "/mps"}]}
    if command:
        one["command"] = command
    volumes = [{"name": "config", "configMap": {"name": config}},
               {"name": "mps-root", "hostPath": {"path": MPS_ROOT, "type": "DirectoryOrCreate"}}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {
        "tolerations": TOLERATIONS, "nodeSelector": {"plugin": "nvidia"}, "containers": [one], "volumes": volumes}}
    return {"kind": "DaemonSet", "metadata": {"name": name, "namespace": "kube-system"}, "spec": {
        "selector": {"matchLabels": {"app": name}}, "template": template}}


def config_map(name: str, text: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}, "data": {"config.yaml": text}}


def sharing(method: str, replicas: int) -> str:
    return f"version: v1\nsharing: {{{method}: {{resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}\n"


def hami(split: int, **more: Any) -> dict[str, Any]:
    plugin = {"deviceSplitCount": split, "runtimeClassName": RUNTIME, "createRuntimeClass": True,
              "tolerations": TOLERATIONS}
    scheduler = {"tolerations": TOLERATIONS, "patch": {"tolerations": TOLERATIONS}}  # every node here is a GPU node
    return {"chart": str(CHARTS / "hami"), "values": {"devicePlugin": plugin, "scheduler": scheduler, **more}}


def test_hami_splits_the_gpus_of_nodes_that_carry_its_label(stack: Stack) -> None:
    stack.add("hami-on", {"gpu": "on", "plugin": "nvidia"})
    stack.add("hami-off", {})
    wrong = stack.run("up", releases={"hami": hami(3, devicePlugn={})})
    assert wrong.rc != 0
    assert "devicePlugn" in wrong.stdout
    stack.run("up", releases={"hami": hami(3)}).require()
    stack.offers("hami-on", gpu=6)
    stack.offers("hami-off")
    made = client.AppsV1Api(stack.twin.client()).read_namespaced_daemon_set("hami-device-plugin", "hami")
    assert [one.name for one in made.spec.template.spec.containers] == ["device-plugin", "vgpu-monitor"]
    assert "deviceSplitCount: 3" in stack.twin.core.read_namespaced_config_map(
        "hami-scheduler-device", "hami").data["device-config.yaml"]
    stack.run("up", releases={"hami": hami(5)}).require()
    stack.offers("hami-on", gpu=10)
    assert stack.note("hami-on") == {}

    beside = [config_map("sliced", sharing("timeSlicing", 4)), daemon_set("late", "nvidia-device-plugin", "sliced")]
    stack.run("up", releases={"hami": hami(5)}, objects=beside).require()
    stack.offers("hami-on", gpu=8)  # the last one that registered
    first, last = stack.note("hami-on")["plugins"]
    assert (first.rsplit("-", 1)[0], last.rsplit("-", 1)[0]) == ("hami/hami-device-plugin", "kube-system/late")
    assert stack.note("hami-on")["lost"] == {GPU: [first]}
    stack.run("destroy").require()
    client.NodeV1Api(stack.twin.client()).delete_runtime_class(RUNTIME)  # a hook made it, so Helm leaves it there


def test_mps_counts_once_its_daemon_reads_the_same(stack: Stack) -> None:
    stack.add("mps-1", {"plugin": "nvidia"}, gpus=1, model="L4")
    plugin = [config_map("mps-4", sharing("mps", 4)), config_map("mps-6", sharing("mps", 6)),
              daemon_set("plugin", "nvidia-device-plugin", "mps-4")]
    daemons = {config: daemon_set("daemon", "mps-control-daemon", config, ["mps-control-daemon"])
               for config in ("mps-4", "mps-6")}
    stack.run("up", objects=[*plugin, daemons["mps-6"]]).require()
    stack.twin.wait(lambda: stack.judged("app=daemon"), 30, "the advertiser has seen the daemon")
    [running] = stack.pods("app=plugin")
    assert running.status.container_statuses[0].ready  # it waits, and only its log says so
    assert stack.twin.allocatable("mps-1") == 0
    stack.run("up", objects=[*plugin, daemons["mps-4"]]).require()
    stack.offers("mps-1", gpu=4)


CUTS = """\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  small: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]
  two-kinds: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 3g.40gb: 1}}]
  foreign: [{devices: all, mig-enabled: true, mig-devices: {1g.12gb: 7}}]
"""


def operator(strategy: str, **config: Any) -> dict[str, Any]:
    off = {name: {"enabled": False} for name in ("driver", "toolkit", "dcgmExporter")}
    return {"chart": str(CHARTS / "gpu-operator"), "values": {
        **off, "mig": {"strategy": strategy}, "migManager": {"config": config},
        "daemonsets": {"tolerations": TOLERATIONS},
        "node-feature-discovery": {"worker": {"tolerations": TOLERATIONS}}}}


def test_the_operators_mig_manager_cuts_what_the_label_names(stack: Stack) -> None:
    stack.add("mig-cpu", gpus=0)
    stack.add("mig-1", {"nvidia.com/mig.config": "two-kinds"})
    stack.add("mig-2", {})
    own = {"create": True, "name": "cuts", "default": "all-disabled", "data": {"config.yaml": CUTS}}
    stack.run("up", releases={"gpu-operator": operator("mixed", **own)}).require()
    stack.offers("mig-1", mig_1g__10gb=4, mig_3g__40gb=2)
    assert stack.labels("mig-1")[STATE] == "success"
    stack.offers("mig-2", gpu=2)
    stack.twin.wait(lambda: stack.labels("mig-2").get("nvidia.com/mig.config") == "all-disabled", 30, "the default")
    stack.label("mig-1", mig_config="foreign")
    stack.twin.wait(lambda: stack.labels("mig-1")[STATE] == "failed", 30, "a layout that does not fit")
    stack.offers("mig-1", mig_1g__10gb=4, mig_3g__40gb=2)
    stack.label("mig-1", mig_config="small")
    stack.offers("mig-1", mig_1g__10gb=14)
    assert stack.labels("mig-1")[STATE] == "success"
    product = stack.labels("mig-1")["nvidia.com/mig-1g.10gb.product"]
    assert product == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"

    stack.label("mig-1", mig_config="all-2g.20gb")  # not of the own file any more
    stack.run("up", releases={"gpu-operator": operator("single")}).require()
    stack.offers("mig-1", gpu=6)
