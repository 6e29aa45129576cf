"""Errors of the host twin. Each says what is wrong and what to do about it; none needs a traceback."""

from __future__ import annotations

from twin.errors import TwinError

__all__ = ["TwinError", "UnavailableError"]


class UnavailableError(TwinError):
    """This machine cannot run host twins (no root, no nspawn, no overlay, ...). Tests skip with this reason."""
