"""Programs under the twin's Pulumi: what a user sees of output, errors and secrets, and that nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twin.engine import Twin, stack_file, write_stack

NAMESPACED = """
import os, pulumi, pulumi_kubernetes as k8s
provider = k8s.Provider("p", kubeconfig=open(os.environ["KUBECONFIG"]).read(), cluster_identifier="host-test")
options = pulumi.ResourceOptions(provider=provider)
place = k8s.core.v1.Namespace("place", metadata={"name": "host-test"}, opts=options)
k8s.core.v1.ConfigMap("settings", metadata={"name": "settings", "namespace": place.metadata.name},
                      data={"size": pulumi.Config().require("size")}, opts=options)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    (folder / "stacks").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: small\nruntime: python\nstackConfigDir: stacks\n")
    (folder / "helper.py").write_text("def value():\n    return 6 * 7\n")
    write_stack(folder, "dev", "# kept as it is\nconfig:\n  small:size:    'three'\n  small:parts: {a: [1, 2]}\n")
    return folder


def program(folder: Path, text: str) -> None:
    (folder / "__main__.py").write_text(text)


def test_up_again_and_destroy_in_the_real_cluster(twin: Twin, folder: Path) -> None:
    program(folder, NAMESPACED)
    before = stack_file(folder, "dev").read_bytes()
    twin.pulumi(folder, "dev", "up").require()
    assert twin.core.read_namespaced_config_map("settings", "host-test").data == {"size": "three"}
    twin.pulumi(folder, "dev", "up", "--expect-no-changes").require()
    twin.pulumi(folder, "dev", "destroy").require()
    names = {item.metadata.name for item in twin.core.list_namespace().items}
    assert "host-test" not in names
    assert stack_file(folder, "dev").read_bytes() == before


def test_a_program_gets_its_configuration_modules_and_stack(twin: Twin, folder: Path) -> None:
    program(
        folder,
        "import helper, pulumi\n"
        "c = pulumi.Config()\n"
        "print('printed by the program')\n"
        "pulumi.export('seen', [helper.value(), c.require('size'), c.require_object('parts'), pulumi.get_stack(),"
        " pulumi.get_project(), pulumi.runtime.is_dry_run()])\n",
    )
    up = twin.pulumi(folder, "dev", "up").require()
    assert "printed by the program" in up.stdout
    seen = json.loads(twin.pulumi(folder, "dev", "stack", "output", "--json").require().stdout)["seen"]
    assert seen == [42, "three", {"a": [1, 2]}, "dev", "small", False]


def test_secrets_stay_secret_to_the_program(twin: Twin, folder: Path) -> None:
    twin.pulumi(folder, "dev", "config", "set", "--secret", "word", "hunter2hunter2").require()
    assert "hunter2" not in stack_file(folder, "dev").read_text()
    program(folder, "import pulumi\npulumi.export('word', pulumi.Config().require_secret('word'))\n")
    up = twin.pulumi(folder, "dev", "up").require()
    assert "hunter2" not in up.stdout + up.stderr
    exported = twin.pulumi(folder, "dev", "stack", "export").require()
    assert "hunter2" not in exported.stdout
    shown = twin.pulumi(folder, "dev", "stack", "output", "word", "--show-secrets").require()
    assert shown.stdout.strip() == "hunter2hunter2"


def test_an_error_meant_for_the_user_comes_without_a_traceback(twin: Twin, folder: Path) -> None:
    program(folder, "import pulumi\nraise pulumi.RunError('the pool is too small')\n")
    preview = twin.pulumi(folder, "dev", "preview")
    assert preview.rc != 0
    assert "the pool is too small" in preview.stdout
    assert "Traceback" not in preview.stdout + preview.stderr
    assert "exit code" not in preview.stdout + preview.stderr


def test_a_programming_error_shows_the_programs_own_lines_only(twin: Twin, folder: Path) -> None:
    (folder / "helper.py").write_text("def value():\n    return 1 // 0\n")
    program(folder, "import helper\nhelper.value()\n")
    preview = twin.pulumi(folder, "dev", "preview")
    assert preview.rc != 0
    assert "ZeroDivisionError" in preview.stdout
    assert "helper.py" in preview.stdout
    assert "runpy" not in preview.stdout
    assert "executor.py" not in preview.stdout


def test_a_program_that_leaves_by_itself_fails_the_command(twin: Twin, folder: Path) -> None:
    program(folder, "import sys\nsys.exit(3)\n")
    preview = twin.pulumi(folder, "dev", "preview")
    assert preview.rc != 0
    assert "the program ended with exit code 3" in preview.stdout


def test_a_missing_virtual_environment_is_named(twin: Twin, folder: Path) -> None:
    program(folder, "")
    text = "name: small\nruntime: {name: python, options: {virtualenv: nowhere}}\nstackConfigDir: stacks\n"
    (folder / "Pulumi.yaml").write_text(text)
    preview = twin.pulumi(folder, "dev", "preview")
    assert preview.rc != 0
    assert f"{folder}/nowhere/bin/python" in preview.stdout + preview.stderr


# What a policy pack is to the engine: a server of the analyzer protocol, started by the language host.
PACK = """
from concurrent import futures
import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2 as a, analyzer_pb2_grpc as g, plugin_pb2

class Pack(g.AnalyzerServicer):
    def Handshake(self, request, context): return a.AnalyzerHandshakeResponse()
    def GetPluginInfo(self, request, context): return plugin_pb2.PluginInfo(version="1.0.0")
    def Configure(self, request, context): return empty_pb2.Empty()
    def GetAnalyzerInfo(self, request, context):
        policy = a.PolicyInfo(name="sizes", enforcementLevel=a.MANDATORY)
        return a.AnalyzerInfo(name="pack", version="1.0.0", policies=[policy])
    def Analyze(self, request, context):
        if request.type != "kubernetes:core/v1:ConfigMap": return a.AnalyzeResponse()
        text = "no ConfigMap of size " + request.properties["data"]["size"]
        return a.AnalyzeResponse(diagnostics=[a.AnalyzeDiagnostic(policyName="sizes", policyPackName="pack",
            policyPackVersion="1.0.0", message=text, urn=request.urn, enforcementLevel=a.MANDATORY)])
    def AnalyzeStack(self, request, context): return a.AnalyzeResponse()
    def Remediate(self, request, context): return a.RemediateResponse()

server = grpc.server(futures.ThreadPoolExecutor(4))
g.add_AnalyzerServicer_to_server(Pack(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


def test_a_policy_pack_in_python_can_refuse(twin: Twin, folder: Path) -> None:
    pack = folder / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(PACK)
    program(folder, NAMESPACED)
    preview = twin.pulumi(folder, "dev", "preview", "--policy-pack", str(pack))
    assert preview.rc != 0, preview.stdout
    assert "no ConfigMap of size three" in preview.stdout


def test_a_command_that_hangs_is_ended_and_told(twin: Twin, folder: Path) -> None:
    program(folder, "import time\nprint('begun')\ntime.sleep(600)\n")
    with pytest.raises(AssertionError, match="still running after 6 s"):
        twin.pulumi(folder, "dev", "preview", timeout=6)
