"""`gpufleet catalog`: old rows, tables for people, and what the command loads."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from gpufleet.catalog import CatalogError, check, reading
from gpufleet.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty catalogue."""
    monkeypatch.setattr(reading.STANDARD, "directory", tmp_path)
    monkeypatch.setattr(reading.STANDARD, "kept", {})
    yield tmp_path


def write(folder: Path, *rows: str) -> None:
    (folder / "things.yaml").write_text("things:\n" + "".join(f"  - {row}\n" for row in rows))


@pytest.mark.parametrize(
    ("day", "months", "before"),
    [("2026-11-30", 0, "2026-11-30"), ("2026-11-30", 6, "2026-05-30"), ("2026-11-30", 9, "2026-02-28"),
     ("2024-03-31", 1, "2024-02-29"), ("2026-01-15", 1, "2025-12-15"), ("2026-12-31", 13, "2025-11-30"),
     ("2026-11-05", 24, "2024-11-05")],
)  # fmt: skip
def test_months_before(day: str, months: int, before: str) -> None:
    assert check.months_before(date.fromisoformat(day), months) == date.fromisoformat(before)


def test_old_rows_are_found_oldest_first(folder: Path) -> None:
    write(
        folder,
        '{id: new, source: a, as_of: "2026-11-01"}',
        '{id: edge, source: a, as_of: "2026-05-30"}',
        '{id: old, source: a, as_of: "2026-05-29"}',
        '{id: month, source: b, as_of: "2026-05"}',
    )
    old = check.old_rows(date(2026, 11, 30), 6)
    assert [(row.row, row.as_of, row.source) for row in old] == [("month", "2026-05", "b"), ("old", "2026-05-29", "a")]


def test_the_exit_code_says_whether_rows_are_old(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, '{id: ancient, source: somewhere, as_of: "2020-01"}')
    assert main(["catalog", "check", "--months", "12"]) == 1
    out = capsys.readouterr().out
    assert "2020-01" in out
    assert "things.yaml things: ancient  (somewhere)" in out
    assert "1 row is older than 12 months." in out
    assert main(["catalog", "check", "--months", "100000"]) == 0
    assert "No row is older" in capsys.readouterr().out


def test_check_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, '{id: ancient, source: somewhere, as_of: "2020-01"}')
    assert main(["catalog", "check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {"file": "things", "table": "things", "row": "ancient", "as_of": "2020-01", "source": "somewhere"}
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [('{id: x, as_of: "2026-11"}', "no source"), ("{id: x, source: a}", "no as_of"),
     ('{id: x, source: a, as_of: "2026-13"}', "is no date"), ("{id: x, source: a, as_of: 2026-11-30}", "no as_of"),
     ("just text", "not a mapping"), ("{id: x", "things.yaml")],
)  # fmt: skip
def test_a_broken_table_is_a_message_and_no_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str], row: str, message: str
) -> None:
    write(folder, row)
    assert main(["catalog", "check"]) == 2
    assert message in capsys.readouterr().err


def test_shipped_rows_all_have_dates() -> None:
    assert len(check.old_rows(date(2100, 1, 1), 0)) == sum(1 for file, *_ in reading.every_row() if file != "sources")


def test_show_prints_a_table_and_names_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "aks_versions"]) == 0
    assert "1.36\n  eol: 2027-06\n" in capsys.readouterr().out
    assert main(["catalog", "show", "gpu_model"]) == 2
    assert "gpu_models" in capsys.readouterr().err
    assert main(["catalog", "show"]) == 0
    assert "mig_tables" in capsys.readouterr().out
    assert main(["catalog", "show", "cuda", "--json"]) == 0
    shown = set(json.loads(capsys.readouterr().out))
    assert shown == {"cuda_min_driver", "cuda_full_driver", "cuda_images", "cuda_compat", "cuda_notes"}


def test_usage_errors_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "--months", "x"], ["check", "--months", "-1"], ["sho"], []):
        with pytest.raises(SystemExit) as caught:
            main(["catalog", *words])
        assert caught.value.code == 2
    assert "is not a number of months" in capsys.readouterr().err


def test_a_load_of_everything_imports_no_sdk() -> None:
    """Starting `gpufleet plan` must stay cheap, so the catalogue needs nothing but a YAML parser."""
    program = (
        "import sys, gpufleet.catalog as c\n"
        "for name in c.__all__:\n"
        "    if name.endswith('s') and name[0].islower() and name != 'azure_native_fields': getattr(c, name)()\n"
        "heavy = ['pulumi', 'pulumi_azure_native', 'pulumi_kubernetes', 'kubernetes', 'ansible', 'pydantic']\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in heavy))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_tables_cannot_be_changed_through_the_accessors() -> None:
    from gpufleet.catalog import azure_sizes, gpu_models

    with pytest.raises(TypeError):
        azure_sizes()["x"] = None  # type: ignore[index]
    with pytest.raises(TypeError):
        gpu_models()["H200"].mig_profiles["1g.18gb"] = 8  # type: ignore[index]


def test_an_unreadable_table_raises_our_error(folder: Path) -> None:
    (folder / "things.yaml").write_text("- a list\n")
    with pytest.raises(CatalogError, match="not a mapping"):
        reading.load("things")
