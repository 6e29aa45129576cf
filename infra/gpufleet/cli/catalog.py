"""Shows the tables behind the plan (GPUs, sizes, drivers, ...), and which of their rows are old.

examples:
    gpufleet catalog show
    gpufleet catalog show gpu_models --json
    gpufleet catalog check --months 12
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from datetime import date
from typing import Any

from gpufleet.catalog import CatalogError, check

EXIT_OK, EXIT_OLD, EXIT_USAGE = 0, 1, 2


def add_parser(subparsers: Any) -> None:
    """Registers the command."""
    parser = subparsers.add_parser("catalog", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    old = actions.add_parser(
        "check", help="list rows whose source was last read too long ago; exit code 1 when there are any"
    )
    old.add_argument("--months", type=_whole_number, default=12, metavar="N", help="how old a row may be (default: 12)")
    old.add_argument("--json", action="store_true", help="print JSON")
    show = actions.add_parser("show", help="show the rows of a table, or of all tables of a file")
    show.add_argument("table", nargs="?", help="name of a table or file; without it the names of all tables are listed")
    show.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the command. Returns 0; 1 when rows are old; 2 when there is no such table."""
    try:
        return _check(args) if args.action == "check" else _show(args)
    except CatalogError as error:
        print(f"gpufleet: {error}", file=sys.stderr)
        return EXIT_USAGE


def _check(args: argparse.Namespace) -> int:
    old = check.old_rows(date.today(), args.months)
    if args.json:
        print(json.dumps([row._asdict() for row in old], indent=2))
    else:
        for row in old:
            print(f"{row.as_of:<10}  {row.file}.yaml {row.table}: {row.row}  ({row.source})")
        print(f"{len(old) or 'No'} {'row is' if len(old) < 2 else 'rows are'} older than {args.months} months.")
    return EXIT_OLD if old else EXIT_OK


def _show(args: argparse.Namespace) -> int:
    if args.table is None:
        names = check.table_names()
        print(json.dumps(names, indent=2) if args.json else "\n".join(f"{t:<28} {f}.yaml" for t, f in names.items()))
        return EXIT_OK
    found = check.find_table(args.table)
    if not found:
        near = difflib.get_close_matches(args.table, list(check.table_names()), n=3)
        hint = f" Near it: {', '.join(near)}." if near else " `gpufleet catalog show` lists them."
        print(f"gpufleet: no table {args.table!r}.{hint}", file=sys.stderr)
        return EXIT_USAGE
    if args.json:
        print(json.dumps(found, indent=2))
        return EXIT_OK
    for name, rows in found.items():
        print(f"{name} ({len(rows)})")
        for row in rows:
            print("\n".join(check.describe(row)))
    return EXIT_OK


def _whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of months, 0 or more")
    return int(text)
