"""Tests of the tests: a fault in what `plan` prints or in what HAMi is told makes the right tests go red.

`pytest tests/mutations -m long` runs them; table.yaml holds the faults. A failure says "survived" where no test saw the
fault, and "not found" where the code has moved away from the table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: What the tests need of the checkout.
PARTS = ("infra", "tests", "stacks", "twin", "__main__.py", "Pulumi.yaml", "pyproject.toml")
PACKAGE = Path("infra/gpufleet")


@dataclass(frozen=True)
class Mutation:
    """One fault: in `file`, `new` instead of `old`; one of the tests `by` fails."""

    name: str
    by: tuple[str, ...]
    file: str
    old: str
    new: str


GROUPS = yaml.safe_load((HERE / "table.yaml").read_text(encoding="utf-8"))
MUTATIONS = [
    Mutation(f"{group}: {name}", tuple(rows["by"]), **row)
    for group, rows in GROUPS.items()
    for name, row in rows["mutations"].items()
]


def passes(folder: Path, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Whether tests pass in a copy of the checkout, and what pytest says. No compiled file outlives its text."""
    options = ("-q", "-x", "--no-header", "--durations=0", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy in which all those tests pass."""
    folder = tmp_path_factory.mktemp("mutations")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__", "tools"))
        else:
            shutil.copy(source, folder / part)
    fine, said = passes(folder, tuple(dict.fromkeys(test for m in MUTATIONS for test in m.by)))
    assert fine, f"these tests have to pass without a fault\n{said}"
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_is_seen(mutation: Mutation, copy: Path) -> None:
    path = copy / PACKAGE / mutation.file
    assert path.is_file(), f"not found: {PACKAGE / mutation.file}; correct table.yaml"
    text = path.read_text(encoding="utf-8")
    times = text.count(mutation.old)
    assert times == 1, f"not found: {mutation.old!r} stands {times} times in {mutation.file}; correct table.yaml"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        survived, _ = passes(copy, mutation.by)
    finally:
        path.write_text(text, encoding="utf-8")
    assert not survived, f"survived: {' '.join(mutation.by)} passes with {mutation.new!r} instead of {mutation.old!r}"
