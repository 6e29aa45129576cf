"""The wheel, and environments that hold it with what its metadata asks for and nothing else.

Packages come from the environment that runs the tests, as links: nothing is downloaded, and what an install would bring
is known from the metadata all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
NEVER = {"..", "__pycache__"}


def build_wheel(folder: Path) -> Path:
    """Builds the wheel from a copy of the sources, so that nothing is left in the checkout and nothing old gets in."""
    source = folder / "source"
    shutil.copytree(ROOT / "infra", source / "infra", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and what is installed in it."""

    folder: Path
    packages: dict[str, Distribution]

    def size(self) -> int:
        """Bytes of the installed files, without their compiled copies."""
        return sum(map(_size, self.packages.values()))

    def run(self, *words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, with no other Python path."""
        command = [self.folder / "bin" / words[0], *words[1:]]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GPUFLEET", "KUBE", "ANSIBLE"))}
        return subprocess.run(
            command, cwd=cwd, env={**clean, **env}, capture_output=True, text=True, check=False, timeout=120
        )


def make_environment(folder: Path, wheel: Path, extra: str = "") -> Environment:
    """An environment with the wheel and, of the running environment's packages, those that this install asks for."""
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    _pip("--python", str(folder / "bin" / "python"), "install", "--no-index", "--no-deps", str(wheel))
    own = PathDistribution(next(site.glob("gpufleet-*.dist-info")))
    found = _closure(own, extra)
    for one in found.values():
        for name in {file.parts[0] for file in one.files or ()} - NEVER:
            target = Path(str(one.locate_file(name)))
            if target.exists() and not (site / name).exists():
                (site / name).symlink_to(target)
    return Environment(folder, {"gpufleet": own, **found})


def _closure(own: Distribution, extra: str) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    wanted = [(own, extra)]
    while wanted:
        one, asked = wanted.pop()
        for text in one.requires or ():
            need = Requirement(text)
            if need.marker and not need.marker.evaluate({"extra": asked}):
                continue
            name = canonicalize_name(need.name)
            part = own if name == canonicalize_name(own.metadata["Name"]) else distribution(name)
            if part is not own:
                found[name] = part
            for more in need.extras or {""}:
                if (name, more) not in seen:
                    seen.add((name, more))
                    wanted.append((part, more))
    return found


def _size(one: Distribution) -> int:
    places = (Path(str(one.locate_file(file))) for file in one.files or () if file.suffix != ".pyc")
    return sum(place.stat().st_size for place in places if place.is_file())
