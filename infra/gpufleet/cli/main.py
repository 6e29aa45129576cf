"""The `gpufleet` command. Sub-commands load only what they need."""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence

from gpufleet import __version__
from gpufleet.extras import MissingExtraError

#: name -> (module, one line of help). A module has `add_parser(subparsers)` and `run(args) -> int`.
COMMANDS = {
    "plan": ("gpufleet.cli.plan", "what a stack file will do, and what is wrong with it"),
    "status": ("gpufleet.cli.status", "declared against observed, per node"),
    "schema": ("gpufleet.cli.schema", "the JSON Schema of stack files"),
    "catalog": ("gpufleet.cli.catalog", "the tables behind the plan"),
    "explain": ("gpufleet.cli.explain", "what a finding means, with a wrong and a right example"),
    "predict": ("gpufleet.cli.predict", "what the device plugin does with a configuration"),
    "lint": ("gpufleet.cli.lint", "what your YAML will really do"),
    "advise": ("gpufleet.cli.advise", "which sharing method, how many replicas, at what cost"),
    "bench": ("gpufleet.cli.bench", "measure sharing on a GPU"),
    "inventory": ("gpufleet.cli.inventory", "hosts, groups and variables for Ansible"),
    "mirror-list": ("gpufleet.cli.mirror_list", "everything to mirror for a stack"),
}

EXIT_OK, EXIT_ERRORS, EXIT_USAGE = 0, 1, 2


def _available() -> dict[str, tuple[str, str]]:
    return {name: entry for name, entry in COMMANDS.items() if importlib.util.find_spec(entry[0]) is not None}


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufleet", description="One reviewed YAML file per stack to a working, shared NVIDIA GPU fleet."
    )
    parser.add_argument("--version", action="version", version=f"gpufleet {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    if chosen in COMMANDS:
        importlib.import_module(COMMANDS[chosen][0]).add_parser(subparsers)
    else:
        for name, (_, line) in _available().items():
            subparsers.add_parser(name, help=line, add_help=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point.

    Returns:
        0 clean, 1 errors found, 2 wrong usage.
    """
    # Looking for plugins of pydantic reads the metadata of every installed package; there are none here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()  # a command ends before there is garbage worth looking for
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = next((w for w in words if not w.startswith("-")), None)
    try:
        args = _parser(chosen).parse_args(words)
        module = importlib.import_module(COMMANDS[args.command][0])
        code: int = module.run(args)
        sys.stdout.flush()
        return code
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERRORS
    except Exception as error:
        from gpufleet.internal_error import internal_error

        print(internal_error(error), file=sys.stderr)
        return EXIT_ERRORS
    except KeyboardInterrupt:
        print("gpufleet: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
