"""The stack file of a rack."""

from __future__ import annotations

from typing import Annotated, Literal

from gpufleet.stackfile.base import AsTuple
from gpufleet.stackfile.cluster import Cluster
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import Pool
from pydantic import Field


class RackCluster(Cluster):
    """A rack, reached through its own door."""

    kind: Literal["rack"]
    door: str


class Shelf(Pool):
    """One shelf of nodes."""

    shelf: int = Field(ge=1)
    nodes: int = Field(ge=1)
    gpu: str
    driver: Literal["rack", "none"] = "rack"


class RackStack(Stack):
    """A stack on a rack."""

    cluster: RackCluster
    pools: Annotated[tuple[Shelf, ...], AsTuple] = Field(min_length=1)
