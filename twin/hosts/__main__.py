"""Command line of the host twin: `python -m twin.hosts up --count N | down | status`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from . import measure, scenarios
from .engine import HostTwin
from .errors import TwinError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 1 with a message on standard error when it did not."""
    parser = argparse.ArgumentParser(prog="python -m twin.hosts", description="Bare GPU servers, simulated.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start hosts (hosts already running are replaced)")
    up.add_argument("--count", type=int, default=2, metavar="N", help="number of hosts (default 2)")
    up.add_argument(
        "--scenario", action="append", default=[], metavar="NAME",
        help="scenario name or file, once per host; the last one serves all further hosts",
    )  # fmt: skip
    commands.add_parser("down", help="stop the hosts and remove everything that up made")
    commands.add_parser("status", help="list the hosts")
    commands.add_parser("scenarios", help="list the scenarios that come with the twin")
    commands.add_parser("places", help="print what roles have to be told: roots, repository addresses, keys (JSON)")
    commands.add_parser("measure", help="measure start times, memory and the floor of ansible runs")
    commands.add_parser("inventory", help="print an Ansible inventory (JSON, which is YAML)")
    options = parser.parse_args(arguments)
    twin = HostTwin(progress=True)
    try:
        return _run(twin, options)
    except TwinError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(twin: HostTwin, options: argparse.Namespace) -> int:
    if options.command == "up":
        began = time.monotonic()
        twin.start(options.count, options.scenario)
        print(f"{len(twin.hosts)} hosts answer after {time.monotonic() - began:.1f} s")
        _print_hosts(twin)
        print(f"packages: {twin.url}/")
    elif options.command == "measure":
        for name, value in measure.measure():
            print(f"{name:<44} {value}")
    elif options.command == "scenarios":
        for name in scenarios.names():
            print(f"{name:<16} {scenarios.load(name).values['description']}")
    elif options.command == "down":
        twin.stop()
    elif not twin.attach():
        print("no hosts are running")
        return 0 if options.command == "status" else 1
    elif options.command == "status":
        _print_hosts(twin)
    elif options.command == "places":
        print(json.dumps(twin.places(), indent=2))
    else:
        print(json.dumps(twin.inventory(), indent=2))
    return 0


def _print_hosts(twin: HostTwin) -> None:
    for host in twin.hosts:
        word = "running" if host.machine.alive else "dead"
        print(f"{host.name}  {host.address}  {word}  {host.scenario.name}  {host.scenario.values['description']}")


if __name__ == "__main__":
    sys.exit(main())
