"""Measures how processes share the GPU of this machine, or prints a Kubernetes Job that does so on a node.

examples:
    gpufleet bench --method timeSlicing,mps --processes 1,2,4,8 --output bench.jsonl
    gpufleet bench --from bench.jsonl
    gpufleet bench --step-pattern "^step" --output mine.jsonl -- python train.py
    gpufleet bench --job --stack local --pool a100 | kubectl apply -f -

Exit code: 0 everything measured or printed, 1 something failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpufleet.bench import options
from gpufleet.bench.job import JobOptions, manifests, toleration
from gpufleet.extras import require

_LOCAL = ("output", "plot", "source", "from_catalogue", "catalogue")


def add_parser(subparsers: Any) -> None:
    """Registers the sub-command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_arguments(parser)
    parser.add_argument(
        "--from-catalogue", metavar="GPU", help="print the measurements of a GPU model that gpufleet ships"
    )
    parser.add_argument(
        "--catalogue",
        metavar="NAME=GPU",
        help="with --from: print the lines as catalogue tables, for example h200=H200",
    )
    job = parser.add_argument_group("Kubernetes Job")
    job.add_argument("--job", action="store_true", help="print the manifests of a Job that measures with these options")
    job.add_argument(
        "--stack", metavar="NAME", help="take selector, tolerations and resource from a pool of this stack"
    )
    job.add_argument("--stack-file", type=Path, metavar="FILE", help="the same for a stack file in any place")
    job.add_argument("--pool", metavar="NAME", help="the pool; needed where the stack has several")
    job.add_argument(
        "--image", default=JobOptions.image, help="an image with Python 3.11 or newer (default: %(default)s)"
    )
    job.add_argument("--namespace", default=JobOptions.namespace, help="default: %(default)s")
    job.add_argument("--name", default=JobOptions.name, help="name of the Job (default: %(default)s)")
    job.add_argument("--resource", metavar="NAME", help=f"GPU resource to request (default: {JobOptions.resource})")
    job.add_argument("--runtime-class", metavar="NAME", help="runtime class of the pod")
    job.add_argument(
        "--node-selector", action="append", default=[], metavar="KEY=VALUE", help="may be given several times"
    )
    job.add_argument(
        "--toleration", action="append", default=[], metavar="KEY[=VALUE]", help="may be given several times"
    )
    job.add_argument(
        "--deadline", type=int, default=JobOptions.deadline_seconds, metavar="S", help="end the Job after S seconds"
    )


def run(args: argparse.Namespace) -> int:
    """Returns 0 when everything was measured or printed, 1 when something failed, 2 on wrong usage."""
    if args.job:
        return _job(args)
    if args.plot:
        require("bench", "gpufleet bench --plot")
    if args.from_catalogue:
        return _from_catalogue(args)
    if args.catalogue:
        return _catalogue(args)
    return options.execute(args)


def _fail(text: str) -> int:
    print(f"gpufleet bench: {text}", file=sys.stderr)
    return 2


def _job(args: argparse.Namespace) -> int:
    _, problems = options.to_run(args)
    problems += [f"--{name.replace('_', '-')} has no place in a Job" for name in _LOCAL if getattr(args, name, None)]
    problems += _job_problems(args)
    if args.pool and not (args.stack or args.stack_file):
        problems.append("--pool needs --stack or --stack-file")
    base = JobOptions()
    if args.stack or args.stack_file:
        try:
            base = _on_pool(args)
        except LookupError as error:
            problems.append(str(error))
    if args.allow_settings:
        problems.append("--allow-settings has no place in a Job: its pod may not change a node's settings")
    if problems:
        return max(_fail(problem) for problem in problems)
    import yaml

    job = replace(
        base,
        image=args.image,
        namespace=args.namespace,
        name=args.name,
        resource=args.resource or base.resource,
        runtime_class=args.runtime_class or base.runtime_class,
        node_selector={**base.node_selector, **dict(text.split("=", 1) for text in args.node_selector)},
        tolerations=(*base.tolerations, *map(toleration, args.toleration)),
        deadline_seconds=args.deadline,
    )
    print(yaml.safe_dump_all(manifests(job, options.to_words(args)), sort_keys=False), end="")
    return 0


