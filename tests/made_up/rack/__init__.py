"""A made-up kind of cluster, in one folder: `rack`, whose nodes are counted by shelves and come with a driver."""

from __future__ import annotations

from gpufleet.places.base import register

from tests.made_up.rack.place import RackPlace

register(RackPlace())
