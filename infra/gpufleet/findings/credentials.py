"""Credentials in plain text: found in what a stack file says, and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpufleet.findings.path import PathParts

HIDDEN = "(hidden)"
#: Keys, and names of environment variables, whose text is a credential; names of Secrets end otherwise.
_KEY = re.compile(r"(?i)(password|passwd|token|(api|private|access)[-_]?key|(client|shared)[-_]?secret)$")
#: `user:password@` before a host; the digest of an image (`tag@sha256:...`) is none.
_USER = re.compile(r"(?<![^\s/\"'])[^\s/@:\"']+:[^\s/@\"']+@(?!sha256:)")


def in_address(text: str) -> bool:
    """Whether an address carries a password."""
    return _USER.search(text) is not None


def redacted(value: Any) -> Any:
    """A value as it may be shown."""
    if isinstance(value, str):
        return _USER.sub(f"{HIDDEN}@", value)
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    if isinstance(value, dict):
        return {k: HIDDEN if _holds(value, k) else redacted(v) for k, v in value.items()}
    return value


def credentials(values: Any, path: PathParts = ()) -> Iterator[PathParts]:
    """Paths of text that is a credential, by its key, by the variable that it is the value of, or in an address."""
    if isinstance(values, dict | list):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            if isinstance(values, dict) and _holds(values, key):
                yield (*path, key)
            else:
                yield from credentials(value, (*path, key))
    elif isinstance(values, str) and in_address(values):
        yield path


def _holds(values: dict[Any, Any], key: Any) -> bool:
    """Whether the text under a key is a credential: `token: x`, or `{name: TOKEN, value: x}`."""
    name = values.get("name") if key == "value" else key
    text = values[key]
    return isinstance(text, str) and text != "" and _KEY.search(str(name)) is not None
