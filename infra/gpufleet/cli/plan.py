"""Shows what a stack file will do and everything that is wrong with it. Needs no credentials and no cluster.

examples:
    gpufleet plan -s aks-dev
    gpufleet plan -f other/Pulumi.test.yaml --json
    gpufleet plan -s idc --facts facts/

Exit code: 0 no errors, 1 errors, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK, EXIT_USAGE
from gpufleet.cli.stack_option import add_stack_options, compile_option
from gpufleet.compiled import MoreRules


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "plan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_stack_options(parser)
    parser.add_argument("--json", action="store_true", help="print plan and findings as one JSON document")
    parser.add_argument(
        "--facts",
        type=Path,
        metavar="PATH",
        help="compare with what the hosts reported: a folder of HOST.json, as playbooks/verify.yml writes it,"
        " or one JSON document",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the plan and all findings. Returns 1 when there are errors."""
    compiled = compile_option(args, _facts(args.facts) if args.facts is not None else None)
    if args.json:
        document = {
            "stack": compiled.name,
            "ok": not compiled.failed,
            "diagnostics": [d.as_dict() for d in compiled.found],
            "plan": compiled.plan.as_dict() if compiled.plan else None,
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        from gpufleet.plan.render import render

        print(render(compiled.name, compiled.plan, compiled.found))
    return EXIT_ERRORS if compiled.failed else EXIT_OK


def _facts(path: Path) -> MoreRules:
    """The rules that compare host facts with the stack. Exits with a usage message when the facts cannot be opened."""
    from gpufleet.inventory.facts_file import read_facts
    from gpufleet.rules.host_facts import check_facts

    try:
        facts, found = read_facts(path)
    except OSError as error:
        print(f"gpufleet: cannot read {path}: {error.strerror}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
    return lambda fleet: found if fleet is None or facts is None else [*found, *check_facts(fleet, facts)]
