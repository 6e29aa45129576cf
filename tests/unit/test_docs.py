"""The pages say what is there: links, codes, numbers, and stack-file lines that work."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.catalog import cuda_min_driver, known_bad
from gpufleet.findings.registry import rules

from tests.unit.config.samples import compile_base, told

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
CASE = re.compile(r"\b(?:NV|AZ|BM)-\d\d\b")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = [
        target
        for target, _ in LINK.findall(text(page))
        if "://" not in target and not (page.parent / target).exists() and target != "docs/benchmarks.md"
    ]
    assert wrong == []  # docs/benchmarks.md is written by `make bench WRITE=--write`


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_codes_exist(page: Path) -> None:
    said = re.sub(r"GF\d{3} to GF\d{3}", "", text(page))  # a range ends where there is room left
    assert set(re.findall(r"\bGF\d{3}\b", said)) - set(rules()) == set()


def blocks(name: str) -> list[dict[str, Any]]:
    """Indented blocks of a page that begin with a section of a stack file."""
    found, lines = [], []
    for line in [*text(ROOT / "docs" / name).splitlines(), "end"]:
        if line.startswith("    ") or (lines and not line.strip()):
            lines.append(line)
            continue
        block = textwrap.dedent("\n".join(lines))
        if block.startswith("gpufleet:"):
            found.append(yaml.safe_load(block))
        lines = []
    return found


@pytest.mark.parametrize("name", ["sharing.md", "mig.md"])
def test_profiles_of_the_pages_work(name: str) -> None:
    profiles = [(k, v) for block in blocks(name) for k, v in block["gpufleet:sharing"].items()]
    assert profiles
    for key, profile in profiles:
        changes = {f"sharing.{key}": profile, "pools[0].sharing": key, "pools[0].gpu": "A100-SXM4-80GB"}
        assert told(compile_base("existing-plugin", changes)) == []


def test_the_team_of_the_cuda_page_works() -> None:
    [block] = blocks("cuda.md")
    second = {"name": "a100", "hosts": {"n2": {}}, "gpu": "A100-SXM4-80GB", "gpusPerNode": 1, "driverBranch": "580"}
    changes = {"teams": block["gpufleet:teams"], "pools[0].driverBranch": "580", "pools[1]": second}
    assert told(compile_base("existing-plugin", changes)) == []


def test_figures_of_the_pages_are_those_of_the_tables() -> None:
    cuda, mig = text(ROOT / "docs" / "cuda.md"), " ".join(text(ROOT / "docs" / "mig.md").split())
    assert all(driver in cuda for driver in cuda_min_driver().values())
    for row in known_bad():
        assert "mig" not in row.applies or (row.last is not None and row.last in mig)


def test_the_number_of_findings_of_the_examples() -> None:
    rows = text(ROOT / "examples" / "articles" / "README.md").splitlines()
    first = sum(row.startswith("| aks-time-slicing.yaml |") for row in rows)
    second = sum(row.startswith("| operator/") for row in rows)
    page = " ".join(text(ROOT / "docs" / "your-yaml.md").split())
    assert f"where it means four: {first} findings" in page and f"does not exist: {second} findings" in page


def test_every_case_has_its_row_with_a_public_thread() -> None:
    rows = dict(re.findall(r"^\| <a id=\"([a-z]{2}-\d\d)\"></a>(.*)$", text(ROOT / "docs" / "cases.md"), re.MULTILINE))
    for case, row in rows.items():
        assert row.startswith(f"{case.upper()} | ") and "](https://github.com/" in row
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    if not files:
        pytest.skip("no git checkout")
    used = {case for file in files if file.is_file() for case in CASE.findall(file.read_text("utf-8", "replace"))}
    assert {case.lower() for case in used} - set(rows) == set()
