"""Places in a text of nested maps and lists, as `pools[1].labels["a.b/c"]` and as parts."""

from __future__ import annotations

import json
import re

PathParts = tuple[str | int, ...]


def split_path(path: str) -> PathParts:
    """`pools[1].labels["a.b/c"]` -> ("pools", 1, "labels", "a.b/c")."""
    parts: list[str | int] = []
    for match in re.finditer(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)', path):
        quoted, index, word = match.groups()
        parts.append(json.loads(f'"{quoted}"') if quoted is not None else int(index) if index is not None else word)
    return tuple(parts)


def join_path(parts: PathParts) -> str:
    """The inverse of `split_path`."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[\w-]+", part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text
