"""Kinds of clusters, one folder each; importing this package makes them known."""

from gpufleet.places import aks, existing
from gpufleet.places.base import PLACES, ClusterPlan, Made, Nodes, Place, PoolResource, register

__all__ = ["PLACES", "ClusterPlan", "Made", "Nodes", "Place", "PoolResource", "aks", "existing", "register"]
