"""Small edits of TOML files as text, so that comments and order stay. Reading is tomllib's."""

from __future__ import annotations

import re
import tomllib
from typing import Any

BEGIN = "# BEGIN gpufleet, role gpu_container_toolkit"
END = "# END gpufleet"


def parse(text: str) -> tuple[dict[str, Any], str]:
    """(the document, "") or ({}, why it cannot be read)."""
    try:
        return tomllib.loads(text), ""
    except tomllib.TOMLDecodeError as error:
        return {}, str(error)


def strip_block(text: str) -> str:
    """The text without our block."""
    return re.sub(rf"\n*{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", "\n", text, flags=re.S).lstrip("\n")


def block_of(text: str) -> str | None:
    """Our block without its marks, or None."""
    match = re.search(rf"{re.escape(BEGIN)}\n(.*?){re.escape(END)}\n", text, re.S)
    return match[1] if match else None


def with_block(text: str, block: str) -> str:
    """The text with our block at its end, replacing an older one."""
    rest = strip_block(text).rstrip("\n")
    return f"{rest}\n\n{BEGIN}\n{block}{END}\n" if rest else f"{BEGIN}\n{block}{END}\n"


def keys_of(header: str) -> list[str]:
    """The parts of a table header such as plugins."io.containerd.grpc.v1.cri".containerd."""
    return [part.strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", header)]


def value_text(value: Any) -> str:
    """A scalar as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def set_key(text: str, table: list[str], key: str, value: Any, *, comments: bool = True) -> str:
    """The text with `key` of a table set. A missing table is appended.

    `table` is the list of its parts, [] for the top of the file. `comments`: a commented-out line of the key is used.
    """
    lines = text.splitlines()
    start, end = _section(lines, table)
    line = f"{key} = {value_text(value)}"
    if start is None:
        header = ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in table)
        return text.rstrip("\n") + f"\n\n[{header}]\n{line}\n"
    at, commented = None, None
    for number in range(start, end):
        match = re.match(r"(\s*)(#?)\s*\"?" + re.escape(key) + r"\"?\s*=", lines[number])
        if match and match[2] and comments and commented is None:
            commented = number
        elif match and not match[2]:
            at = number
            break
    position = at if at is not None else commented
    if position is not None:
        indent = re.match(r"\s*", lines[position])
        lines[position] = f"{indent[0] if indent else ''}{line}"
    else:
        lines.insert(start, line)
    return "\n".join(lines) + "\n"


def remove_key(text: str, table: list[str], key: str) -> str:
    """The text without `key` of a table."""
    lines = text.splitlines()
    start, end = _section(lines, table)
    pattern = re.compile(r"\s*\"?" + re.escape(key) + r"\"?\s*=")
    body = range(start if start is not None else end, end)
    return "\n".join(line for n, line in enumerate(lines) if n not in body or not pattern.match(line)) + "\n"


def has_table(text: str, table: list[str]) -> bool:
    """Whether the text has the header of a table."""
    return _section(text.splitlines(), table)[0] is not None


def _section(lines: list[str], table: list[str]) -> tuple[int | None, int]:
    """(first line of a table's body or None, line after its last)."""
    start: int | None = 0 if not table else None
    for number, line in enumerate(lines):
        match = re.match(r"\s*\[\s*([^\[\]].*?)\s*\]\s*(?:#.*)?$", line)
        if not match and not re.match(r"\s*\[\[", line):
            continue
        if start is not None:
            return start, number
        if match and keys_of(match[1]) == table:
            start = number + 1
    return start, len(lines)
