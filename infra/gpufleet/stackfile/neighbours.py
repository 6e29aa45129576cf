"""Words of neighbouring tools (azure-native, azurerm, Ansible, the device plugin, charts) and our own for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.catalog import reading
from gpufleet.findings.credentials import redacted
from gpufleet.findings.path import PathParts
from gpufleet.stackfile.meant import flow

_GIVEN = re.compile(r"<([\w/]+)\|([^>]*)>")


@dataclass(frozen=True)
class Ours:
    """Our word for a neighbour's: the key, and what is written."""

    key: str
    remedy: str


def plain(word: str) -> str:
    """A word without what tools write differently."""
    return word.replace("_", "").replace("-", "").lower()


def ours(path: PathParts, allowed: Collection[str], beside: Mapping[str, Any]) -> Ours | None:
    """Our word for an unknown key, None where no neighbour calls anything so.

    Args:
        path: the place of the key.
        allowed: the keys that may stand there.
        beside: the map that it stands in; values that were given are shown in the remedy.
    """
    word, inside = plain(str(path[-1])), [part for part in reversed(path[:-1]) if isinstance(part, str)]
    rows = [row for row in reading.rows("neighbour_words", "neighbour_words") if plain(row["word"]) == word]
    for where in inside:
        for row in rows:
            if row["at"] == where and (row["key"] in allowed or row["key"].startswith("gpufleet:")):
                text = f"Write `{_filled(row['write'], beside)}`; {path[-1]} is a word of {row['tool']}."
                return Ours(row["key"], text)
    return None


def _filled(template: str, beside: Mapping[str, Any]) -> str:
    given = {plain(key): value for key, value in beside.items()}

    def value(match: re.Match[str]) -> str:
        words = [plain(word) for word in match[1].split("/")]
        return next((flow(redacted(given[word])) for word in words if given.get(word) is not None), match[2])

    return _GIVEN.sub(value, template)
