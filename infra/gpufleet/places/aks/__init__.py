"""An AKS cluster that the stack makes, with one agent pool per GPU pool."""

from gpufleet.places.aks.place import AksPlace
from gpufleet.places.base import register

register(AksPlace())
