"""What runs: one JSON file per set of hosts, enough to take everything down from another process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .errors import TwinError


@dataclass
class HostState:
    """One host: identity, scenario, the overlay's lower trees, and the process that runs it."""

    name: str
    address: str
    scenario: str
    lowers: list[str] = field(default_factory=list)
    pid: int = 0
    started: int = 0


@dataclass
class ServerState:
    """The process that serves the package repository."""

    pid: int
    started: int
    port: int


@dataclass
class TwinState:
    """Everything that `down` has to remove."""

    bridge: str
    subnet: str
    hosts: list[HostState] = field(default_factory=list)
    server: ServerState | None = None
    nspawn_args: list[str] = field(default_factory=list)


def path(directory: Path) -> Path:
    """Return the state file of a state folder."""
    return directory / "state.json"


def load(directory: Path) -> TwinState | None:
    """Read the state, or None when nothing runs. Raises TwinError when the file is not one of ours."""
    file = path(directory)
    if not file.exists():
        return None
    try:
        raw: dict[str, Any] = json.loads(file.read_text())
        hosts = [HostState(**entry) for entry in raw["hosts"]]
        server = ServerState(**raw["server"]) if raw.get("server") else None
        return TwinState(raw["bridge"], raw["subnet"], hosts, server, list(raw.get("nspawn_args", [])))
    except (ValueError, KeyError, TypeError) as error:
        raise TwinError(f"{file}: not a state file of the host twin ({error})") from None


def save(directory: Path, state: TwinState) -> None:
    """Write the state in one step, so that a killed run leaves either the old or the new file."""
    directory.mkdir(parents=True, exist_ok=True)
    temporary = path(directory).with_suffix(".new")
    temporary.write_text(json.dumps(asdict(state), indent=2) + "\n")
    temporary.replace(path(directory))
