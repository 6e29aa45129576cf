"""The bridge of one set of hosts: name and subnet are chosen free, so that several checkouts run side by side."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .errors import TwinError, UnavailableError

# Private addresses that few sites use for servers (RFC 1918); the first /24 that nothing here touches is taken.
CANDIDATES = tuple(ipaddress.IPv4Network(f"10.{second}.{third}.0/24") for second in (231, 232) for third in range(256))
FIRST_HOST = 11


@dataclass(frozen=True)
class Network:
    """A bridge with its subnet; the first address is the bridge's own."""

    bridge: str
    subnet: str

    @property
    def gateway(self) -> str:
        """The bridge's address."""
        return str(ipaddress.ip_network(self.subnet)[1])

    @property
    def prefix(self) -> int:
        """Prefix length of the subnet."""
        return ipaddress.ip_network(self.subnet).prefixlen

    def address(self, index: int) -> str:
        """Return the address of host number `index` (from 0). Raises TwinError when the subnet is full."""
        if index + FIRST_HOST > 250:
            raise TwinError(f"at most {250 - FIRST_HOST + 1} hosts fit in {self.subnet}")
        return str(ipaddress.ip_network(self.subnet)[FIRST_HOST + index])


def bridge_name(state_dir: Path) -> str:
    """Return the bridge's name for a state folder: stable for it, different for others, short enough for Linux."""
    return "gfh" + hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:8]


def free_subnet(used: list[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """Return the first candidate that overlaps no used network. Raises UnavailableError when there is none."""
    for candidate in CANDIDATES:
        if not any(candidate.overlaps(network) for network in used):
            return candidate
    raise UnavailableError("no free subnet in 10.231.0.0/16 and 10.232.0.0/16 for the hosts' bridge")


def used_networks() -> list[ipaddress.IPv4Network]:
    """Return every IPv4 network that an interface or a route of this machine names, default routes left out."""
    found: list[ipaddress.IPv4Network] = []
    for interface in json.loads(machine.run(["ip", "-j", "-4", "addr"]) or "[]"):
        for info in interface.get("addr_info", []):
            found.append(ipaddress.IPv4Interface(f"{info['local']}/{info['prefixlen']}").network)
    for route in json.loads(machine.run(["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]"):
        destination = route.get("dst", "default")
        if destination != "default":
            found.append(ipaddress.IPv4Network(destination, strict=False))
    return found


def create(state_dir: Path) -> Network:
    """Make the bridge for a state folder and give it an address.

    Call it under a machine-wide lock: choosing a subnet and taking it are two steps. Raises UnavailableError where the
    kernel has no bridges.
    """
    name = bridge_name(state_dir)
    subnet = free_subnet(used_networks())
    network = Network(name, str(subnet))
    try:
        machine.run(["ip", "link", "add", name, "type", "bridge"])
    except TwinError as error:
        raise UnavailableError(f"cannot create a network bridge: {error}") from None
    machine.run(["ip", "addr", "add", f"{network.gateway}/{network.prefix}", "dev", name])
    machine.run(["ip", "link", "set", name, "up"])
    return network


def exists(bridge: str) -> bool:
    """Tell whether the bridge is there."""
    return Path(f"/sys/class/net/{bridge}").exists()


def remove(bridge: str) -> None:
    """Delete the bridge if it is there."""
    if exists(bridge):
        machine.run(["ip", "link", "del", bridge])
