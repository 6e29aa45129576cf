"""`-s STACK` or `-f FILE`: which stack file a command works on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpufleet.cli.main import EXIT_USAGE
from gpufleet.compiled import Compiled, MoreRules, compile_file
from gpufleet.stackfile.project import project


def add_stack_options(parser: argparse.ArgumentParser) -> None:
    """Adds `-s` and `-f`. One of the two is required."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("-s", "--stack", help="name of a stack of this Pulumi project")
    group.add_argument("-f", "--file", type=Path, help="path of a stack file")


def stack_file(args: argparse.Namespace) -> Path:
    """The path of the chosen stack file. Exits with a usage message when there is no such stack."""
    return _file_and_name(args)[0]


def _file_and_name(args: argparse.Namespace) -> tuple[Path, str]:
    """The stack file, and how messages name it."""
    if args.file is not None:
        return Path(args.file), str(args.file)
    here = project()
    try:
        path = here.find(args.stack)
    except LookupError as error:
        print(f"gpufleet: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
    return path, here.shown(path)


def compile_option(args: argparse.Namespace, also: MoreRules | None = None) -> Compiled:
    """Reads, checks and plans the chosen stack file. `also` adds rules of the command's own.

    Exits with a usage message when the file cannot be opened.
    """
    path, shown = _file_and_name(args)
    try:
        return compile_file(path, args.stack, shown, also)
    except OSError as error:
        print(f"gpufleet: cannot read {shown}: {error.strerror}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
