"""Settings of the GPU that the bench changes, only with ``--allow-settings``: time-slice length and MIG layout.

Each is a context manager that puts back what it found. Nothing is ever reset: a change that would need a reset
is undone and reported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gpufleet.bench import smi
from gpufleet.bench.plan import TIME_SLICES


class SettingsError(RuntimeError):
    """A setting is not allowed, not possible now, or could not be put back."""


def require(allowed: bool, what: str) -> None:
    """Raises SettingsError unless the machine's owner allowed changes."""
    if not allowed:
        raise SettingsError(f"{what} changes a setting of the GPU: only with --allow-settings, on your own machine")


@contextlib.contextmanager
def time_slice(length: str, gpu: str, allowed: bool) -> Iterator[None]:
    """Set the time-slice length (see ``TIME_SLICES``) of the GPU; the one before returns at the end.

    Needs root. Raises SettingsError.
    """
    require(allowed, f"time slice '{length}'")
    before = (smi.time_slice(gpu) or "").lower()
    if before not in TIME_SLICES:
        raise SettingsError("the present time-slice length cannot be read, so it could not be put back")
    _run(["compute-policy", "-i", gpu, "--set-timeslice", str(TIME_SLICES[length])])
    try:
        yield
    finally:
        _run(["compute-policy", "-i", gpu, "--set-timeslice", str(TIME_SLICES[before])])


@contextlib.contextmanager
def mig_instances(profile: str, count: int, gpu: str, allowed: bool) -> Iterator[list[str]]:
    """``count`` MIG instances of one profile; their UUIDs. MIG mode is as before at the end.

    Refuses a GPU in use or with instances of its own. Raises SettingsError.
    """
    require(allowed, f"MIG layout {count} x {profile}")
    busy = smi.running_processes(gpu)
    if busy:
        raise SettingsError(f"the GPU is in use by {len(busy)} process(es): {'; '.join(busy)[:200]}")
    before = smi.query(gpu)["mig.mode.current"]
    if before not in ("Enabled", "Disabled"):
        raise SettingsError(f"this GPU has no MIG (mode '{before}')")
    if before == "Enabled" and _uuids(gpu):
        raise SettingsError("the GPU has MIG instances already")
    with contextlib.ExitStack() as undo:
        if before == "Disabled":
            undo.callback(_run, ["-i", gpu, "-mig", "0"])
            _run(["-i", gpu, "-mig", "1"])
            if smi.query(gpu)["mig.mode.current"] != "Enabled":
                raise SettingsError("MIG mode is pending: this GPU wants a reset, which the bench does not do")
        undo.callback(_remove_instances, gpu)
        _run(["mig", "-i", gpu, "-cgi", ",".join([profile] * count), "-C"])
        uuids = _uuids(gpu)
        if len(uuids) != count:
            raise SettingsError(f"{count} instances of {profile} were asked for, {len(uuids)} are there")
        yield uuids


def _remove_instances(gpu: str) -> None:
    for what in ("-dci", "-dgi"):
        with contextlib.suppress(SettingsError):  # it refuses when there is nothing to remove
            _run(["mig", "-i", gpu, what])
    left = _uuids(gpu)
    if left:
        raise SettingsError(f"{len(left)} MIG instance(s) could not be removed")


def _uuids(gpu: str) -> list[str]:
    text = _run(["-i", gpu, "-L"])
    return [line.rsplit("UUID:", 1)[1].strip(" )") for line in text.splitlines() if line.strip().startswith("MIG")]


def _run(arguments: list[str]) -> str:
    try:
        return smi.run(arguments)
    except smi.SmiError as error:
        raise SettingsError(str(error)) from None
