"""A cluster that exists; the stack owns only what it puts into it."""

from gpufleet.places.base import register
from gpufleet.places.existing.place import ExistingPlace

register(ExistingPlace())
