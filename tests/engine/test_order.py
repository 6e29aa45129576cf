"""A profile is renamed: at every moment the label of each node names a key of the ConfigMap that the plugin mounts.

The watch sees every change of nodes, DaemonSets and ConfigMaps. Sorted by resourceVersion, these are all states that
the API server went through (RP-46).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, watch
from urllib3.exceptions import HTTPError

from twin.advertiser.pods import SELECT_LABEL
from twin.engine import Result, Twin, wait, write_stack

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "twin" / "chart" / "gpu-operator"
SPACE, PLUGIN = "ord-gpu", "nvidia-device-plugin-daemonset"
NODES = ("ord-1", "ord-2")


def stack(kind: str, profile: str, replicas: int) -> str:
    """One pool of T4 under the operator, shared by a profile of this name."""
    cluster: dict[str, Any] = {"kind": "existing", "name": "ord", "kubeconfig": {"path": "kubeconfig"}}
    pool: dict[str, Any] = {"hosts": {name: {} for name in NODES}, "gpu": "T4", "gpusPerNode": 1}
    if kind == "aks":
        cluster = {"kind": "aks", "name": "ord", "location": "eastus"}
        pool = {"vmSize": "Standard_NC4as_T4_v3", "count": 2, "driver": "operator"}
    sections = {
        "cluster": cluster,
        "pools": [{**pool, "name": "t4", "sharing": profile}],
        "stack": {"kind": "operator", "namespace": SPACE},
        "sharing": {profile: {"strategy": "timeSlicing", "replicas": replicas}},
    }
    return yaml.safe_dump({"config": {f"gpufleet:{k}": v for k, v in sections.items()}})


class Watcher:
    """Every event of nodes, of the operator's DaemonSets and of ConfigMaps, from now until `states`."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.events, self._watches, self._threads = twin, [], [], []
        api = client.AppsV1Api(twin.client())
        for list_all in (
            twin.core.list_node, api.list_daemon_set_for_all_namespaces, twin.core.list_config_map_for_all_namespaces,
        ):  # fmt: skip
            start = json.loads(list_all(_preload_content=False).data)
            for one in start["items"]:
                one.setdefault("kind", start["kind"].removesuffix("List"))
                self.events.append((0, "ADDED", one))
            follow = watch.Watch()
            thread = threading.Thread(target=self._follow, args=(follow, list_all, start["metadata"]), daemon=True)
            self._watches.append(follow)
            self._threads.append(thread)
            thread.start()

    def _follow(self, follow: watch.Watch, list_all: Any, start: dict[str, Any]) -> None:
        with contextlib.suppress(HTTPError):  # the twin has ended
            for event in follow.stream(list_all, resource_version=start["resourceVersion"], timeout_seconds=600):
                one = event["raw_object"]
                self.events.append((int(one["metadata"]["resourceVersion"]), event["type"], one))

    def wrong(self) -> list[str]:
        """States in which a label names what the plugin's pods do not find. Ends the watch."""
        marker = self.twin.core.patch_node(NODES[0], {"metadata": {"annotations": {"test/end": os.urandom(4).hex()}}})
        end = int(marker.metadata.resource_version)
        wait(lambda: any(version >= end for version, _, _ in list(self.events)), 20, "the watch has seen everything")
        for one in self._watches:
            one.stop()
        nodes: dict[str, str] = {}
        maps: dict[str, set[str]] = {}
        mounted: str | None = None
        found = []
        for version, kind, one in sorted(self.events, key=lambda event: event[0]):
            name, space = one["metadata"]["name"], one["metadata"].get("namespace")
            gone = kind == "DELETED"
            if one["kind"] == "Node":
                nodes.pop(name, None)
                if not gone and (value := one["metadata"].get("labels", {}).get(SELECT_LABEL)):
                    nodes[name] = value
            elif space != SPACE:
                continue
            elif one["kind"] == "ConfigMap":
                maps.pop(name, None)
                if not gone:
                    maps[name] = set(one.get("data") or {})
            elif name == PLUGIN:
                volumes = one["spec"]["template"]["spec"].get("volumes") or []
                read = [v["configMap"]["name"] for v in volumes if "configMap" in v]
                mounted = None if gone or not read else read[0]
            if mounted is not None and version:
                lost = {node: value for node, value in nodes.items() if value not in maps.get(mounted, set())}
                if lost:
                    found.append(f"{version}: {mounted} has {sorted(maps.get(mounted, ()))}, labels {lost}")
        return found


