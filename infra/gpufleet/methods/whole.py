"""Whole GPUs: one pod each."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpufleet.methods.base import Method, method


@method
class NoSharing(Method):
    """Whole GPUs: one pod each."""

    strategy: Literal["none"] = Field(description="No sharing: each pod gets whole GPUs.", examples=["none"])


#: The method of pools that name no profile.
WHOLE = NoSharing(strategy="none")
