"""What a user sees when gpufleet itself is at fault: one message, never a traceback unless asked for."""

from __future__ import annotations

import os
import traceback

DEBUG_ENV = "GPUFLEET_DEBUG"


def internal_error(error: BaseException) -> str:
    """Names the kind and place of the error; with GPUFLEET_DEBUG set, the whole traceback."""
    if os.environ.get(DEBUG_ENV):
        return "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}" if frames else ""
    return (
        f"gpufleet: internal error{place}: {type(error).__name__}. This is a fault of gpufleet, not of the input;"
        f" please report it with the output of the same command under {DEBUG_ENV}=1."
    )
