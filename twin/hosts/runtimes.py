"""Container runtimes on a host: Debian's real containerd is a layer; the others are stand-ins with files and units."""

from __future__ import annotations

from pathlib import Path

from .payloads import tool

UNIT = """[Unit]
Description={title}
After=network.target twin-boot.service

[Service]
Type=notify
NotifyAccess=all
ExecStart={command}
ExecReload=/bin/kill -s HUP $MAINPID
Restart=no

[Install]
WantedBy=multi-user.target
"""


def install(tree: Path, runtime: str) -> None:
    """Put a stand-in runtime into a host's tree: program, unit (enabled), configuration."""
    if runtime in ("k3s", "rke2"):
        folder = {"k3s": "usr/local/bin", "rke2": "usr/local/bin"}[runtime]
        _program(tree, f"{folder}/{runtime}", runtime)
        unit = {"k3s": "k3s-agent", "rke2": "rke2-agent"}[runtime]
        _unit(tree, unit, "Lightweight Kubernetes" if runtime == "k3s" else "Rancher Kubernetes Engine v2 (agent)",
              f"/usr/local/bin/{runtime} agent")  # fmt: skip
        _file(tree, f"etc/rancher/{runtime}/config.yaml", "server: https://127.0.0.1:6443\n")
        _file(tree, f"etc/systemd/system/{unit}.service.env", "")
    elif runtime == "crio":
        _program(tree, "usr/bin/crio", "crio")
        _unit(tree, "crio", "Container Runtime Interface for OCI (CRI-O)", "/usr/bin/crio")
        _file(tree, "etc/crio/crio.conf", '[crio.runtime]\ndefault_runtime = "runc"\n')
        (tree / "etc/crio/crio.conf.d").mkdir(parents=True, exist_ok=True)
    elif runtime == "docker":
        _program(tree, "usr/bin/dockerd", "dockerd")
        _program(tree, "usr/bin/docker", "docker")
        _unit(tree, "docker", "Docker Application Container Engine", "/usr/bin/dockerd")
        (tree / "etc/docker").mkdir(parents=True, exist_ok=True)


def _program(tree: Path, path: str, name: str) -> None:
    target = tree / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(tool(name).content)
    target.chmod(0o755)


def _file(tree: Path, path: str, content: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(content)


def _unit(tree: Path, name: str, title: str, command: str) -> None:
    _file(tree, f"etc/systemd/system/{name}.service", UNIT.format(title=title, command=command))
    enable(tree, f"{name}.service", f"/etc/systemd/system/{name}.service")


def enable(tree: Path, unit: str, target: str) -> None:
    """Enable a unit for multi-user.target."""
    wants = tree / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit).unlink(missing_ok=True)
    (wants / unit).symlink_to(target)
