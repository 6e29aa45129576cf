"""Ports, certificates, nodes and Pulumi's home: what a twin is made of, without starting one."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from twin import certs, controlplane, nodes, ports, processes, pulumi_home
from twin.controlplane import Layout
from twin.errors import TwinError
from twin.toolchain import KUBE_PARTS, Tools, sdk_version

STACK = """\
extends: bases/base.yaml
config:
  gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf, context: lab-admin}}
  gpufleet:pools:
    - name: a100
      hosts: {gpu01: {address: 10.0.0.11}, gpu02: null}
      gpu: A100-SXM4-80GB
      gpusPerNode: 8
      taints: ["sku=gpu:NoSchedule"]
    - {name: edge, nodeSelector: {site: edge}, gpu: L4, gpusPerNode: 1, taints: ["edge:NoExecute"]}
"""


def tools(folder: Path) -> Tools:
    return Tools(
        folder / "etcd", {part: (str(folder / "kube"), part) for part in KUBE_PARTS}, folder / "kwok",
        folder / "pulumi", folder / "provider", "1.36.3",
    )  # fmt: skip


def test_ports_are_different_and_never_one_that_is_taken() -> None:
    first = ports.choose(["a"], seed=7)["a"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        taken.listen()
        assert not ports.is_free(first)
        chosen = ports.choose(list("abcdef"), seed=7)
    assert first not in chosen.values()
    assert len(set(chosen.values())) == 6
    assert all(ports.LOWEST <= port <= ports.HIGHEST for port in chosen.values())


def test_certificates_are_trusted_by_their_own_authority_only(tmp_path: Path) -> None:
    certs.create(tmp_path / "one", "10.0.0.1")
    certs.create(tmp_path / "two", "10.0.0.1")
    server = x509.load_pem_x509_certificate((tmp_path / "one" / "server.crt").read_bytes())
    own = x509.load_pem_x509_certificate((tmp_path / "one" / "ca.crt").read_bytes())
    other = x509.load_pem_x509_certificate((tmp_path / "two" / "ca.crt").read_bytes())
    server.verify_directly_issued_by(own)
    with pytest.raises(InvalidSignature):
        server.verify_directly_issued_by(other)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "10.0.0.1"]
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)
    admin = x509.load_pem_x509_certificate((tmp_path / "one" / "admin.crt").read_bytes())
    assert admin.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"
    ssl.create_default_context().load_cert_chain(tmp_path / "one" / "admin.crt", tmp_path / "one" / "admin.key")


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    certs.create(tmp_path / "pki", "10.0.0.1")
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    keys = list((tmp_path / "pki").glob("*.key"))
    assert {path.name for path in keys} == {"server.key", "admin.key", "sa.key"}  # the authority's own is not kept
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}


def test_a_kubeconfig_holds_everything_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    certs.create(layout.pki, "10.0.0.1")
    controlplane.write_private(layout.kubeconfig, controlplane.kubeconfig(layout, 20001, ("twin", "idc")))
    data = yaml.safe_load(layout.kubeconfig.read_text())
    assert data["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:20001"
    assert [context["name"] for context in data["contexts"]] == ["twin", "idc"]
    assert str(tmp_path) not in layout.kubeconfig.read_text()
    assert stat.S_IMODE(layout.kubeconfig.stat().st_mode) == 0o600


def test_the_parts_listen_on_loopback_and_check_who_asks(tmp_path: Path) -> None:
    port = {name: 20000 + index for index, name in enumerate(controlplane.PORTS)}
    parts = controlplane.parts(Layout(tmp_path), tools(tmp_path), port)
    assert tuple(parts) == controlplane.ORDER
    for name in ("apiserver", "controller-manager", "scheduler"):
        assert "--bind-address=127.0.0.1" in parts[name].command
    assert "--authorization-mode=Node,RBAC" in parts["apiserver"].command
    assert "--unsafe-no-fsync" in parts["etcd"].command
    addresses = re.findall(r"(?<![\d.])\d+\.\d+\.\d+\.\d+(?![\d/])", str(parts))
    assert set(addresses) == {"127.0.0.1"}


def test_nodes_of_a_stack_carry_what_exists_before_it_is_deployed(tmp_path: Path) -> None:
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / "base.yaml").write_text(
        "config: {gpufleet:cluster: {site: lab-1}, gpufleet:stack: {kind: plugin}}"
    )
    (tmp_path / "Pulumi.lab.yaml").write_text(STACK)
    config = nodes.read_config(tmp_path / "Pulumi.lab.yaml")
    assert config["cluster"]["site"] == "lab-1"
    found = {node.name: node for node in nodes.declared(config, "lab")}
    assert list(found) == ["gpu01", "gpu02", "edge-1", "edge-2"]
    assert (found["gpu01"].gpus, found["gpu01"].model, found["gpu01"].address) == (8, "A100-SXM4-80GB", "10.0.0.11")
    assert found["gpu01"].taints == ()  # the stack adds them
    assert dict(found["edge-1"].labels) == {"site": "edge"}  # somebody else's, so they are there already
    assert found["edge-1"].taints == ["edge:NoExecute"]
    assert nodes.contexts(config) == ("lab-admin",)
    assert nodes.declared({"cluster": {"kind": "aks"}, "pools": config["pools"]}, "aks") == []


def test_a_node_offers_no_gpu_before_a_plugin_runs_on_it() -> None:
    node = nodes.manifest(nodes.Node("gpu01", {"a": "b"}, ["sku=gpu:NoSchedule", "edge:NoExecute"], 8, "A100"))
    assert "nvidia.com/gpu" not in str(node)
    assert node["metadata"]["annotations"] == {
        "kwok.x-k8s.io/node": "fake",
        "twin.gpufleet.dev/gpus": "8",
        "twin.gpufleet.dev/gpu-model": "A100",
    }
    assert node["spec"]["taints"] == [
        {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
        {"key": "edge", "effect": "NoExecute"},
    ]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu01"


@pytest.mark.parametrize("pools", [{"name": "a"}, ["a"], [{"name": "a", "hosts": ["gpu01"]}], [{"hosts": {"a": 3}}]])
def test_pools_that_are_laid_out_wrongly_lead_to_the_plan(pools: object) -> None:
    with pytest.raises(TwinError, match="gpufleet plan -s lab"):
        nodes.declared({"cluster": {"kind": "existing"}, "pools": pools}, "lab")


@pytest.mark.parametrize("text", ["sku=gpu", "sku=gpu:Never", ":NoSchedule", ""])
def test_a_taint_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TwinError, match="not a taint"):
        nodes.taint(text)


def laid(tmp_path: Path, env: dict[str, str]) -> Path:
    real = tmp_path / "real"
    real.mkdir(exist_ok=True)
    for name in ("pulumi", "provider"):
        (real / name).write_text("#!/bin/sh\n")
        (real / name).chmod(0o755)
    pulumi_home.lay(tmp_path / "home", tools(real), env)
    return tmp_path / "home"


def test_a_cli_without_a_python_host_gets_the_stand_in_beside_it(tmp_path: Path) -> None:
    home = laid(tmp_path, {"PATH": ""})
    assert not (home / "bin" / "pulumi").is_symlink()  # Pulumi looks beside its real self
    assert "language/server.py" in (home / "bin" / "pulumi-language-python").read_text()
    plugin = home / "pulumi" / "plugins" / f"resource-kubernetes-v{sdk_version()}" / "pulumi-resource-kubernetes"
    assert plugin.resolve() == tmp_path / "real" / "provider"


def test_a_real_python_host_is_never_shadowed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "pulumi-language-python").write_text("real")
    home = laid(tmp_path, {"PATH": ""})
    assert (home / "bin" / "pulumi").resolve() == tmp_path / "real" / "pulumi"
    assert not (home / "bin" / "pulumi-language-python").exists()

    (tmp_path / "path").mkdir()
    (tmp_path / "real" / "pulumi-language-python").rename(tmp_path / "path" / "pulumi-language-python")
    (tmp_path / "path" / "pulumi-language-python").chmod(0o755)
    home = laid(tmp_path, {"PATH": str(tmp_path / "path")})
    assert (home / "bin" / "pulumi-language-python").read_text() == "real"


def test_a_twin_can_reach_no_real_azure(tmp_path: Path) -> None:
    values = pulumi_home.variables(tmp_path, tmp_path / "kubeconfig", tmp_path / "state", {"PATH": "/opt/azure"})
    assert values["PULUMI_IGNORE_AMBIENT_PLUGINS"] == "true"
    home = laid(tmp_path, {"PATH": ""})
    (plugin,) = (home / "pulumi" / "plugins").glob("resource-azure-native-v*/pulumi-resource-azure-native")
    assert str(pulumi_home.AZURE) in plugin.read_text()
    assert values["PULUMI_HOME"] == str(tmp_path / "pulumi")
    assert values["PULUMI_BACKEND_URL"] == f"file://{tmp_path}/state"


def test_the_salt_that_pulumi_adds_does_not_stay_in_a_stack_file(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.local.yaml"
    before = "# why\nconfig:\n  gpufleet:stack:   {kind: plugin}\n"
    file.write_text(before)
    with pulumi_home.salt_kept_out(file):
        file.write_text("# why\nconfig:\n  gpufleet:stack: {kind: plugin}\nencryptionsalt: v1:abc\n")
    assert file.read_text() == before
    with pulumi_home.salt_kept_out(file):  # a real change stays, salt and all
        file.write_text("config:\n  gpufleet:stack: {kind: operator}\nencryptionsalt: v1:abc\n")
    assert "operator" in file.read_text()


def test_locks_of_killed_commands_go_and_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi" / "locks" / "organization" / "gpufleet" / "local"
    folder.mkdir(parents=True)
    gone = max(pid for pid in range(100000, 4_000_000, 99999) if processes.start_time(pid) is None)
    own = {"hostname": socket.gethostname()}
    (folder / "dead.json").write_text(json.dumps({**own, "pid": gone}))
    (folder / "live.json").write_text(json.dumps({**own, "pid": os.getpid()}))
    (folder / "elsewhere.json").write_text(json.dumps({"hostname": "another-machine", "pid": gone}))
    assert [path.name for path in pulumi_home.drop_dead_locks(tmp_path)] == ["dead.json"]
    assert {path.name for path in folder.iterdir()} == {"live.json", "elsewhere.json"}
