"""Lists the images, charts, packages, keys and files that a stack needs, for a mirror; and what is not known yet.

examples:
    gpufleet mirror-list -s idc
    gpufleet mirror-list -s idc --json

Exit code: 0 no errors, 1 errors in the stack file, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import date
from typing import Any

from gpufleet.cli.main import EXIT_ERRORS, EXIT_OK
from gpufleet.cli.stack_option import add_stack_options, compile_option
from gpufleet.mirror.mirror_list import MirrorList, Repository, mirror_list


def add_parser(subparsers: Any) -> None:
    """Adds the command to the `gpufleet` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "mirror-list", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_stack_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Prints the list. With errors in the stack file it prints only those and returns 1."""
    compiled = compile_option(args)
    if compiled.fleet is None or compiled.plan is None:
        from gpufleet.findings.finding import told
        from gpufleet.findings.render import summary, text

        shown = told(compiled.found)
        print("\n\n".join([*map(text, shown), summary(shown)]), file=sys.stderr)
        return EXIT_ERRORS
    found = mirror_list(compiled.fleet, compiled.plan, date.today())
    print(json.dumps(found.as_dict(), indent=2) if args.json else "\n".join(_lines(found)))
    return EXIT_OK


def _lines(found: MirrorList) -> Iterator[str]:
    yield "images:"
    for image in found.images:
        yield f"  {image.source}" + (f"  as  {image.pulled_as}" if image.pulled_as != image.source else "")
    yield "charts:" if found.charts else "charts: none"
    for chart in found.charts:
        yield f"  {chart.name} {chart.version}  {chart.repository}"
    for repository in found.repositories:
        yield from _repository(repository)
    yield "files:" if found.files else "files: none"
    for file in found.files:
        yield f"  {file.address}" + (f"  as  {file.used}" if file.used != file.address else "")
        yield f"    sha256 {file.sha256 or 'unknown'}"
    yield "unknown:" if found.unknown else "unknown: nothing"
    yield from (f"  {line}" for line in found.unknown)


def _repository(repository: Repository) -> Iterator[str]:
    yield f"packages for {repository.os} {repository.architecture}, {repository.name}:"
    if repository.address:
        yield f"  from  {repository.address}"
    if repository.used and repository.used != repository.address:
        yield f"  as    {repository.used}"
    for key in repository.keys:
        yield f"  key   {key.fingerprint or 'fingerprint unknown'}  {key.address or 'address unknown'}"
    for package in repository.packages:
        version = f"={package.version}" if package.version else ""
        yield f"    {package.name}{version}" + (f"  ({package.note})" if package.note else "")
