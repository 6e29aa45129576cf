"""`gpufleet explain CODE`: what a finding means, where that is known from, and a wrong and a right example."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from gpufleet.cli.main import EXIT_OK, EXIT_USAGE


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "explain",
        description=__doc__,
        epilog="examples:\n    gpufleet explain GF307\n    gpufleet explain GF307 GF302 --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="codes such as GF307; without one, a list of all")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    """Prints the rules; 2 when there is no rule of a code."""
    from gpufleet.findings.explain import as_dict, as_text
    from gpufleet.findings.finding import closest_match
    from gpufleet.findings.registry import rules
    from gpufleet.findings.rule import general

    known = rules()
    wanted = [code.upper() for code in args.codes]
    unknown = [code for code in wanted if code not in known]
    for code in unknown:
        near = closest_match(code, [other for other in known if other[:3] == code[:3]] or known)
        hint = f"; did you mean {near}?" if near else "; `gpufleet explain` lists all"
        print(f"gpufleet: there is no rule {code}{hint}", file=sys.stderr)
    if unknown:
        return EXIT_USAGE
    chosen = [known[code] for code in wanted] or list(known.values())
    if args.json:
        print(json.dumps([as_dict(rule) for rule in chosen], indent=2, ensure_ascii=False))
    elif wanted:
        print("\n\n".join(as_text(rule) for rule in chosen))
    else:
        print("\n".join(f"{rule.code}  {rule.severity.value:<7}  {general(rule.title)}" for rule in chosen))
    return EXIT_OK
