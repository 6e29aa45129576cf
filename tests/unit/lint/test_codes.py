"""Every code of lint is used, and asserted by some test."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_code_of_lint_is_asserted_somewhere() -> None:
    table = Path(__file__).parents[3] / "infra" / "gpufleet" / "lint" / "codes.yaml"
    known = set(re.findall(r"^(GF\d{3}):", table.read_text(encoding="utf-8"), re.M))
    tested = {c for p in HERE.glob("test_*.py") for c in re.findall(r"GF\d{3}", p.read_text(encoding="utf-8"))}
    assert known - tested == set()


def test_every_code_of_lint_is_used() -> None:
    package = Path(__file__).parents[3] / "infra" / "gpufleet" / "lint"
    known = set(re.findall(r"^(GF\d{3}):", (package / "codes.yaml").read_text(encoding="utf-8"), re.M))
    sources = [*package.glob("*.py"), package.parent / "cli" / "lint.py"]
    used = {c for p in sources for c in re.findall(r"GF\d{3}", p.read_text(encoding="utf-8"))}
    assert known == used
