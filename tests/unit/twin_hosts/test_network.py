"""The hosts' network: free subnet, stable and distinct bridge names, addresses."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from twin.hosts import network
from twin.hosts.errors import TwinError, UnavailableError


def test_the_first_subnet_that_nothing_uses_is_taken() -> None:
    used = [IPv4Network("10.231.0.0/24"), IPv4Network("10.231.1.128/25"), IPv4Network("192.168.0.0/16")]
    assert network.free_subnet(used) == IPv4Network("10.231.2.0/24")


def test_no_free_subnet_is_said_in_words() -> None:
    with pytest.raises(UnavailableError, match="no free subnet"):
        network.free_subnet([IPv4Network("10.0.0.0/8")])


def test_bridge_names_follow_the_state_folder(tmp_path: Path) -> None:
    one, two = network.bridge_name(tmp_path / "a"), network.bridge_name(tmp_path / "b")
    assert one == network.bridge_name(tmp_path / "x" / ".." / "a")
    assert one != two
    assert len(one) <= 15  # the limit of interface names in Linux


def test_addresses_stay_inside_the_subnet() -> None:
    found = network.Network("br", "10.231.7.0/24")
    assert (found.gateway, found.address(0), found.address(9)) == ("10.231.7.1", "10.231.7.11", "10.231.7.20")
    with pytest.raises(TwinError, match="at most"):
        found.address(240)
