"""Names that one object has and another calls, where not all objects need be among what was given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from gpufleet.catalog import gpu_model

#: Less alike than this, and it is another name, not a slip of the pen: of whole names, and of their single words.
_ALIKE, _WORDS_ALIKE = 0.85, 0.65


def slip(name: str, known: Iterable[str]) -> str | None:
    """The known name that was surely meant, or None. `worker-1` and `worker-2` are two names, not a slip; so are
    `h100-queue` and `a100-queue`, `jobs-east` and `jobs-west`, `queue` and `queue-large`."""
    best, most = None, _ALIKE
    for other in known:
        alike = _alike(name, other)
        if alike >= most and _same_words(name, other):
            best, most = other, alike
    return best


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _same_words(one: str, other: str) -> bool:
    """Whether two names differ by letters of their words alone."""
    mine, theirs = re.split("[-_.]", one), re.split("[-_.]", other)
    if len(mine) != len(theirs):
        return "".join(mine) == "".join(theirs)  # a hyphen more or less
    pairs = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
    return all(_misspelt(a, b) for a, b in pairs)


def _misspelt(one: str, other: str) -> bool:
    if gpu_model(one) is not None and gpu_model(other) is not None:
        return False
    if one[:1] != other[:1] or _without_digits(one) == _without_digits(other):
        return False
    return _alike(one, other) > _WORDS_ALIKE


def _without_digits(name: str) -> str:
    return re.sub(r"\d+", "", name)
