"""A kubeconfig appears nowhere in clear: state, plan, preview, outputs, logs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from twin.engine import Twin, write_stack

AKS = """\
config:
  gpufleet:cluster: {kind: aks, name: sec, location: eastus}
  gpufleet:pools: [{name: t4, vmSize: Standard_NC4as_T4_v3, count: 1}]
  gpufleet:stack: {kind: plugin, namespace: sec-plugin}
"""
SECRET = """\
config:
  gpufleet:cluster: {kind: existing, name: sec2, kubeconfig: {secret: true}}
  gpufleet:pools: [{name: t4, hosts: {sec-n1: {}}, gpu: T4, gpusPerNode: 1}]
  gpufleet:stack: {kind: plugin, namespace: sec-plugin}
"""


def needles(twin: Twin) -> list[str]:
    """Parts of the kubeconfig that nobody may see: the client key, and the whole in base64."""
    data = yaml.safe_load(twin.kubeconfig.read_text())
    user = data["users"][0]["user"]
    key = user.get("client-key-data") or user.get("token")
    assert key and len(key) > 40
    return [key[:60], key[-60:], "PRIVATE KEY"]


def assert_hidden(text: str, secrets: list[str], where: str) -> None:
    for secret in secrets:
        assert secret not in text, f"{where} shows the kubeconfig"


def state_files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "state" in p.parts]


@pytest.mark.parametrize("stack", ["sec", "sec2"])
def test_nowhere_in_clear(twin: Twin, project: Path, stack: str) -> None:
    write_stack(project, stack, AKS if stack == "sec" else SECRET)
    secrets = needles(twin)
    if stack == "sec2":
        twin.add_node("sec-n1", gpus=1, model="T4")
        set_ = twin.pulumi(
            project, stack, "config", "set", "--secret", "gpufleet:kubeconfig", twin.kubeconfig.read_text()
        )
        set_.require()
        assert_hidden((project / "stacks" / "Pulumi.sec2.yaml").read_text(), secrets, "the stack file")
    said = []
    for words in (
        ["preview", "--diff"], ["preview", "--json"], ["preview", "--save-plan", "plan.json"],
        ["up", "--diff", "--logtostderr", "-v=3"], ["stack", "output", "--json"], ["stack", "--show-urns"],
        ["stack", "export"], ["config", "--json"],
    ):  # fmt: skip
        result = twin.pulumi(project, stack, *words).require()
        said.append((" ".join(words), result.stdout + result.stderr))
    for command in (["plan", "-s", stack, "--json"], ["status", "-s", stack, "--wait", "30", "--json"]):
        result = twin.gpufleet(project, *command)
        assert result.rc == 0, result.stdout + result.stderr
        said.append((" ".join(command), result.stdout + result.stderr))
    for where, text in said:
        assert_hidden(text, secrets, where)
    files = state_files(project)
    assert any(re.search(r"stacks/.*\.json", str(p)) for p in files)
    for path in [*files, project / "plan.json"]:
        assert_hidden(path.read_bytes().decode(errors="replace"), secrets, path.name)
    shown = twin.pulumi(project, stack, "stack", "output", "--show-secrets").require()
    if stack == "sec":
        assert "PRIVATE KEY" in shown.stdout or secrets[0] in shown.stdout, "the scan looks for what is really there"
    twin.pulumi(project, stack, "destroy").require()
    if stack == "sec2":
        twin.remove_node("sec-n1")


def test_status_reads_the_kubeconfig_from_the_stack(twin: Twin, project: Path) -> None:
    """Without any override, an AKS stack's kubeconfig comes from its own secret output."""
    write_stack(project, "sec", AKS)
    twin.pulumi(project, "sec", "up").require()
    status = twin.gpufleet(project, "status", "-s", "sec", "--wait", "60", GPUFLEET_KUBECONFIG="", KUBECONFIG="")
    assert status.rc == 0, status.stdout + status.stderr
    twin.pulumi(project, "sec", "destroy").require()
