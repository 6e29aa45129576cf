"""Names that one object has and another calls, where not all objects need be among what was given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

#: Less alike than this, and it is another name, not a slip of the pen.
_ALIKE = 0.85


def slip(name: str, known: Iterable[str]) -> str | None:
    """The known name that was surely meant, or None. `worker-1` and `worker-2` are two names, not a slip."""
    best, most = None, _ALIKE
    for other in known:
        alike = SequenceMatcher(None, name, other).ratio()
        if alike >= most and _without_digits(name) != _without_digits(other):
            best, most = other, alike
    return best


def _without_digits(name: str) -> str:
    return re.sub(r"\d+", "", name)
