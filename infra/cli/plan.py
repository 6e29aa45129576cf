"""`gpufleet plan`: needs no credentials, no engine, no cluster."""

from __future__ import annotations

import argparse
import json
from typing import Any

from infra.cli.main import EXIT_ERRORS, EXIT_OK
from infra.cli.stack_option import add_stack_options, compile_option


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser("plan", description=__doc__)
    add_stack_options(parser)
    parser.add_argument("--json", action="store_true", help="plan and diagnostics as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Prints the plan and all diagnostics; 1 when there are errors."""
    compiled = compile_option(args)
    if args.json:
        document = {
            "stack": compiled.name,
            "ok": not compiled.failed,
            "diagnostics": [d.as_dict() for d in compiled.found],
            "plan": compiled.plan.as_dict() if compiled.plan else None,
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        from infra.plan.render import render

        print(render(compiled.name, compiled.plan, compiled.found))
    return EXIT_ERRORS if compiled.failed else EXIT_OK
