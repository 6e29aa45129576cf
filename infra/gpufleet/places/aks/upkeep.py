"""What AKS does to the nodes by itself: channels, maintenance windows, and what the plan says of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from gpufleet.catalog import aks_channel
from gpufleet.stackfile.base import Model, matches

UpgradeChannel = Literal["none", "patch", "stable", "rapid", "node-image"]
NodeOsChannel = Literal["None", "Unmanaged", "SecurityPatch", "NodeImage"]
Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

#: The names that AKS gives the two windows (AKS documentation: planned-maintenance).
CLUSTER_WINDOW = "aksManagedAutoUpgradeSchedule"
NODES_WINDOW = "aksManagedNodeOSUpgradeSchedule"


class Window(Model):
    """A weekly maintenance window: AKS begins its own upgrades within it."""

    day: Day = Field(description="The day of the week.", examples=["Saturday"])
    start: Annotated[
        str,
        matches(r"([01]\d|2[0-3]):[0-5]\d", "A time of day is HH:MM.", 'Write it in quotes: "02:00".'),
    ] = Field(description="When the window opens, in the time of `utcOffset`.", examples=["02:00"])
    hours: int = Field(default=4, ge=4, le=24, description="How long it is open, 4 to 24 hours.", examples=[6])
    utc_offset: Annotated[
        str,
        matches(r"[+-]\d\d:[0-5]\d", "An offset from UTC looks like +08:00.", 'Write it in quotes: "+08:00".'),
    ] = Field(default="+00:00", description="The offset from UTC in which `start` is meant.", examples=["+08:00"])
    every_weeks: int = Field(default=1, ge=1, le=4, description="The weeks between two windows, 1 to 4.", examples=[2])

    def words(self) -> str:
        """`Saturday 02:00 UTC+08:00, 4 hours`."""
        every = f", every {self.every_weeks} weeks" if self.every_weeks > 1 else ""
        return f"{self.day} {self.start} UTC{self.utc_offset}, {self.hours} hours{every}"


class Maintenance(Model):
    """When AKS may upgrade by itself: `cluster` for `upgradeChannel`, `nodes` for `nodeOsUpgradeChannel`."""

    cluster: Window | None = Field(
        default=None,
        description="The window of the upgrade channel (Kubernetes versions).",
        examples=[{"day": "Saturday", "start": "02:00", "hours": 6}],
    )
    nodes: Window | None = Field(
        default=None,
        description="The window of the node OS channel (node images, security updates).",
        examples=[{"day": "Sunday", "start": "02:00"}],
    )


def node_os_channel(stated: NodeOsChannel | None, channel: UpgradeChannel) -> NodeOsChannel:
    """The node OS channel that is sent. Azure takes NodeImage where none is sent, whatever the other channel says."""
    return stated or ("None" if channel == "none" else "NodeImage")


def movers(channel: str, os_channel: str, maintenance: Maintenance, by_aks: Sequence[str]) -> list[str]:
    """What AKS does to nodes by itself, one line per channel that does anything; `by_aks` are the pools whose driver
    comes with the node image."""
    said, drains = [], False
    for key, word, window in (
        ("upgradeChannel", channel, maintenance.cluster),
        ("nodeOsUpgradeChannel", os_channel, maintenance.nodes),
    ):
        row = aks_channel(key, word)
        if row.moves is not None:
            how = "drains nodes for" if row.drains else "brings"
            when = f", {window.words()}" if window else (", at any time" if row.drains else "")
            said.append(f"{key} {word} {how} {row.moves}{when}")
            drains = drains or row.drains
    if drains and by_aks:
        said.append(f"a new image may bring another driver to {', '.join(by_aks)}")
    return said or ["nothing moves nodes: AKS upgrades nothing by itself"]
