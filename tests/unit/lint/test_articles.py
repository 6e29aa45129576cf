"""The shipped walk-throughs: their README says exactly what lint finds."""

import re
from pathlib import Path

from gpufleet.lint import Options, lint
from gpufleet.lint.node import parse_node

EXAMPLES = Path(__file__).parents[3] / "examples" / "articles"
ROW = re.compile(r"^\| (\S+\.yaml) \| (\d+) \| (GF\d{3}) \| (.+) \|$", re.M)


def found(names: list[str], gpus: str) -> list[tuple[str, str, str, str]]:
    options = Options(node=parse_node(gpus), driver="535.183.01")
    report = lint([(name, (EXAMPLES / name).read_text(encoding="utf-8")) for name in names], options)
    return [(x.file or "", str(x.line), x.code, x.message) for x in report.found]


def test_readme_says_what_lint_finds() -> None:
    written = ROW.findall((EXAMPLES / "README.md").read_text(encoding="utf-8"))
    operator = sorted(f"operator/{p.name}" for p in (EXAMPLES / "operator").glob("*.yaml"))
    assert written == found(["aks-time-slicing.yaml"], "1xT4") + found(operator, "2xA100-40GB")


def test_every_shipped_manifest_is_in_the_readme() -> None:
    listed = {row[0] for row in ROW.findall((EXAMPLES / "README.md").read_text(encoding="utf-8"))}
    assert listed == {str(p.relative_to(EXAMPLES)) for p in EXAMPLES.rglob("*.yaml")}
