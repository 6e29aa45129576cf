"""The login program of a kubeconfig: run once, with a limit, before anything else speaks to the cluster.

A user entry may name a program (`exec`) that prints a token. The client library runs it without a limit and goes on
without a token when it fails. Here each of these ends in plain words.
Source: kubernetes.io/docs/reference/access-authn-authz/authentication, client-go credential plugins.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from gpufleet.catalog import ExecLogin, exec_logins

#: How long the program may take where nobody is asked for anything; with a person at the terminal.
LIMIT_SECONDS, PERSON_SECONDS = 15, 180
#: When it is said what is waited for.
SAY_AFTER_SECONDS = 2

Say = Callable[[str], None]


class LoginError(Exception):
    """The login program gives no credentials. `code` is the rule; the other fields fill its texts."""

    def __init__(self, code: str, program: str, why: str, do: str) -> None:
        super().__init__(f"{why}; {do}")
        self.code, self.program, self.why, self.do = code, program, why, do


def exec_entry(kubeconfig: Mapping[str, Any], context: str | None) -> Mapping[str, Any] | None:
    """The `exec` of the user that the context names; None where there is none."""
    user = _user(kubeconfig, context)
    found = user.get("exec") if user is not None else None
    return found if isinstance(found, dict) and found.get("command") else None


def with_credentials(kubeconfig: dict[str, Any], context: str | None, say: Say) -> dict[str, Any]:
    """The kubeconfig with what its login program prints in place of the program; as it is where it has none.

    `say` is told what is waited for.

    Raises:
        LoginError: the program is missing, waits for a person, does not answer in time, or prints no credentials.
    """
    entry = exec_entry(kubeconfig, context)
    if entry is None:
        return kubeconfig
    status = _run(entry, _cluster(kubeconfig, context), say)
    changed = copy.deepcopy(kubeconfig)
    user = _user(changed, context)
    if user is not None:
        user.pop("exec")
        if status.get("token"):
            user["token"] = status["token"]
        if status.get("clientCertificateData"):
            user["client-certificate-data"] = _base64(status["clientCertificateData"])
            user["client-key-data"] = _base64(status.get("clientKeyData", ""))
    return changed


def _user(kubeconfig: Mapping[str, Any], context: str | None) -> dict[str, Any] | None:
    chosen = _named(kubeconfig, "contexts", "context", context or kubeconfig.get("current-context"))
    return _named(kubeconfig, "users", "user", chosen.get("user")) if chosen else None


def _cluster(kubeconfig: Mapping[str, Any], context: str | None) -> Mapping[str, Any]:
    chosen = _named(kubeconfig, "contexts", "context", context or kubeconfig.get("current-context")) or {}
    return _named(kubeconfig, "clusters", "cluster", chosen.get("cluster")) or {}


def _named(kubeconfig: Mapping[str, Any], section: str, part: str, name: object) -> dict[str, Any] | None:
    for one in kubeconfig.get(section) or ():
        if isinstance(one, dict) and one.get("name") == name and isinstance(one.get(part), dict):
            found: dict[str, Any] = one[part]
            return found
    return None


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _run(entry: Mapping[str, Any], cluster: Mapping[str, Any], say: Say) -> dict[str, Any]:
    program = str(entry["command"])
    command = shutil.which(program)
    if command is None:
        do = f"install {program} here, or use a kubeconfig with a token or a certificate"
        if asks := _login_that_waits(program, entry):
            do += f"; its login {asks.way} waits for a person: on a runner use {asks.others}"
        raise LoginError("GF491", program, f"the kubeconfig calls {program}, which is not there", do)
    person = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    if entry.get("interactiveMode") == "Always" and not person:
        raise _waits(program, "wants a terminal (interactiveMode: Always), and here is none", entry)
    info = {"interactive": person and entry.get("interactiveMode") != "Never"}
    if entry.get("provideClusterInfo"):
        info["cluster"] = _cluster_info(cluster)
    text = {"apiVersion": entry.get("apiVersion"), "kind": "ExecCredential", "spec": info}
    own = {str(e["name"]): str(e["value"]) for e in entry.get("env") or () if isinstance(e, dict) and "name" in e}
    process = subprocess.Popen(
        [command, *map(str, entry.get("args") or ())],
        env={**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(text)},
        stdin=None if person else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if person else subprocess.PIPE,
        text=True,
        start_new_session=not person,  # so that what it starts ends with it; at a terminal it must keep the terminal
    )
    out, err = _answer(process, program, PERSON_SECONDS if person else LIMIT_SECONDS, entry, say)
    if process.returncode != 0:
        last = (err or "").strip().splitlines()[-1:] or ["no message"]
        raise LoginError(
            "GF493",
            program,
            f"{program} of the kubeconfig ended with code {process.returncode}: {last[0]}",
            f"try `{_shown(program, entry)}` by hand",
        )
    return _status(out, program, entry)


def _answer(
    process: subprocess.Popen[str], program: str, limit: int, entry: Mapping[str, Any], say: Say
) -> tuple[str, str | None]:
    try:
        return process.communicate(timeout=SAY_AFTER_SECONDS)
    except subprocess.TimeoutExpired:
        say(f"waiting for {program}, the login program of the kubeconfig, for up to {limit} s")
    try:
        return process.communicate(timeout=limit - SAY_AFTER_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # what it started may hold the pipe
            process.communicate(timeout=2)
        raise _waits(program, f"has not answered within {limit} s", entry) from None


def _waits(program: str, what: str, entry: Mapping[str, Any]) -> LoginError:
    login = _login_that_waits(program, entry)
    if login:
        why = f"its login {login.way} waits for a person"
        do = f"log in by hand before, or use another login: {login.others}"
    else:
        why, do = "", f"try `{_shown(program, entry)}` by hand; a runner needs a login that asks nobody"
    return LoginError(
        "GF492", program, f"{program}, the login program of the kubeconfig, {what}" + (f": {why}" if why else ""), do
    )


class _Waiting(NamedTuple):
    """A login that asks a person, and those that do not."""

    way: str
    others: str


def _login_that_waits(program: str, entry: Mapping[str, Any]) -> _Waiting | None:
    login = exec_logins().get(Path(program).name)
    way = _way(login, [str(word) for word in entry.get("args") or ()]) if login else None
    return _Waiting(way, f"{login.option} {', '.join(login.others)}") if login and way in login.waits else None


def _way(login: ExecLogin, args: list[str]) -> str:
    for word, after in pairwise([*args, ""]):
        if word in (login.option, login.short):
            return after
        if word.startswith(f"{login.option}="):
            return word.partition("=")[2]
    return login.default


def _shown(program: str, entry: Mapping[str, Any]) -> str:
    """The program and its subcommand: further arguments may hold secrets."""
    first = [str(word) for word in (entry.get("args") or ())[:1]]
    return " ".join([program, *(word for word in first if re.fullmatch(r"[a-z][a-z-]*", word))])


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    names = {"server": "server", "tls-server-name": "tls-server-name", "proxy-url": "proxy-url",
             "insecure-skip-tls-verify": "insecure-skip-tls-verify",
             "certificate-authority-data": "certificate-authority-data"}  # fmt: skip
    info = {there: cluster[here] for here, there in names.items() if here in cluster}
    for one in cluster.get("extensions") or ():
        if isinstance(one, dict) and one.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = one.get("extension")
    return info


def _status(out: str, program: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    try:
        data = json.loads(out)
    except ValueError:
        data = None
    status = data.get("status") if isinstance(data, dict) else None
    if not isinstance(status, dict) or not (status.get("token") or status.get("clientCertificateData")):
        raise LoginError(
            "GF493",
            program,
            f"{program}, the login program of the kubeconfig, prints no token and no certificate",
            f"try `{_shown(program, entry)}` by hand",
        )
    return status