def _on_pool(args: argparse.Namespace) -> JobOptions:
    """What the Job needs to run on a pool of a stack.

    Raises:
        LookupError: no such stack or pool, a stack file with errors, or a pool that offers no GPU.
    """
    from gpufleet.compiled import compile_file
    from gpufleet.stackfile.project import project
    from gpufleet.teams.teams import pool_access

    path = args.stack_file or project().find(args.stack)
    shown = str(args.stack_file or project().shown(path))
    try:
        fleet = compile_file(path, args.stack, shown).fleet
    except OSError as error:
        raise LookupError(f"cannot read {shown}: {error.strerror}") from None
    if fleet is None:
        raise LookupError(f"{shown} has errors; see gpufleet plan")
    served = {pool.name: pool for pool in fleet.served}
    if args.pool is None and len(served) > 1:
        raise LookupError(f"{shown} has several pools; --pool takes one of {', '.join(served)}")
    name = args.pool or next(iter(served), "")
    if name not in served:
        raise LookupError(f"{shown} serves no pool {name}; it serves {', '.join(served) or 'none'}")
    access = pool_access(served[name])
    return JobOptions(
        resource=access.resources[0],
        runtime_class=access.runtime_class,
        node_selector=access.node_selector,
        tolerations=access.tolerations,
    )


_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
_KEY = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_LABEL}")
_VALUE = re.compile(rf"{_LABEL}?")
#: A Job's pods carry its name with a suffix, and the ConfigMap with a hash: 63 less 9 characters.
_MOST_OF_NAME = 54


def _job_problems(args: argparse.Namespace) -> list[str]:
    """Options that the API server would refuse in the manifests."""
    found = []
    if not _NAME.fullmatch(args.name) or len(args.name) > _MOST_OF_NAME:
        found.append(f"--name '{args.name}': small letters, digits and '-', at most {_MOST_OF_NAME}")
    if not _NAME.fullmatch(args.namespace) or len(args.namespace) > 63:
        found.append(f"--namespace '{args.namespace}': small letters, digits and '-', at most 63")
    if args.resource is not None and ("/" not in args.resource or not _KEY.fullmatch(args.resource)):
        found.append(f"--resource '{args.resource}': a name such as nvidia.com/gpu")
    if args.runtime_class is not None and not _NAME.fullmatch(args.runtime_class):
        found.append(f"--runtime-class '{args.runtime_class}': small letters, digits and '-'")
    if not args.image or any(letter.isspace() for letter in args.image):
        found.append(f"--image '{args.image}': no image")
    if args.deadline < 1:
        found.append(f"--deadline {args.deadline}: seconds above 0")
    for option, words, optional in (
        ("node-selector", args.node_selector, False),
        ("toleration", args.toleration, True),
    ):
        for text in words:
            key, equals, value = text.partition("=")
            if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or not (equals or optional):
                found.append(f"--{option} '{text}': {'KEY[=VALUE]' if optional else 'KEY=VALUE'}")
    return found


def _from_catalogue(args: argparse.Namespace) -> int:
    from gpufleet.bench import report
    from gpufleet.measure.measurements import best, measurements

    found = [m for m in measurements() if m.gpu.casefold() == args.from_catalogue.casefold()]
    if not found:
        known = ", ".join(sorted({m.gpu for m in measurements()}))
        return _fail(f"no measurements of '{args.from_catalogue}'; there are some of: {known}")
    chosen = best(found)
    dates = sorted({m.date for m in chosen})
    title = f"{chosen[0].gpu}, driver {', '.join(sorted({m.driver for m in chosen}))}, {' and '.join(dates)}"
    series = [m.series for m in chosen]
    print(report.table(series, [], title))
    return options.picture(series, args.plot, title) if args.plot else 0


def _catalogue(args: argparse.Namespace) -> int:
    from gpufleet.bench.table import as_yaml, to_tables
    from gpufleet.catalog import gpu_model, gpu_models
    from gpufleet.findings.finding import closest_match

    name, _, gpu = args.catalogue.partition("=")
    if not args.source or not name or not gpu:
        return _fail("--catalogue NAME=GPU needs --from FILE")
    try:
        lines = options.read_lines(args.source)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        return _fail(str(error))
    model = gpu_model(gpu)
    if model is None:
        near = closest_match(gpu, gpu_models())
        return _fail(f"--catalogue: no GPU '{gpu}' in the catalogue" + (f"; did you mean {near}?" if near else ""))
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", name):
        return _fail(f"--catalogue: '{name}' is no name of a table: small letters, digits and _")
    if not any(line["kind"] == "conditions" for line in lines):
        return _fail("--catalogue: no line of conditions in the files; a row needs to know where it was measured")
    print(as_yaml(to_tables(lines, name, model.id)), end="")
    return 0
