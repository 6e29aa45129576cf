"""Errors of the host twin. Each says what is wrong and what to do about it; none needs a traceback."""

from __future__ import annotations


class TwinError(Exception):
    """Something failed that should have worked: a build, a start, a command on a host."""


class UnavailableError(TwinError):
    """This machine cannot run host twins (no root, no nspawn, no overlay, ...). Tests skip with this reason."""
