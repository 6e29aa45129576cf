"""Free TCP ports on loopback for the parts of a twin."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

# Below the usual range of outgoing connections (32768 on Linux) and of NodePorts (30000), which are taken by chance.
LOWEST, HIGHEST = 20000, 29999


def is_free(port: int) -> bool:
    """Say whether nobody listens on the port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a closed connection's leftovers do not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose(names: Iterable[str], seed: int | None = None) -> dict[str, int]:
    """Return a different free port for each name.

    Another program may take one before it is used; whoever starts a listener has to be ready for that.
    """
    source = random.Random(seed)
    chosen: dict[str, int] = {}
    for name in names:
        port = source.randint(LOWEST, HIGHEST)
        while port in chosen.values() or not is_free(port):
            port = source.randint(LOWEST, HIGHEST)
        chosen[name] = port
    return chosen
