"""Rules of Go's strconv, time and encoding/json that decide what a scalar of the configuration becomes.

Only what the device plugin's loader uses. Source: Go standard library (strconv, time, encoding/json),
github.com/google/uuid v1.6.0.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

INT64_MIN, INT64_MAX, UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1

_BASES = {"0x": (16, "0123456789abcdef"), "0b": (2, "01"), "0o": (8, "01234567")}
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_FLOAT = re.compile(rf"[-+]?(?:\.{_DIGITS}|{_DIGITS}(?:\.(?:{_DIGITS})?)?)(?:[eE][-+]?{_DIGITS})?")
_DURATION_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_NANOSECONDS |= {"m": 60 * 10**9, "h": 3600 * 10**9}
_HEX32 = re.compile(r"[0-9a-fA-F]{32}")
_UUID36 = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
#: Letters outside ASCII that Go folds onto an ASCII letter.
_FOLDS = str.maketrans({"\u017f": "S", "\u212a": "K"})


def parse_int(text: str) -> int | None:
    """strconv.ParseInt(text, 0, 64), then ParseUint: an integer in Go's prefixed notation, or None.

    `010` is octal; 0x, 0o and 0b are prefixes; the range is that of int64 and, unsigned, uint64.
    """
    signed = text[:1] in ("+", "-")
    digits = text[1:] if signed else text
    lower = digits.lower()
    if lower[:2] in _BASES and len(lower) > 2:
        base, alphabet = _BASES[lower[:2]]
        lower = lower[2:]
    elif lower.startswith("0") and len(lower) > 1:
        base, alphabet, lower = 8, "01234567", lower[1:]
    else:
        base, alphabet = 10, "0123456789"
    if not lower or any(c not in alphabet for c in lower) or len(lower) > 64:
        return None
    value = int(lower, base)
    if text.startswith("-"):
        value = -value
    if INT64_MIN <= value <= INT64_MAX or (not signed and value <= UINT64_MAX):
        return value
    return None


def parse_float(text: str) -> float | None:
    """strconv.ParseFloat for decimal notation, underscores between digits; None: no number, or out of range."""
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text.replace("_", ""))
    return None if math.isinf(value) else value


def parse_bool(text: str) -> bool | None:
    """strconv.ParseBool: only these spellings; `yes` is not one of them."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    return None


def parse_uint(text: str) -> int | None:
    """strconv.ParseUint(text, 10, 64): plain decimal digits only."""
    if not text or len(text) > 64 or any(c not in "0123456789" for c in text) or int(text) > UINT64_MAX:
        return None
    return int(text)


def json_int(value: int | float, *, signed: bool = True) -> int | None:
    """A number written as JSON and read into a Go int (or uint): 4.0 is 4, 4.5 is an error, range is 64 bit."""
    if isinstance(value, float):
        if value != value or abs(value) >= 1e21 or (value != 0 and abs(value) < 1e-6) or value != int(value):
            return None
        if not signed and math.copysign(1.0, value) < 0:
            return None  # the text is "-0" or negative
        value = int(Decimal(repr(value)))
    low, high = (INT64_MIN, INT64_MAX) if signed else (0, UINT64_MAX)
    return value if low <= value <= high else None


def is_duration(text: str) -> bool:
    """time.ParseDuration accepts the text: a sequence of decimal numbers with units, `0`, at most about 292 years."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return True
    if not rest:
        return False
    total = 0
    while rest:
        part = _DURATION_PART.match(rest)
        if part is None or not (part[1] or part[3]):
            return False
        unit = _NANOSECONDS[part[4]]
        total += int(part[1] or 0) * unit
        if part[3]:
            total += int(part[3]) * unit // 10 ** len(part[3])
        rest = rest[part.end() :]
        if total > 2**63:
            return False
    return total < 2**63 or negative


def is_uuid(text: str) -> bool:
    """uuid.Parse accepts the text: 36 characters with dashes, 32 without, `urn:uuid:` prefix, or 38 in any brackets."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size != len(text):
        return size == 38 and len(text) >= 38 and bool(_UUID36.fullmatch(text[1:37]))
    if size == 45 and text[:9].lower() == "urn:uuid:":
        return bool(_UUID36.fullmatch(text[9:]))
    if size == 38:
        return bool(_UUID36.fullmatch(text[1:37]))
    return bool(_UUID36.fullmatch(text) or _HEX32.fullmatch(text))


def fold(name: str) -> str:
    """The form under which encoding/json compares a key with a struct field, ignoring case."""
    return "".join(c.upper() if c.isascii() else c for c in name.translate(_FOLDS))
