"""Reading the catalogue's YAML files.

A file is a mapping of table name to a list of rows, so that Python and Ansible (`include_vars` with `name`) read the
same text. Every row carries `source` and `as_of`. A file is parsed on first use and kept.

Accessors take the tables to read as their last argument. Left out, it is the catalogue of the package; the host roles
name another folder with `gpu_catalog_dir`.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import cache, wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import yaml

# The C parser is about ten times faster; PyYAML may be built without it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Row = dict[str, Any]


class CatalogError(ValueError):
    """A table that cannot be used: a defect of the installation, not of a stack file."""


class Tables:
    """The table files of one folder, and what was made of them so far."""

    def __init__(self, directory: Path) -> None:
        """Reads nothing yet."""
        self.directory = directory
        self.kept: dict[object, Any] = {}

    def load(self, file: str) -> dict[str, list[Row]]:
        """All tables of `file`, a file name without `.yaml`. Callers must not change what they get.

        Raises CatalogError when the file is missing, is not YAML, or is not a mapping of names to lists of mappings.
        """
        if file not in self.kept:
            self.kept[file] = self._read(file)
        content: dict[str, list[Row]] = self.kept[file]
        return content

    def _read(self, file: str) -> dict[str, list[Row]]:
        path = self.directory / f"{file}.yaml"
        try:
            content = read_yaml(path)
        except FileNotFoundError:
            raise CatalogError(f"no such table file: {path.name} in {self.directory}") from None
        except yaml.YAMLError as error:
            raise CatalogError(f"{path.name}: {error}") from None
        if not isinstance(content, dict) or not all(
            isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in content.values()
        ):
            raise CatalogError(f"{path.name}: not a mapping of table names to lists of rows")
        return content

    def rows(self, file: str, table: str) -> list[Row]:
        """The rows of one table. Raises CatalogError when the file has no such table."""
        tables = self.load(file)
        if table not in tables:
            raise CatalogError(f"{file}.yaml: no table {table}")
        return tables[table]


def read_yaml(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


#: The catalogue of the package.
STANDARD = Tables(Path(__file__).parent / "tables")


@cache
def _tables_in(directory: str) -> Tables:
    return Tables(Path(directory))


def tables_in(directory: str) -> Tables:
    """The tables of a folder; of the package for an empty name."""
    return _tables_in(directory) if directory else STANDARD


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Kept(Protocol[T_co]):
    """An accessor: what it makes of the tables."""

    def __call__(self, tables: Tables = ...) -> T_co: ...


def kept(read: Callable[[Tables], T]) -> Kept[T]:
    """An accessor that reads each folder of tables once."""

    @wraps(read)
    def get(tables: Tables = STANDARD) -> T:
        if read not in tables.kept:
            tables.kept[read] = read(tables)
        found: T = tables.kept[read]
        return found

    return get


def typed(kind: type[T], row: Row) -> T:
    """A row as a NamedTuple, as far as that has fields for it; lists and mappings that nobody can change."""
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return kind(**{field: _frozen(row[field]) for field in fields if field in row})


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return MappingProxyType({k: _frozen(v) for k, v in value.items()}) if isinstance(value, dict) else value


def table(file: str, name: str, kind: type[T]) -> Kept[tuple[T, ...]]:
    """An accessor of a table's rows as they stand."""
    return kept(lambda tables: tuple(typed(kind, row) for row in tables.rows(file, name)))


def load(file: str, tables: Tables = STANDARD) -> Mapping[str, list[Row]]:
    """All tables of a file."""
    return tables.load(file)


def rows(file: str, name: str, tables: Tables = STANDARD) -> list[Row]:
    """The rows of one table as they are written."""
    return tables.rows(file, name)


def files(tables: Tables = STANDARD) -> tuple[str, ...]:
    """The names of all table files, sorted, without `.yaml`."""
    return tuple(sorted(path.stem for path in tables.directory.glob("*.yaml")))


def every_row() -> Iterator[tuple[str, str, int, Row]]:
    """(file, table, index, row) for every row of the catalogue."""
    for file in files():
        for name, content in load(file).items():
            for index, row in enumerate(content):
                yield file, name, index, row


def row_name(row: Row) -> str:
    """What a person calls the row: the value of its first key."""
    return str(next(iter(row.values()), ""))


def as_of(text: str) -> date:
    """The day that an `as_of` text means; a month alone (`2026-11`) means its first day, the older reading.

    Raises ValueError for any other text.
    """
    return date.fromisoformat(text if len(text) > 7 else f"{text}-01")
