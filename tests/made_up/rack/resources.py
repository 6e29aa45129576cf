"""A rack as a Pulumi component."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s
from gpufleet.places.base import Made
from gpufleet.places.options import InCluster
from gpufleet.plan.model import Plan


class Rack(pulumi.ComponentResource):
    """The rack itself."""

    def __init__(self, name: str) -> None:
        super().__init__("gpufleet:rack:Rack", name, {})
        self.register_outputs({})


def deploy(plan: Plan) -> Made:
    """Registers the rack."""
    rack = Rack(plan.cluster.name)
    provider = k8s.Provider("cluster", kubeconfig="{}", opts=pulumi.ResourceOptions(parent=rack))
    return Made(InCluster(provider, rack, False), [rack], {"door": plan.cluster.as_dict()["door"]})
