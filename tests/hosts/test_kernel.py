"""A driver transaction that brings another kernel along."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.hosts.plays import inventory, play
from twin.hosts.engine import HostTwin

HOOK = """#!/bin/sh
[ -e /root/kernel.done ] && exit 0
touch /root/kernel.done
export DPKG_FRONTEND_LOCKED=true
dpkg --install /root/linux-image-*.deb
"""


def test_a_kernel_that_arrives_with_the_driver_is_reported(
    start_hosts: Callable[[int, Sequence[str]], HostTwin],
) -> None:
    twin = start_hosts(1, ["a100-pcie"])
    host = twin.hosts[0].name
    assert twin.run(host, "apt-get update -qq && cd /root && apt-get download -qq linux-image-6.99.1-twin").rc == 0
    twin.host(host).path("/root/hook").write_text(HOOK)
    twin.run(host, "chmod 755 /root/hook && echo 'DPkg::Post-Invoke { \"/root/hook\"; };' > /etc/apt/apt.conf.d/99hook")
    done = play("site", inventory(twin))
    message = done.failures(host)
    assert "GF782" in message and "linux-image-6.99.1-twin" in message
    again = play("site", inventory(twin))
    assert again.failures(host) == "", "the next run takes the kernels as they are"
