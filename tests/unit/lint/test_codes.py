"""Every rule of lint is used, and asserted by some test beside its examples."""

import re
from pathlib import Path

from gpufleet.findings.registry import rules

HERE = Path(__file__).parent
KNOWN = {code for code in rules() if code[2] in "56"}


def test_every_rule_of_lint_is_asserted_somewhere() -> None:
    tested = {c for p in HERE.glob("test_*.py") for c in re.findall(r"GF\d{3}", p.read_text(encoding="utf-8"))}
    assert KNOWN - tested == set()


def test_every_rule_of_lint_is_used() -> None:
    package = HERE.parents[2] / "infra" / "gpufleet"
    sources = [*(package / "lint").glob("*.py"), package / "cli" / "lint.py"]
    used = {c for p in sources for c in re.findall(r"GF\d{3}", p.read_text(encoding="utf-8"))}
    assert used >= KNOWN
    assert used <= set(rules())  # rules of the stack count for the same thing in YAML
