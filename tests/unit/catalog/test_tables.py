"""Every row of every table: source, date, types, no duplicates."""

import re
from datetime import date

import pytest
from gpufleet.catalog import CatalogError, reading

TABLES = [(file, table) for file in reading.files() for table in reading.load(file)]
every_table = pytest.mark.parametrize(("file", "table"), TABLES, ids=[f"{file}:{table}" for file, table in TABLES])

#: What makes a row one of its table, where its first key alone does not.
KEYS = {
    "container_runtimes": ("plugin", "toolkit", "cdi", "nri"),
    "neighbour_words": ("word", "at"),
    "operator_system_tags": ("family", "first", "os_first"),
    "pci_gpus": ("device", "subsystem"), "signing_keys": ("use", "fingerprint", "short_id"),
}


def test_there_are_tables() -> None:
    wanted = {"azure_sizes", "gpus", "mig", "architectures", "driver_branches", "cuda", "components", "distributions"}
    assert wanted <= set(reading.files())
    assert sum(1 for _ in reading.every_row()) > 300


@every_table
def test_rows_have_a_source_and_a_past_date(file: str, table: str) -> None:
    """Dates are quoted text, so that every reader sees the same."""
    for row in reading.rows(file, table):
        assert isinstance(row.get("source"), str) and row["source"].strip(), row
        assert isinstance(row.get("as_of"), str), row
        assert date(2020, 1, 1) < reading.as_of(row["as_of"]) <= date.today(), row


@every_table
def test_sources_can_be_found_again(file: str, table: str) -> None:
    """Each part names a text of sources.yaml, a repository or thread, a table of ours, or a vendor's document."""
    known = {row["id"] for row in reading.rows("sources", "sources")} | {name for _, name in TABLES}
    for row in reading.rows(file, table) if file != "sources" else ():
        for part in re.split(r";\s*|,\s+(?=#)", row["source"]):
            first = re.split(r"[\s(#:,]", part, maxsplit=1)[0]
            named = first in known or "/" in part or "#" in part or part.startswith(("Ubuntu archive", "CUDA "))
            assert named, f"{reading.row_name(row)}: {part}"


@every_table
def test_no_row_twice(file: str, table: str) -> None:
    """Tables of the host roles alone (host_*) may need several keys to tell rows apart: there, all of them count."""
    rows = reading.rows(file, table)
    if file.startswith("host_"):
        keys = tuple(key for key in rows[0] if key not in ("source", "as_of", "note"))
    else:
        keys = KEYS.get(table) or (next(iter(rows[0])),)
    names = [tuple(str(row.get(key)).casefold() for key in keys) for row in rows]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@every_table
def test_versions_are_text(file: str, table: str) -> None:
    """A number such as 580.10 would lose its zero; only branches, counts and shares of a card are numbers."""
    for row in reading.rows(file, table):
        for key, value in row.items():
            text = key == "cards" or not isinstance(value, float | date)
            assert text, f"{reading.row_name(row)}: quote {key} {value}"


def test_no_table_name_in_two_files() -> None:
    names = [name for _, name in TABLES]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize(("text", "day"), [("2026-11", "2026-11-01"), ("2026-11-30", "2026-11-30")])
def test_as_of_reads_months_and_days(text: str, day: str) -> None:
    assert reading.as_of(text) == date.fromisoformat(day)


@pytest.mark.parametrize("text", ["2026", "2026-13", "yesterday", ""])
def test_as_of_refuses_other_texts(text: str) -> None:
    with pytest.raises(ValueError):
        reading.as_of(text)


def test_a_missing_table_is_named() -> None:
    with pytest.raises(CatalogError, match="no table nothing"):
        reading.rows("gpus", "nothing")
    with pytest.raises(CatalogError, match=r"nowhere\.yaml"):
        reading.load("nowhere")
