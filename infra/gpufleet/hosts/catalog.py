"""The catalogue's YAML tables, read once per process. The roles read the same files as the `gpufleet` command."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

Row = dict[str, Any]
# The C parser is about ten times faster; PyYAML may be built without it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEFAULT = Path(__file__).resolve().parents[1] / "catalog" / "tables"


def read_yaml(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


class CatalogError(ValueError):
    """A table is missing: a defect of the installation, not of a host."""


class Catalog:
    """Tables of one directory; a file is parsed when a table of it is first asked for."""

    def __init__(self, directory: str | Path = "") -> None:
        """Use `directory`, or the catalogue of this checkout when it is empty."""
        self.directory = Path(directory) if directory else DEFAULT
        self._files: dict[str, dict[str, list[Row]]] = {}

    def rows(self, file: str, table: str) -> list[Row]:
        """The rows of a table. Raises CatalogError when there is no such file or table."""
        if file not in self._files:
            path = self.directory / f"{file}.yaml"
            try:
                self._files[file] = read_yaml(path) or {}
            except FileNotFoundError:
                raise CatalogError(f"no table file {path}; set gpu_catalog_dir") from None
        if table not in self._files[file]:
            raise CatalogError(f"{file}.yaml has no table {table}")
        return self._files[file][table]

    def row(self, file: str, table: str, key: str, value: Any) -> Row | None:
        """The first row whose `key` has the value, or None."""
        return next((row for row in self.rows(file, table) if row.get(key) == value), None)


@cache
def catalog(directory: str = "") -> Catalog:
    """The catalogue of a directory, kept for the life of the process."""
    return Catalog(directory)
