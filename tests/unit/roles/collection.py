"""The collection built, installed in an empty folder, and used there with nothing of the checkout's configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
LIMIT = 300  # seconds; a command takes two


def command(
    folder: Path, program: str, *words: str, limit: int = LIMIT, **env: str
) -> subprocess.CompletedProcess[str]:
    """A program of Ansible, run in a folder whose `collections` is the only place for collections."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    config = folder / "ansible.cfg"
    config.touch()
    full = {
        **kept,
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        **env,
    }
    line = [str(BIN / program), *words]
    return subprocess.run(line, cwd=folder, env=full, capture_output=True, text=True, timeout=limit, check=False)


def must(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """The same, when it ended well."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def build(folder: Path, source: Path = ROOT) -> Path:
    """The tarball of the collection."""
    must(command(folder, "ansible-galaxy", "collection", "build", str(source), "--output-path", str(folder)))
    [tarball] = folder.glob("gpufleet-hosts-*.tar.gz")
    return tarball


def install(folder: Path, source: str) -> Path:
    """The collection installed in `folder` from a tarball or a git address; where it lies."""
    words = ("collection", "install", source, "--offline", "--no-deps", "-p", str(folder / "collections"))
    must(command(folder, "ansible-galaxy", *words))
    return folder / "collections/ansible_collections/gpufleet/hosts"
