"""Prints the hosts of a stack file with groups and variables for Ansible, as `ansible-inventory` does.

examples:
    gpufleet inventory -s idc --graph
    gpufleet inventory -s idc --host gpu01

Exit code: 0 no errors, 1 errors in the stack file, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK, EXIT_USAGE
from gpufleet.cli.stack_option import add_stack_options, compile_option, stack_file
from gpufleet.findings.finding import closest_match, told
from gpufleet.findings.render import summary, text
from gpufleet.inventory.load import inventory_of, inventory_rules, warnings
from gpufleet.inventory.show import as_json, graph, listing
from gpufleet.stackfile.project import project


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "inventory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_stack_options(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="groups, hosts and variables as JSON")
    what.add_argument("--host", metavar="NAME", help="the variables of one host, as JSON")
    what.add_argument("--graph", action="store_true", help="groups and hosts as a tree")


def run(args: argparse.Namespace) -> int:
    """Prints the inventory. With errors it prints only those and returns 1."""
    root = project(stack_file(args).resolve().parent).root
    compiled = compile_option(args, inventory_rules(root, os.environ))
    found = inventory_of(compiled, root, os.environ)
    shown = told(compiled.found) if found is None else warnings(compiled)
    if shown:
        print("\n\n".join([*map(text, shown), summary(shown)]), file=sys.stderr)
    if found is None:
        return EXIT_ERRORS
    if args.host is not None:
        variables = found.variables()
        if args.host not in variables:
            return _unknown(args.host, sorted(variables))
        print(as_json(variables[args.host]))
    else:
        print(graph(found) if args.graph else as_json(listing(found)))
    return EXIT_OK


def _unknown(host: str, known: list[str]) -> int:
    near = closest_match(host, known)
    print(f"gpufleet: no host {host} in this stack{f'; did you mean {near}?' if near else ''}", file=sys.stderr)
    return EXIT_USAGE
