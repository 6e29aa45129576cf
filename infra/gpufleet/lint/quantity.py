"""Quantities of Kubernetes as whole numbers, and values that are still to be filled in."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from gpufleet.device_plugin.yaml11 import Item

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(m|k|M|G|Ki|Mi|Gi|[eE][+-]?\d{1,2})?")
#: `${GPUS}` of envsubst, `<number>` of documentation, `{{ gpus }}` of a template, `?*` of a policy's pattern.
_PLACEHOLDER = re.compile(r"[${}<>*?|]")
_FACTORS: dict[str, Fraction | int] = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}


def count(item: Item) -> int | None:
    """A quantity (`2`, `"2"`, `2000m`, `1k`) as a whole number, or None where it is none."""
    value = item.value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) < 20 else None
    if match is None:
        return None
    unit = match[3] or ""
    factor: Fraction | int = _FACTORS[unit] if unit in _FACTORS else Fraction(10) ** int(unit[1:])
    number = Fraction(f"{match[1]}{match[2]}") * factor
    return int(number) if number.denominator == 1 else None


def is_placeholder(value: object) -> bool:
    """Whether a text is to be replaced by something else before Kubernetes sees it."""
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None
