"""Pulumi for a twin: a home of its own, the plugins that it may use, and the environment of its commands.

The home holds credentials and the selected stack, so each twin has its own. Plugins are links in it to wherever the
programs really are: nothing is copied, and no twin can disturb another. Plugins on PATH are ignored on purpose: in a
twin the name azure-native must mean the stand-in, never the provider that could reach a real subscription.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import yaml

from twin import processes
from twin.controlplane import CHECKOUT
from twin.toolchain import Tools, outside_twins, sdk_version

AZURE = CHECKOUT / "twin" / "azure" / "bin" / "pulumi-resource-azure-native"
LANGUAGE = "pulumi-language-python"


def lay(home: Path, tools: Tools, env: Mapping[str, str] = os.environ) -> None:
    """Lay out ``bin/`` (pulumi and, where it lacks one, a Python language host) and ``pulumi/`` (its home)."""
    binaries = home / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    pulumi = tools.pulumi.resolve()
    if (pulumi.parent / LANGUAGE).exists():
        _link(binaries / "pulumi", pulumi)
    else:
        # Pulumi looks for the host beside its real self, so a symbolic link will not do.
        _hard_link(binaries / "pulumi", pulumi)
        real = shutil.which(LANGUAGE, path=outside_twins(env.get("PATH", "")))
        if real:
            _link(binaries / LANGUAGE, Path(real))
        else:
            _script(binaries / LANGUAGE, CHECKOUT / "twin" / "language" / "server.py")
    plugins = home / "pulumi" / "plugins"
    provider = tools.provider or shutil.which("pulumi-resource-kubernetes", path=env.get("PATH", ""))
    if provider:
        _link(plugins / f"resource-kubernetes-v{sdk_version()}" / "pulumi-resource-kubernetes", Path(provider))
    if AZURE.exists():
        version = metadata.version("pulumi_azure_native")
        _script(plugins / f"resource-azure-native-v{version}" / AZURE.name, AZURE)


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _hard_link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(target)
    except OSError:  # another file system
        shutil.copy2(target, path)


def _script(path: Path, program: Path) -> None:
    """Write a command that runs a Python file of the checkout with the Python that runs this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{program}' \"$@\"\n")
    path.chmod(0o755)


@contextmanager
def salt_kept_out(stack_file: Path) -> Iterator[None]:
    """Put a stack file back as it was when all that a command did to it was to add the salt of the passphrase.

    Pulumi writes ``encryptionsalt`` on the first command and lays out the file anew with it. In a twin the passphrase
    is no secret and the state knows the salt, so that a checkout need not change by being tried out.
    """
    before = stack_file.read_bytes() if stack_file.exists() else None
    try:
        yield
    finally:
        if before is not None and stack_file.exists() and (after := stack_file.read_bytes()) != before:
            old, new = yaml.safe_load(before) or {}, yaml.safe_load(after) or {}
            if "encryptionsalt" not in old and {k: v for k, v in new.items() if k != "encryptionsalt"} == old:
                stack_file.write_bytes(before)


def drop_dead_locks(state: Path) -> list[Path]:
    """Remove the stack locks of Pulumi commands of this machine that were killed; return those removed.

    ``state`` is a file backend's folder. Pulumi itself keeps such a lock until somebody cancels it.
    """
    dropped = []
    for path in state.glob(".pulumi/locks/**/*.json"):
        try:
            lock = json.loads(path.read_text())
            dead = lock["hostname"] == socket.gethostname() and processes.start_time(int(lock["pid"])) is None
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if dead:
            path.unlink(missing_ok=True)
            dropped.append(path)
    return dropped


def variables(home: Path, kubeconfig: Path, state: Path, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what a twin's commands need in their environment, beside what is there.

    ``home`` is a folder that `lay` laid out, ``state`` that of the stacks' state and, beside it, of the stand-in for
    Azure; each project of tests has its own.
    """
    helm = home / "helm"
    no_proxy = ",".join(part for part in (env.get("NO_PROXY") or env.get("no_proxy"), "127.0.0.1", "localhost") if part)
    return {
        "PATH": os.pathsep.join([str(home / "bin"), str(Path(sys.executable).parent), env.get("PATH", "")]),
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "twin",
        "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
        "GPUFLEET_OPERATOR_CHART": str(CHECKOUT / "twin" / "chart" / "gpu-operator"),
        "KUBECONFIG": str(kubeconfig),
        "GPUFLEET_KUBECONFIG": str(kubeconfig),
        "TWIN_KUBECONFIG": str(kubeconfig),
        "TWIN_AZURE_STATE": str(state.parent / "azure-state.json"),
        "TWIN_AZURE_LOG": str(state.parent / "azure-log.jsonl"),
        "TWIN_AZURE_CONTROL": str(state.parent / "azure-control.json"),
        "HELM_CACHE_HOME": str(helm / "cache"),
        "HELM_CONFIG_HOME": str(helm / "config"),
        "HELM_DATA_HOME": str(helm / "data"),
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }
