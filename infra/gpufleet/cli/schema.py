"""Prints the JSON Schema of stack files, for completion and checks in an editor.

example:
    gpufleet schema > schema.json
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from gpufleet.cli.main import EXIT_OK


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    subparsers.add_parser("schema", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)


def run(args: argparse.Namespace) -> int:
    """Prints the schema as JSON."""
    import gpufleet.places  # noqa: F401  makes the kinds of clusters and the methods known
    from gpufleet.stackfile.schema import stack_schema

    print(json.dumps(stack_schema(), indent=2))
    return EXIT_OK
