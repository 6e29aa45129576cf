"""The map from users' problems to tests names tests that exist, and diagnostics are all shown by some test."""

import re
from pathlib import Path

import yaml

HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text(encoding="utf-8"))


def test_every_case_has_its_tests() -> None:
    for case, names in CASES["handled"].items():
        assert re.fullmatch(r"NV-\d\d", case) and names
        for name in names:
            file, _, test = name.partition("::")
            assert re.search(rf"^def {test}\(", (HERE / file).read_text(encoding="utf-8"), re.M), name


def test_no_case_stands_in_both_lists() -> None:
    assert not set(CASES["handled"]) & set(CASES["elsewhere"])


def test_every_code_of_lint_is_asserted_somewhere() -> None:
    table = Path(__file__).parents[3] / "infra" / "lint" / "codes.yaml"
    known = set(re.findall(r"^(GF\d{3}):", table.read_text(encoding="utf-8"), re.M))
    tested = {c for p in HERE.glob("test_*.py") for c in re.findall(r"GF\d{3}", p.read_text(encoding="utf-8"))}
    assert known - tested == set()


def test_every_code_of_lint_is_used() -> None:
    package = Path(__file__).parents[3] / "infra" / "lint"
    known = set(re.findall(r"^(GF\d{3}):", (package / "codes.yaml").read_text(encoding="utf-8"), re.M))
    sources = [*package.glob("*.py"), package.parent / "cli" / "lint.py"]
    used = {c for p in sources for c in re.findall(r"GF\d{3}", p.read_text(encoding="utf-8"))}
    assert known == used
