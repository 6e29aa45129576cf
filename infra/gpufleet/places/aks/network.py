"""The network of an AKS cluster, as the stack file states it."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from gpufleet.stackfile.base import Model, matches, refuse

#: What the SDK gives a network profile for services and pods; the service refuses networks that overlap them.
TAKEN_RANGES = ("10.0.0.0/16", "10.244.0.0/16")
#: Ranges that Azure takes for no network (virtual network FAQ), and AKS for none of a cluster (AKS documentation).
REFUSED_RANGES = (
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.30.0.0/15",
    "192.0.2.0/24",
    "224.0.0.0/4",
    "255.255.255.255/32",
)
#: Azure takes no smaller subnet (virtual network FAQ); five addresses of each are its own.
LONGEST_PREFIX = 29


def _range(text: str) -> str:
    try:
        network = IPv4Network(text)
    except ValueError:
        hint = "Write network address and prefix length."
        raise refuse("GF106", "An address range looks like 10.40.0.0/16.", hint) from None
    if text != str(network):
        raise refuse("GF106", "An address range has a prefix length.", f"Write {network}.")
    return text


Cidr = Annotated[str, AfterValidator(_range)]


class Network(Model):
    """Own address ranges (the stack makes network and subnet), or a subnet that exists; neither: AKS makes one."""

    vnet_cidr: Cidr | None = Field(
        default=None, description="The address range of a network that the stack makes.", examples=["10.40.0.0/16"]
    )
    subnet_cidr: Cidr | None = Field(
        default=None, description="The address range of the nodes within vnetCidr.", examples=["10.40.0.0/20"]
    )
    subnet_id: (
        Annotated[
            str,
            matches(
                r"(?i:/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network/virtualNetworks/[^/]+/subnets/[^/]+)",
                "A subnet is named by its full resource id.",
                "Copy the id that `az network vnet subnet show --query id` prints.",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="The resource id of a subnet that exists.",
        examples=["/subscriptions/<id>/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub/subnets/gpu"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> Network:
        own = self.vnet_cidr is not None or self.subnet_cidr is not None
        if own and (self.subnet_id is not None or self.vnet_cidr is None or self.subnet_cidr is None):
            raise refuse(
                "GF110",
                "Either both ranges of an own network are given, or the id of a subnet that exists.",
                "Give vnetCidr and subnetCidr, or subnetId alone.",
                keys="vnetCidr, subnetCidr, subnetId",
            )
        if self.vnet_cidr is not None and self.subnet_cidr is not None:
            network = IPv4Network(self.vnet_cidr)
            if not IPv4Network(self.subnet_cidr).subnet_of(network):
                why, hint = "The subnet lies outside of its network.", "Choose a range within vnetCidr."
                raise refuse("GF110", why, hint, keys="vnetCidr, subnetCidr")
            if IPv4Network(self.subnet_cidr).prefixlen > LONGEST_PREFIX:
                why = f"Azure makes no subnet smaller than /{LONGEST_PREFIX}, and keeps five addresses of each."
                raise refuse("GF110", why, "Choose a range with an address for every node.", keys="subnetCidr")
            refused = [r for r in REFUSED_RANGES if network.overlaps(IPv4Network(r))]
            if refused:
                why = f"Azure and AKS take no network that overlaps {' or '.join(refused)}."
                raise refuse("GF110", why, "Choose another range, such as 10.40.0.0/16.", keys="vnetCidr, subnetCidr")
            taken = [r for r in TAKEN_RANGES if network.overlaps(IPv4Network(r))]
            if taken:
                why = f"The cluster's services and pods use {' and '.join(taken)}."
                raise refuse("GF110", why, "Choose another range, such as 10.40.0.0/16.", keys="vnetCidr, subnetCidr")
        return self
