"""Which rows of the catalogue are old, and what a row looks like to a person."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from gpufleet.catalog import CatalogError, reading


class OldRow(NamedTuple):
    """A row whose text was read too long ago."""

    file: str
    table: str
    row: str
    as_of: str
    source: str


def months_before(day: date, months: int) -> date:
    """The same day of the month `months` earlier, or the month's last day where it has no such day."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    if year < date.min.year:
        return date.min
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def old_rows(today: date, months: int) -> list[OldRow]:
    """Rows that are older than `months` on the day `today`, oldest first, then by file and table.

    Raises CatalogError when a table cannot be read, or a row lacks its source or date.
    """
    limit = months_before(today, months)
    dated = [(_day(entry), entry) for entry in _entries()]
    return [entry for day, entry in sorted(dated) if day < limit]


def _entries() -> Iterator[OldRow]:
    for file, table, index, row in reading.every_row():
        if file == "sources":  # texts, not facts: each fact has a date of its own
            continue
        missing = [key for key in ("source", "as_of") if not isinstance(row.get(key), str)]
        if missing:
            raise CatalogError(f"{file}.yaml {table}[{index}]: no {' and '.join(missing)}")
        yield OldRow(file, table, reading.row_name(row), row["as_of"], row["source"])


def _day(entry: OldRow) -> date:
    try:
        return reading.as_of(entry.as_of)
    except ValueError:
        raise CatalogError(f"{entry.file}.yaml {entry.table}: {entry.row}: as_of {entry.as_of!r} is no date") from None


def table_names() -> dict[str, str]:
    """Table name -> the file that holds it, in the order of the files."""
    return {table: file for file in reading.files() for table in reading.load(file)}


def find_table(name: str) -> dict[str, list[reading.Row]]:
    """The tables of a name: one table, or every table of a file. Empty when there is none."""
    if name in reading.files():
        return dict(reading.load(name))
    file = table_names().get(name)
    return {name: reading.rows(file, name)} if file else {}


def describe(row: reading.Row) -> Iterator[str]:
    """The lines of one row: its name, then each field."""
    name, *rest = row.items()
    yield f"{name[1]}"
    for key, value in rest:
        if value is not None and value != []:
            yield f"  {key}: {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    return str(value)
