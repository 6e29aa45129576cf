"""`gpufleet status`: do the nodes show what the stack file declares? Exit code 0 yes, 1 no, 2 cannot be told."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK, EXIT_USAGE
from gpufleet.cli.stack_option import add_stack_options, compile_option
from gpufleet.extras import require
from gpufleet.stackfile.project import project

INTERVAL_SECONDS = 0.5


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser("status", description=__doc__)
    add_stack_options(parser)
    parser.add_argument("--wait", type=seconds, default=0, metavar="SECONDS", help="try again until they agree")
    parser.add_argument("--kubeconfig", type=Path, help="instead of the stack file's or the Pulumi stack's")
    parser.add_argument("--json", action="store_true")


def seconds(text: str) -> float:
    """A time of an option. Raises ValueError, which argparse reports as wrong usage."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def run(args: argparse.Namespace) -> int:
    """Prints one line per node and the cause of each difference."""
    require("status", "gpufleet status")
    compiled = compile_option(args)
    if compiled.plan is None or compiled.stack is None:
        print(f"gpufleet: the stack file has errors; see `gpufleet plan -s {compiled.name}`", file=sys.stderr)
        return EXIT_USAGE
    from gpufleet.status.compare import compare
    from gpufleet.status.observe import Cluster, ObservationError, load_kubeconfig

    deadline = time.monotonic() + args.wait
    try:
        data, context = load_kubeconfig(compiled.name, compiled.stack, args.kubeconfig, project().root)
        cluster = Cluster(data, context)
    except ObservationError as error:
        print(f"gpufleet: {error}", file=sys.stderr)
        return EXIT_USAGE
    while True:
        trouble, status = None, None
        try:
            status = compare(compiled.plan, cluster.observe())
        except ObservationError as error:
            trouble = error
        if (status is not None and status.agrees) or not time.monotonic() < deadline:
            break
        time.sleep(INTERVAL_SECONDS)
    if status is None:
        print(f"gpufleet: {trouble}", file=sys.stderr)
        return EXIT_USAGE
    if args.json:
        print(json.dumps(status.as_dict(), indent=2))
    else:
        from gpufleet.status.render import render

        print(render(status))
    return EXIT_OK if status.agrees else EXIT_ERRORS
