"""The login program of a kubeconfig: run once, with a limit, and in plain words where it gives nothing."""

from __future__ import annotations

import json
import logging
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.cli.main import main
from gpufleet.places import credentials
from gpufleet.places.credentials import LoginError, with_credentials
from gpufleet.places.existing.in_use import check_in_use
from gpufleet.status.observe import Cluster

from tests.api_standin import ApiStandIn, serving
from tests.unit.config.samples import compile_base, sections, stack_text

TOKEN = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "s3cr3t"}}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(credentials, "LIMIT_SECONDS", 2)
    monkeypatch.setattr(credentials, "SAY_AFTER_SECONDS", 0.5)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)


def program(folder: Path, script: str, name: str = "kubelogin") -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def kubeconfig(url: str = "http://127.0.0.1:1", **entry: Any) -> dict[str, Any]:
    given = {"apiVersion": "client.authentication.k8s.io/v1", "command": "kubelogin", **entry}
    return {
        "apiVersion": "v1",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": given}}],
        "current-context": "c",
    }


def failure(config: dict[str, Any]) -> LoginError:
    with pytest.raises(LoginError) as raised:
        with_credentials(config, None, lambda _: None)
    return raised.value


def test_rp_44_a_program_that_is_missing() -> None:
    error = failure(kubeconfig(args=["get-token", "--login", "devicecode"]))
    assert error.code == "GF491"
    assert str(error).startswith("the kubeconfig calls kubelogin, which is not there; install kubelogin here")
    assert "its login devicecode waits for a person: on a runner use --login azurecli" in str(error)


@pytest.mark.parametrize(
    ("args", "way"),
    [
        (["get-token", "--login", "devicecode"], "devicecode"),
        (["get-token", "--login=interactive"], "interactive"),
        (["get-token", "-l", "interactive"], "interactive"),
        (["get-token"], "devicecode"),
    ],
)
def test_rp_44_a_login_that_waits_for_a_person(tmp_path: Path, args: list[str], way: str) -> None:
    program(tmp_path, "echo 'open https://microsoft.com/devicelogin' >&2; sleep 30")
    start = time.monotonic()
    error = failure(kubeconfig(args=args))
    assert error.code == "GF492"
    assert f"has not answered within 2 s: its login {way} waits for a person" in error.why
    assert "--login azurecli, msi, spn, workloadidentity" in error.do
    assert time.monotonic() - start < 8


def test_a_login_that_has_its_token_already_is_used_whatever_its_way(tmp_path: Path) -> None:
    program(tmp_path, f"echo '{json.dumps(TOKEN)}'")
    changed = with_credentials(kubeconfig(args=["get-token", "--login", "devicecode"]), None, print)
    assert changed["users"][0]["user"] == {"token": "s3cr3t"}


def test_rp_51_a_program_that_does_not_answer(tmp_path: Path) -> None:
    said: list[str] = []
    start = time.monotonic()
    with pytest.raises(LoginError) as raised:
        with_credentials(kubeconfig(command="sleep", args=["25"]), None, said.append)
    assert raised.value.code == "GF492"
    assert "sleep, the login program of the kubeconfig, has not answered within 2 s" in str(raised.value)
    assert said == ["waiting for sleep, the login program of the kubeconfig, for up to 2 s"]
    assert time.monotonic() - start < 8


def test_what_the_program_started_ends_with_it(tmp_path: Path) -> None:
    program(tmp_path, f"(sleep 4; touch {tmp_path}/late) & sleep 30")
    failure(kubeconfig())
    time.sleep(3)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'not logged in' >&2; exit 3", "kubelogin of the kubeconfig ended with code 3: not logged in"),
        ("echo hello", "prints no token and no certificate"),
        ("echo '{\"status\": {}}'", "prints no token and no certificate"),
    ],
)
def test_a_program_that_gives_nothing(tmp_path: Path, script: str, says: str) -> None:
    program(tmp_path, script)
    error = failure(kubeconfig(args=["get-token", "--client-secret", "hunter"]))
    assert error.code == "GF493"
    assert says in str(error)
    assert "try `kubelogin get-token` by hand" in str(error)
    assert "hunter" not in str(error)


