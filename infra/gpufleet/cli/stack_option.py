"""`-s STACK` or `-f FILE`: which stack file a command works on."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from gpufleet.cli.main import EXIT_USAGE
from gpufleet.compiled import Compiled, MoreRules, compile_file, stack_name

STACKS = "stacks"


def add_stack_options(parser: argparse.ArgumentParser) -> None:
    """Adds `-s` and `-f`. One of the two is required."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("-s", "--stack", help=f"name of a stack of this project: {STACKS}/Pulumi.STACK.yaml")
    group.add_argument("-f", "--file", type=Path, help="path of a stack file")


def project_root(start: Path | None = None) -> Path:
    """The nearest folder upwards that holds Pulumi.yaml, else the current one."""
    here = (start or Path.cwd()).resolve()
    return next((p for p in (here, *here.parents) if (p / "Pulumi.yaml").is_file()), here)


def find_stack(name: str, root: Path) -> Path:
    """The file of a stack of the project at `root`.

    Raises:
        LookupError: there is no such stack; the message says which there are.
    """
    folder = root / STACKS
    path = folder / f"Pulumi.{name}.yaml"
    if not path.is_file():
        known = sorted(stack_name(p) for p in folder.glob("Pulumi.*.yaml"))
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise LookupError(f"no stack {name} in {STACKS}/ (there are: {', '.join(known) or 'none'}){hint}")
    return path


def stack_file(args: argparse.Namespace) -> Path:
    """The path of the chosen stack file. Exits with a usage message when there is no such stack."""
    if args.file is not None:
        return Path(args.file)
    try:
        return find_stack(args.stack, project_root())
    except LookupError as error:
        print(f"gpufleet: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None


def compile_option(args: argparse.Namespace, also: MoreRules | None = None) -> Compiled:
    """Reads, checks and plans the chosen stack file. `also` adds rules of the command's own.

    Exits with a usage message when the file cannot be opened.
    """
    path = stack_file(args)
    shown = f"{STACKS}/{path.name}" if args.file is None else str(path)
    try:
        return compile_file(path, args.stack, shown, also)
    except OSError as error:
        print(f"gpufleet: cannot read {shown}: {error.strerror}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
