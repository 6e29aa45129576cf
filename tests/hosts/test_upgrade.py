"""Moving hosts of a cluster to another driver, one after the other, on a real API server; and the way back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from kubernetes import client

from tests.hosts.plays import Play, inventory, play
from twin.engine import Twin, TwinError
from twin.hosts.engine import HostTwin
from twin.hosts.errors import UnavailableError

OLD, NEW = "580.126.09", "580.178.04"
#: How many hosts the cluster has. What can go wrong on the way takes three, and minutes.
TWO_AND_THREE = pytest.mark.parametrize("cluster", [2, pytest.param(3, marks=pytest.mark.long)], indirect=True)
THREE = pytest.mark.parametrize("cluster", [pytest.param(3, marks=pytest.mark.long)], indirect=True)


@dataclass
class Watch:
    """What the API server said about the nodes while a playbook ran: (seconds, node, cordoned, tainted, pods)."""

    core: client.CoreV1Api
    nodes: list[str]

    def __post_init__(self) -> None:
        self.log: list[tuple[str, bool, bool]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._last: dict[str, tuple[bool, bool]] = {}

    def _run(self) -> None:
        while not self._stop.is_set():
            for node in self.core.list_node().items:
                name = node.metadata.name
                if name not in self.nodes:
                    continue
                taints = [taint.key for taint in node.spec.taints or []]
                now = (bool(node.spec.unschedulable), "gpufleet.dev/driver-upgrade" in taints)
                if self._last.get(name, (False, False)) != now:
                    self._last[name] = now
                    self.log.append((name, *now))
            self._stop.wait(0.05)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def cordoned(self) -> list[str]:
        """Nodes in the order in which they were cordoned."""
        seen: list[str] = []
        for name, cordon, _taint in self.log:
            if cordon and name not in seen:
                seen.append(name)
        return seen

    def most_at_once(self) -> int:
        """How many nodes were out of service at the same time, at most."""
        out: set[str] = set()
        most = 0
        for name, cordon, _taint in self.log:
            (out.add if cordon else out.discard)(name)
            most = max(most, len(out))
        return most


@dataclass
class Cluster:
    """Converged hosts that are nodes of a real cluster."""

    hosts: HostTwin
    twin: Twin
    names: list[str]
    base: dict[str, Any]

    @property
    def core(self) -> client.CoreV1Api:
        return self.twin.core

    def pod(self, node: str, name: str) -> None:
        """Run a pod with an owner on a node and wait until it runs there."""
        body: dict[str, Any] = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "nodeSelector": {"kubernetes.io/hostname": node},
                        "containers": [{"name": "c", "image": "example/none:1"}],
                    },
                },
            },
        }
        client.AppsV1Api(self.core.api_client).create_namespaced_deployment("default", body)
        self.twin.wait(lambda: self.running(name) == [node], 60, f"{name} runs on {node}")

    def running(self, name: str) -> list[str]:
        """Nodes on which pods of a deployment run."""
        pods = self.core.list_namespaced_pod("default", label_selector=f"app={name}").items
        return [
            pod.spec.node_name for pod in pods if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
        ]

    def version(self, name: str) -> str:
        """Version of the loaded module on a host."""
        text = self.hosts.run(name, "cat /twin/proc/driver/nvidia/version").stdout
        return next(word for word in text.split() if word[:3].isdigit() and "." in word)

    def fact(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.hosts.run(name, "cat /etc/ansible/facts.d/gpu.fact").stdout)
        return found

    def schedulable(self) -> list[str]:
        """Nodes that take pods."""
        return [
            n.metadata.name
            for n in self.core.list_node().items
            if not n.spec.unschedulable and n.metadata.name in self.names
        ]

    def run(
        self, playbook: str, base: dict[str, Any] | None = None, limit: Sequence[str] = (), **variables: Any
    ) -> tuple[Play, Watch]:
        with Watch(self.core, self.names) as watch:
            kubeconfig = str(self.twin.kubeconfig)
            done = play(playbook, base or self.base, limit=limit, upgrade_kubeconfig=kubeconfig, **variables)
            time.sleep(0.2)  # the watch looks every 50 ms: let it see the last state
        return done, watch


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, host_machine: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """So many hosts with the old driver, known to a real API server under their names."""
    try:
        twin = Twin.start(tmp_path_factory.mktemp("cluster") / "twin")
    except TwinError as error:
        pytest.skip(f"no control plane: {error}")
    try:
        with HostTwin(tmp_path_factory.mktemp("fleet")) as hosts:
            try:
                names = [host.name for host in hosts.start(request.param, ["a100-pcie"])]
            except UnavailableError as error:
                pytest.skip(str(error))
            for name in names:
                twin.add_node(name)
                hosts.run(name, "mkdir -p /var/lib/kubelet && touch /var/lib/kubelet/config.yaml")
            base = inventory(hosts, gpu_driver_branch="580")
            first = play("site", base, gpu_driver_version=OLD)
            assert first.rc == 0, first.output
            yield Cluster(hosts, twin, names, base)
    finally:
        twin.stop()


@TWO_AND_THREE
def test_a_node_in_use_is_not_upgraded_by_site(cluster: Cluster) -> None:
    done = play("site", cluster.base, gpu_driver_version=NEW)
    assert done.rc != 0
    for name in cluster.names:
        assert "GF756" in done.failures(name) and done.changed(name) == []
    assert [cluster.version(name) for name in cluster.names] == [OLD] * len(cluster.names)


@TWO_AND_THREE
def test_one_node_after_the_other(cluster: Cluster) -> None:
    cluster.pod(cluster.names[1], "work")
    done, watch = cluster.run("upgrade", gpu_driver_version=NEW)
    assert done.rc == 0, done.output
    assert watch.cordoned() == cluster.names and watch.most_at_once() == 1
    assert [cluster.version(name) for name in cluster.names] == [NEW] * len(cluster.names)
    assert cluster.schedulable() == sorted(cluster.names)
    assert not [n for n in cluster.core.list_node().items if "gpufleet.dev/driver-upgrade" in str(n.spec.taints)]
    order = [row["task"] for row in done.of(cluster.names[1]) if row["changed"]]
    drain, unload = order.index("Drain the node"), order.index("gpu_driver : Unload the modules")
    install, load = (
        order.index("gpu_driver : Install the exact package set in one transaction"),
        order.index("gpu_driver : Load the modules"),
    )
    uncordon = order.index("Uncordon the node")
    assert drain < unload < install < load < uncordon
    cluster.twin.wait(lambda: cluster.running("work") == [cluster.names[1]], 60, "the evicted pod runs again")
    held = cluster.hosts.run(cluster.names[0], "apt-mark showhold").stdout.split()
    assert "nvidia-open" in held and "nvidia-dkms-580-open" in held


@TWO_AND_THREE
def test_a_second_upgrade_drains_nobody(cluster: Cluster) -> None:
    done, watch = cluster.run("upgrade", gpu_driver_version=NEW)
    assert done.rc == 0 and watch.log == []
    assert [done.changed(name) for name in cluster.names] == [[]] * len(cluster.names)


@THREE
def test_a_host_that_fails_goes_back_and_the_next_stays_untouched(cluster: Cluster) -> None:
    first, second, third = cluster.names
    base = json.loads(json.dumps(cluster.base))
    # a smoke test that the new driver does not pass
    base["all"]["hosts"][second]["gpu_health_smoke_test"] = "grep -q 580[.] /twin/proc/driver/nvidia/version"
    done, watch = cluster.run("upgrade", base, gpu_driver_branch="595", gpu_driver_version="595.91.07")
    assert done.rc != 0
    assert watch.cordoned() == [first, second] and watch.most_at_once() == 1
    assert cluster.version(first) == "595.91.07"
    assert cluster.version(second) == NEW, "back at the last good version, although an extra variable asks for another"
    assert cluster.version(third) == NEW and done.changed(third) == []
    outage = "Take the node out of service"
    assert outage in [row["task"] for row in done.of(second)]
    assert outage not in [row["task"] for row in done.of(third)], "nothing but what the first play looks at"
    assert cluster.schedulable() == sorted(cluster.names)
    message = done.failures(second)
    assert f"{second} failed its upgrade" in message and f"back at driver {NEW}, healthy and in service" in message
    assert "No further host was touched" in message
    assert cluster.fact(second)["last_good"]["version"] == NEW


@THREE
def test_a_host_that_stays_unhealthy_stays_out_of_service(cluster: Cluster) -> None:
    first, second, third = cluster.names
    cluster.hosts.set_scenario(second, {"ecc_errors": {"0": {"uncorrected": 3}}})
    done, watch = cluster.run("upgrade", gpu_driver_branch="595", gpu_driver_version="595.91.07")
    assert done.rc != 0 and watch.cordoned() == [second], "the first host has nothing to do"
    assert cluster.version(second) == NEW and cluster.version(third) == NEW
    assert "stays cordoned" in done.failures(second) and cluster.schedulable() == [first, third]
    assert cluster.fact(second)["healthy"] is False and cluster.fact(second)["last_good"]["version"] == NEW


@THREE
def test_rolling_back_all_hosts(cluster: Cluster) -> None:
    cluster.hosts.set_scenario(cluster.names[1], {"ecc_errors": {"0": {"uncorrected": 0}}})
    cluster.core.patch_node(cluster.names[1], {"spec": {"unschedulable": False, "taints": None}})
    done, watch = cluster.run("rollback", rollback_version=NEW)
    assert done.rc == 0, done.output
    assert watch.cordoned() == [cluster.names[0]], "only the host with another driver"
    assert [cluster.version(name) for name in cluster.names] == [NEW] * len(cluster.names)
    assert cluster.schedulable() == sorted(cluster.names)


@THREE
def test_a_node_that_cannot_be_drained_is_not_touched(cluster: Cluster) -> None:
    last = cluster.names[-1]
    done, watch = cluster.run("upgrade", gpu_driver_version="580.95.05", upgrade_node_name="unknown")
    assert done.rc != 0 and watch.log == []
    for name in cluster.names:
        assert f"{name} is a node of a cluster" in done.failures(name) and "has no node unknown" in done.failures(name)
    alone = play("upgrade", cluster.base, limit=[last], gpu_driver_version="580.95.05")
    assert "upgrade_kubeconfig is not set" in alone.failures(last)
    back, _watch = cluster.run("rollback", rollback_version=OLD, upgrade_node_name="unknown")
    assert back.rc != 0 and "has no node unknown" in back.failures(cluster.names[0])
    for ended in (done, alone, back):
        assert [ended.changed(name) for name in cluster.names] == [[]] * len(cluster.names)
    assert [cluster.version(name) for name in cluster.names] == [NEW] * len(cluster.names)


@THREE
def test_hosts_outside_the_cluster_skip_the_drain(cluster: Cluster) -> None:
    last = cluster.names[-1]
    cluster.hosts.run(last, "rm /var/lib/kubelet/config.yaml")
    done, watch = cluster.run(
        "upgrade", limit=[last], gpu_driver_version="580.95.05", upgrade_node_name="unknown-to-the-api-server"
    )
    assert done.rc == 0, done.output
    assert cluster.version(last) == "580.95.05" and watch.log == []
    assert not [task for task in done.changed(last) if "node" in task.lower()]


@THREE
def test_a_node_that_was_drained_by_hand(cluster: Cluster) -> None:
    first = cluster.names[0]
    done = play("upgrade", cluster.base, limit=[first], gpu_driver_version="580.95.05", upgrade_without_drain=True)
    assert done.rc == 0, done.output
    assert cluster.version(first) == "580.95.05"
