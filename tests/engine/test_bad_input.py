"""A stack file with many errors: all of them in one report, nothing touched, no traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from twin.engine import Twin, write_stack

TEN = """\
config:
  gpufleet:cluster: {kind: aks, name: bad, location: eastus, version: 1.30}
  gpufleet:pools:
    - {name: waytoolongname, vmSize: Standard_NC4as_T4_v3, count: 1}
    - {name: a, vmSize: Standard_NC4as_T4_v4, count: 1}
    - {name: b, vmSize: Standard_NC4as_T4_v3, driver: operator}
    - {name: c, vmSize: Standard_NC4as_T4_v3, taints: ["sku=gpu:NO_SCHEDULE"]}
    - {name: d, vmSize: Standard_NC4as_T4_v3, sharing: notebook}
    - {name: e, vmSize: Standard_NC4as_T4_v3, driver: aks, driverVersion: "550.90.12"}
    - {name: f, vmSize: Standard_NC4as_T4_v3, tags: {skipGPUDriverInstall: "true"}}
  gpufleet:stack: {kind: plugin, replcas: 4}
  gpufleet:sharing:
    notebooks: {strategy: timeSlicing, replicas: 1}
"""
EXPECTED = {
    ("GF104", "cluster.version"),
    ("GF106", "pools[0].name"),
    ("GF230", "pools[1].vmSize"),
    ("GF202", "pools[2].driver"),
    ("GF107", "pools[3].taints[0]"),
    ("GF109", "pools[4].sharing"),
    ("GF206", "pools[5].driverVersion"),
    ("GF209", "pools[6].tags.skipGPUDriverInstall"),
    ("GF101", "stack.replcas"),
    ("GF105", "sharing.notebooks.replicas"),
}


@pytest.mark.parametrize("command", ["preview", "up"])
def test_ten_errors_all_at_once(twin: Twin, project: Path, command: str) -> None:
    write_stack(project, "bad", TEN)
    result = twin.pulumi(project, "bad", command)
    said = result.stdout + result.stderr
    assert result.rc != 0
    assert "Traceback" not in said and 'File "' not in said
    said = said[said.index("Diagnostics:") :]  # the CLI streams each message too, and sums up here
    found = re.findall(r"error (GF\d{3}) (\S+)  stacks/Pulumi\.bad\.yaml:(\d+)", said)
    assert {(code, path) for code, path, _ in found} == EXPECTED
    assert len(found) == len(EXPECTED), "each is said once"
    assert "10 errors. Nothing was changed." in said
    exported = json.loads(twin.pulumi(project, "bad", "stack", "export").require().stdout)
    resources = [r["type"] for r in exported["deployment"].get("resources", [])]
    assert resources in ([], ["pulumi:pulumi:Stack"])
    assert not twin.core.list_namespace(label_selector="app.kubernetes.io/managed-by=gpufleet").items


def test_plan_and_preview_say_the_same(twin: Twin, project: Path) -> None:
    write_stack(project, "bad", TEN)
    plan = twin.gpufleet(project, "plan", "-s", "bad", "--json")
    assert plan.rc == 1
    document = json.loads(plan.stdout)
    assert document["plan"] is None
    assert {(d["code"], d["path"]) for d in document["diagnostics"] if d["severity"] == "error"} == EXPECTED


def test_warnings_are_pulumi_diagnostics(twin: Twin, project: Path) -> None:
    text = """\
config:
  gpufleet:cluster: {kind: aks, name: warn, location: eastus}
  gpufleet:pools:
    - {name: t4, vmSize: Standard_NC4as_T4_v3, autoscale: {min: 0, max: 4}, sharing: eight}
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing: {eight: {strategy: timeSlicing, replicas: 8, memoryPerPodGib: 4}}
"""
    write_stack(project, "warn", text)
    preview = twin.pulumi(project, "warn", "preview").require()
    assert "warning GF302" in preview.stdout
    assert "warning GF420" in preview.stdout
    acknowledged = text + '  gpufleet:acknowledge: {GF420: "a dev pool, four nodes at most", GF302: notebooks burst}\n'
    write_stack(project, "warn", acknowledged)
    preview = twin.pulumi(project, "warn", "preview").require()
    assert "GF420" not in preview.stdout and "GF302" not in preview.stdout


@pytest.mark.parametrize(
    ("kubeconfig", "says"),
    [
        ("missing.conf", "cannot be read"),
        ("empty.conf", "it names no cluster"),
        ("other.conf", "it has no context idc (there are: a, b)"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(twin: Twin, project: Path, kubeconfig: str, says: str) -> None:
    (project / "empty.conf").write_text("")
    (project / "other.conf").write_text("clusters: [{name: x}]\ncontexts: [{name: a}, {name: b}]\n")
    text = f"""\
config:
  gpufleet:cluster: {{kind: existing, name: nokube, kubeconfig: {{path: {kubeconfig}, context: idc}}}}
  gpufleet:pools: [{{name: t4, hosts: {{n1: {{}}}}, gpu: T4, gpusPerNode: 1}}]
  gpufleet:stack: {{kind: plugin}}
"""
    write_stack(project, "nokube", text)
    result = twin.pulumi(project, "nokube", "preview", GPUFLEET_KUBECONFIG="")
    assert result.rc != 0
    assert says in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr
