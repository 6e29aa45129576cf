"""Compares the cluster with the stack file, node by node, and names the cause of each difference.

examples:
    gpufleet status -s local
    gpufleet status -s aks-dev --wait 600

Exit code: 0 they agree, 1 they differ, 2 the cluster or the stack file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK, EXIT_USAGE
from gpufleet.cli.stack_option import add_stack_options, compile_option
from gpufleet.extras import require
from gpufleet.stackfile.project import project


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "status", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_stack_options(parser)
    parser.add_argument("--wait", type=seconds, default=0, metavar="SECONDS", help="try for so long until they agree")
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="use this one, not that of the stack file or the Pulumi stack"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def seconds(text: str) -> float:
    """The value of a time option. Raises ValueError, which argparse reports as wrong usage."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def say(text: str) -> None:
    """What is waited for, for people who wonder why nothing is printed."""
    print(f"gpufleet: {text}", file=sys.stderr, flush=True)


def run(args: argparse.Namespace) -> int:
    """Prints one line per node and the cause of each difference."""
    require("status", "gpufleet status")
    compiled = compile_option(args)
    if compiled.plan is None or compiled.stack is None:
        print(f"gpufleet: the stack file has errors; see `gpufleet plan -s {compiled.name}`", file=sys.stderr)
        return EXIT_USAGE
    from gpufleet.status.compare import compare
    from gpufleet.status.observe import Cluster, ObservationError, load_kubeconfig

    trouble, status = None, None
    try:
        data, context = load_kubeconfig(compiled.name, compiled.stack, args.kubeconfig, project().root)
        cluster = Cluster(data, context, say)
    except ObservationError as error:
        print(f"gpufleet: {error}", file=sys.stderr)
        return EXIT_USAGE
    for reading in cluster.readings(args.wait):
        trouble = reading if isinstance(reading, ObservationError) else None
        status = None if isinstance(reading, ObservationError) else compare(compiled.plan, reading)
        if status is not None and status.agrees:
            break
    if status is None:
        print(f"gpufleet: {trouble}", file=sys.stderr)
        return EXIT_USAGE
    if args.json:
        print(json.dumps(status.as_dict(), indent=2))
    else:
        from gpufleet.status.render import render

        print(render(status))
    return EXIT_OK if status.agrees else EXIT_ERRORS