@pytest.fixture
def node(twin: Twin, project: Path) -> Iterator[None]:
    for name in NODES:
        twin.add_node(name, gpus=1, model="T4")
    yield
    twin.pulumi(project, "ord", "destroy", timeout=420)
    for name in NODES:
        twin.remove_node(name)


def up(twin: Twin, project: Path, chart: Path = CHART) -> Result:
    return twin.pulumi(project, "ord", "up", timeout=420, GPUFLEET_OPERATOR_CHART=str(chart))


def labels(twin: Twin) -> set[str | None]:
    nodes = [n.metadata.labels for n in twin.core.list_node().items]
    return {n.get(SELECT_LABEL) for n in nodes if n.get("gpufleet.dev/pool") == "t4"}


def keys(twin: Twin) -> list[list[str]]:
    maps = twin.core.list_namespaced_config_map(SPACE, label_selector="gpufleet.dev/route=operator").items
    return sorted(sorted(one.data) for one in maps)


def plugin_generation(twin: Twin) -> int:
    found = client.AppsV1Api(twin.client()).read_namespaced_daemon_set(PLUGIN, SPACE)
    return int(found.metadata.generation)


def settles(twin: Twin, project: Path) -> None:
    """The old key goes with the next `up`, no pod is rolled for it, and then nothing changes any more."""
    before = plugin_generation(twin)
    up(twin, project).require()
    assert keys(twin) == [["t4-x8", "unshared"]]
    assert plugin_generation(twin) == before
    preview = twin.pulumi(project, "ord", "preview", "--expect-no-changes", GPUFLEET_OPERATOR_CHART=str(CHART))
    assert preview.rc == 0, preview.stdout


@pytest.mark.parametrize("kind", ["existing", "aks"])
def test_labels_always_name_a_key_while_a_profile_is_renamed(
    twin: Twin, project: Path, node: None, kind: str
) -> None:
    """RP-46, in every state that the API server goes through."""
    write_stack(project, "ord", stack(kind, "t4-x4", 4))
    up(twin, project).require()
    assert labels(twin) == {"t4-x4"}
    seen = Watcher(twin)
    write_stack(project, "ord", stack(kind, "t4-x8", 8))
    renamed = up(twin, project).require()
    assert "keeps t4-x4" in renamed.stdout
    assert (labels(twin), keys(twin)) == ({"t4-x8"}, [["t4-x4", "t4-x8", "unshared"]])
    settles(twin, project)
    assert seen.wrong() == []


def killed_at_the_first_new_label(twin: Twin, project: Path) -> None:
    """An `up` that ends there, with everything that it started."""
    command = ["pulumi", "up", "--stack", "ord", "--yes", "--skip-preview", "--non-interactive"]
    env = {**twin.env(project), "GPUFLEET_OPERATOR_CHART": str(CHART)}
    process = subprocess.Popen(
        command, cwd=project, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    twin.wait(lambda: "t4-x8" in labels(twin), 120, "a node has the new label")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_labels_fit_through_a_failure_and_a_kill(twin: Twin, project: Path, tmp_path: Path, node: None) -> None:
    """RP-46: the release fails, so the labels stay. Taken up again, `up` is killed between two labels, then goes on."""
    write_stack(project, "ord", stack("existing", "t4-x4", 4))
    up(twin, project).require()
    seen = Watcher(twin)
    broken = tmp_path / "chart"
    shutil.copytree(CHART, broken)
    (broken / "templates" / "broken.yaml").write_text('{{ fail "broken on purpose" }}\n')
    write_stack(project, "ord", stack("existing", "t4-x8", 8))
    failed = up(twin, project, broken)
    assert failed.rc != 0 and "broken on purpose" in failed.stdout
    assert labels(twin) == {"t4-x4"}

    killed_at_the_first_new_label(twin, project)
    twin.pulumi(project, "ord", "cancel", "--yes").require()
    up(twin, project).require()
    assert labels(twin) == {"t4-x8"}
    settles(twin, project)
    assert seen.wrong() == []
