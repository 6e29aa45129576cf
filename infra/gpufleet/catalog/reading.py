"""Reading the catalogue's YAML files.

A file is a mapping of table name to a list of rows, so that Python and Ansible (`include_vars` with `name`) read the
same text. Every row carries `source` and `as_of`. A file is parsed on first use and kept.
"""

from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DIRECTORY = Path(__file__).parent / "tables"

# The C parser is about ten times faster; PyYAML may be built without it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Row = dict[str, Any]


class CatalogError(ValueError):
    """A table that cannot be used: a defect of the installation, not of a stack file."""


@cache
def load(file: str) -> dict[str, list[Row]]:
    """All tables of `file`, a file name without `.yaml`. Callers must not change what they get.

    Raises CatalogError when the file is missing, is not YAML, or is not a mapping of names to lists of mappings.
    """
    path = DIRECTORY / f"{file}.yaml"
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except FileNotFoundError:
        raise CatalogError(f"no such table file: {path.name}") from None
    except yaml.YAMLError as error:
        raise CatalogError(f"{path.name}: {error}") from None
    if not isinstance(content, dict) or not all(
        isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in content.values()
    ):
        raise CatalogError(f"{path.name}: not a mapping of table names to lists of rows")
    return content


def rows(file: str, table: str) -> list[Row]:
    """The rows of one table. Raises CatalogError when the file has no such table."""
    tables = load(file)
    if table not in tables:
        raise CatalogError(f"{file}.yaml: no table {table}")
    return tables[table]


def files() -> tuple[str, ...]:
    """The names of all table files, sorted, without `.yaml`."""
    return tuple(sorted(path.stem for path in DIRECTORY.glob("*.yaml")))


def every_row() -> Iterator[tuple[str, str, int, Row]]:
    """(file, table, index, row) for every row of the catalogue."""
    for file in files():
        for table, content in load(file).items():
            for index, row in enumerate(content):
                yield file, table, index, row


def row_name(row: Row) -> str:
    """What a person calls the row: the value of its first key."""
    return str(next(iter(row.values()), ""))


def as_of(text: str) -> date:
    """The day that an `as_of` text means; a month alone (`2026-11`) means its first day, the older reading.

    Raises ValueError for any other text.
    """
    return date.fromisoformat(text if len(text) > 7 else f"{text}-01")