def test_a_program_that_wants_a_terminal_is_not_run_without_one(tmp_path: Path) -> None:
    program(tmp_path, f"touch {tmp_path}/ran")
    assert failure(kubeconfig(interactiveMode="Always")).code == "GF492"
    assert not (tmp_path / "ran").exists()


def test_the_program_gets_what_the_kubeconfig_says(tmp_path: Path) -> None:
    certificate = {"status": {"clientCertificateData": "CERT", "clientKeyData": "KEY"}}
    program(tmp_path, f"echo \"$KUBERNETES_EXEC_INFO\" > {tmp_path}/info; echo $WHO > {tmp_path}/who\n"
                      f"echo '{json.dumps(certificate)}'")  # fmt: skip
    config = kubeconfig(provideClusterInfo=True, env=[{"name": "WHO", "value": "me"}])
    user = with_credentials(config, None, print)["users"][0]["user"]
    assert (b64decode(user["client-certificate-data"]), b64decode(user["client-key-data"])) == (b"CERT", b"KEY")
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"] == {"interactive": False, "cluster": {"server": "http://127.0.0.1:1"}}
    assert (tmp_path / "who").read_text() == "me\n"
    assert "exec" in config["users"][0]["user"], "what was given is left as it is"


def test_a_kubeconfig_without_a_program_is_left_alone() -> None:
    config = kubeconfig()
    config["users"][0]["user"] = {"token": "t"}
    assert with_credentials(config, None, print) is config


# --- in status, and before a change


def status(tmp_path: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stack.yaml").write_text(stack_text(sections("existing-plugin")))
    (tmp_path / "idc.conf").write_text(yaml.safe_dump(config))
    return main(["status", "-f", "stack.yaml"])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("kubelogin", "gpufleet: the kubeconfig calls kubelogin, which is not there; install kubelogin here"),
        ("sleep", "gpufleet: waiting for sleep, the login program of the kubeconfig, for up to 2 s\ngpufleet: sleep,"
                  " the login program of the kubeconfig, has not answered within 2 s"),
    ],
)  # fmt: skip
def test_rp_44_rp_51_status_says_so_and_ends_with_two(
    command: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with caplog.at_level(logging.WARNING):
        assert status(tmp_path, kubeconfig(command=command, args=["25"]), monkeypatch) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith(says)
    assert not caplog.records, "no raw lines of the client library"


@pytest.mark.parametrize(("command", "code"), [("kubelogin", "GF491"), ("sleep", "GF492"), ("false", "GF493")])
def test_rp_44_rp_51_the_look_before_a_change_says_so(command: str, code: str) -> None:
    plan = compile_base("existing-plugin").plan
    assert plan is not None
    _, found = check_in_use(plan, yaml.safe_dump(kubeconfig(command=command, args=["25"])), None, lambda _: None)
    assert [(d.code, d.path, d.value) for d in found] == [(code, "cluster.kubeconfig", command)]


def test_a_token_that_has_run_out_is_asked_for_again(tmp_path: Path) -> None:
    script = f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {tmp_path}/n\n"
    program(tmp_path, script + 'echo "{\\"status\\": {\\"token\\": \\"t$n\\"}}"')
    server: ApiStandIn
    with serving(nodes=[{"metadata": {"name": "n1"}}]) as server:
        server.tokens = {"t1"}
        cluster = Cluster(kubeconfig(server.url), None, print)
        assert list(cluster.observe().nodes) == ["n1"]
        server.tokens = {"t2"}
        assert list(cluster.observe().nodes) == ["n1"]
    assert (tmp_path / "n").read_text() == "2\n"
