"""Command line of the bench: for ``gpufleet bench`` and for the archive that a Job runs."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from gpufleet.bench import memory, plot, report
from gpufleet.bench.lines import is_line
from gpufleet.bench.plan import OTHER_WORKLOADS, TIME_SLICES, Run
from gpufleet.bench.runner import Bench
from gpufleet.bench.settings import SettingsError, require
from gpufleet.measure import beside
from gpufleet.measure.series import Series, collect
from gpufleet.measure.workloads import COMMAND, DECODER, METHODS, MIG, TIME_SLICING, WORKLOADS, Sizes

MOST_PROCESSES = 64
_WORKLOADS = {**WORKLOADS, **OTHER_WORKLOADS}
_CLASSES = {name: about for name, about in WORKLOADS.items() if name != COMMAND}  # can pause and go on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workload", default="training,inference,notebook,copy", help=f"one or more of {', '.join(_WORKLOADS)}"
    )
    parser.add_argument(
        "--neighbour", metavar="CLASS,...", help="run one process of the workload beside n-1 processes of this class"
    )
    parser.add_argument("--method", default=TIME_SLICING, help=f"one or more of {', '.join(METHODS)}")
    parser.add_argument(
        "--processes", default="1-8", metavar="N,...", help="how many processes share the GPU: 1-8 or 1,2,4,8"
    )
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="measure each point N times")
    parser.add_argument("--window", type=float, default=2.0, metavar="S", help="seconds that one point is measured")
    parser.add_argument(
        "--alone", type=float, metavar="S",
        help="seconds that one process alone is measured (default: as --window); from 4 on with how busy the GPU is",
    )  # fmt: skip
    parser.add_argument("--cache", type=float, metavar="GIB", help="cache of workload decoder (default: 6)")
    parser.add_argument("--warm-up", type=float, default=0.3, metavar="S", help="seconds before that are not measured")
    parser.add_argument(
        "--backend", choices=["auto", "torch", "driver"], default="auto", help="PyTorch or the CUDA driver alone"
    )
    parser.add_argument("--fresh", action="store_true", help="start new processes for each point")
    parser.add_argument("--time-limit", type=float, metavar="S", help="skip points that would end after S seconds")
    parser.add_argument("--gpu", metavar="UUID", help="index or UUID of the GPU (default: the first)")
    parser.add_argument("--step-pattern", metavar="REGEX", help="for COMMAND: an output line that matches is one step")
    parser.add_argument(
        "--allow-settings", action="store_true", help="allow changes of time slice and MIG on this machine"
    )
    parser.add_argument("--time-slice", metavar="LENGTH,...", help=f"{'|'.join(TIME_SLICES)}; needs --allow-settings")
    parser.add_argument("--mig", metavar="PROFILE", help="MIG profile for method mig; needs --allow-settings")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the measured JSON lines to FILE (default: standard output)"
    )
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the result; needs matplotlib (extra 'bench')")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="measure nothing; report lines of earlier runs",
    )
    parser.add_argument("program", nargs="*", metavar="COMMAND", help="your own program to measure, after --")


def parse_counts(text: str) -> tuple[int, ...]:
    """``1-3,8`` -> (1, 2, 3, 8). Raises ValueError outside 1 to 64."""
    counts: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part, re.ASCII)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high <= MOST_PROCESSES:
            raise ValueError(f"give numbers from 1 to {MOST_PROCESSES} such as 1-8 or 1,2,4,8")
        counts.update(range(low, high + 1))
    return tuple(sorted(counts))


def _names(text: str, known: dict[str, Any], what: str, problems: list[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    problems += [f"{what} '{name}' is unknown; known: {', '.join(known)}" for name in names if name not in known]
    return names


def _pattern_problems(pattern: str, workloads: tuple[str, ...]) -> list[str]:
    if COMMAND not in workloads:
        return ["--step-pattern is for the command of workload 'command'"]
    try:
        re.compile(pattern)
    except re.error as error:
        return [f"--step-pattern '{pattern}' is no regular expression: {error}"]
    return []


def to_run(args: argparse.Namespace) -> tuple[Run, list[str]]:
    """The run that the arguments ask for, and every problem in them."""
    problems: list[str] = []
    workloads = _names(args.workload, _WORKLOADS, "workload", problems)
    neighbours = _names(args.neighbour or "", _CLASSES, "neighbour", problems)
    if args.program and COMMAND not in workloads:
        workloads = (COMMAND,)
    methods = _names(args.method, METHODS, "method", problems)
    slices = _names(args.time_slice or "", TIME_SLICES, "time slice", problems)
    try:
        processes = parse_counts(args.processes)
    except ValueError as error:
        processes = (1,)
        problems.append(f"--processes '{args.processes}': {error}")
    if COMMAND in workloads and not args.program:
        problems.append("workload 'command' needs the command after '--'")
    if args.repetitions < 1 or not 0 < args.window < math.inf or not 0 <= args.warm_up < math.inf:
        problems.append("--repetitions and --window must be above 0, --warm-up not below")
    if args.alone is not None and not 0 < args.alone < math.inf:
        problems.append("--alone must be above 0")
    if args.cache is not None and not 0 < args.cache < math.inf:
        problems.append("--cache must be above 0")
    if args.cache is not None and DECODER not in workloads:
        problems.append("--cache is for workload decoder")
    if args.time_limit is not None and not 0 < args.time_limit < math.inf:
        problems.append("--time-limit must be above 0")
    if neighbours:
        problems += [f"--neighbour has no place beside workload '{w}'" for w in workloads if w not in _CLASSES]
        problems += [] if max(processes) > 1 else ["--neighbour needs numbers of processes above 1"]
    if args.step_pattern is not None:
        problems += _pattern_problems(args.step_pattern, workloads)
    if MIG in methods and not args.mig:
        problems.append("method 'mig' needs --mig PROFILE")
    if args.mig and MIG not in methods:
        problems.append(f"--mig {args.mig} needs method mig")
    if slices and TIME_SLICING not in methods:
        problems.append("--time-slice needs method timeSlicing")
    cut = f"MIG layout '{args.mig}'" if args.mig else "a MIG layout"
    for wanted, what in ((slices, f"time slice '{args.time_slice}'"), (MIG in methods, cut)):
        if wanted:
            try:
                require(args.allow_settings, what)
            except SettingsError as error:
                problems.append(str(error))
    run = Run(
        workloads=workloads, methods=methods, processes=processes, repetitions=args.repetitions, window=args.window,
        warm_up=args.warm_up, backend=args.backend, fresh=args.fresh, time_limit=args.time_limit, gpu=args.gpu,
        command=tuple(args.program), step_pattern=args.step_pattern, time_slices=slices, mig_profile=args.mig,
        allow_settings=args.allow_settings, neighbours=neighbours, alone=args.alone,
        sizes=Sizes() if args.cache is None else Sizes(cache_gib=args.cache),
    )  # fmt: skip
    return run, problems


def to_words(args: argparse.Namespace) -> list[str]:
    """The command line that makes another bench measure the same. It names every option, so that other defaults there
    change nothing. Options about files are left out."""
    words = ["--workload", args.workload, "--method", args.method, "--processes", args.processes]
    words += ["--repetitions", str(args.repetitions), "--window", f"{args.window:g}", "--warm-up", f"{args.warm_up:g}"]
    words += ["--backend", args.backend]
    words += ["--fresh"] if args.fresh else []
    for option, value in (
        ("--neighbour", args.neighbour),
        ("--alone", args.alone),
        ("--cache", args.cache),
        ("--time-limit", args.time_limit),
        ("--gpu", args.gpu),
        ("--step-pattern", args.step_pattern),
    ):
        words += [] if value is None else [option, f"{value:g}" if isinstance(value, float) else value]
    return [*words, "--", *args.program] if args.program else words


def read_lines(paths: list[Path]) -> list[dict[str, Any]]:
    """The JSON lines of several files. Raises OSError, or ValueError with file and line."""
    rows: list[dict[str, Any]] = []
    unfit: str | None = None
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path}: not UTF-8") from None
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not JSON: {error}") from None
            if not isinstance(row, dict) or "kind" not in row:
                raise ValueError(f"{path}:{number}: not a line of a bench")
            unfit = unfit or (None if is_line(row) else f"{path}:{number}: this line lacks what a bench writes into it")
            rows.append(row)
    if unfit:
        raise ValueError(unfit)
    return rows


def execute(args: argparse.Namespace, out: IO[str] | None = None) -> int:
    """Run the bench or report earlier lines. Returns 0 all measured, 1 something failed, 2 wrong usage."""
    out = out or sys.stdout
    if args.source:
        try:
            rows = read_lines(args.source)
            if not rows:
                raise ValueError(f"{', '.join(map(str, args.source))}: no line in it")
        except OSError as error:
            print(f"gpufleet bench: {error.filename}: {error.strerror}", file=sys.stderr)
            return 2
        except ValueError as error:
            print(f"gpufleet bench: {error}", file=sys.stderr)
            return 2
        return _report(rows, args.plot, out)
    run, problems = to_run(args)
    if problems:
        for problem in problems:
            print(f"gpufleet bench: {problem}", file=sys.stderr)
        return 2
    rows = []
    try:
        stream = args.output.open("w") if args.output else None
    except OSError as error:
        print(f"gpufleet bench: {args.output}: {error.strerror}", file=sys.stderr)
        return 2

    def write(row: dict[str, Any]) -> None:
        rows.append(row)
        print(json.dumps(row), file=stream or out, flush=True)

    try:
        bench = Bench(run, write, lambda text: print(text, file=sys.stderr, flush=True))
        bench.execute()
    except KeyboardInterrupt:
        print("gpufleet bench: stopped; what was measured is reported", file=sys.stderr)
        bench.failures += 1
    finally:
        if stream:
            stream.close()
    # Without --output the lines are on standard output, so the table goes beside them.
    return max(_report(rows, args.plot, out if stream else sys.stderr), 1 if bench.failures else 0)


def _report(rows: list[dict[str, Any]], path: Path | None, out: IO[str]) -> int:
    series = collect(rows)
    parts = (report.table(series, rows), beside.text(beside.collect(rows)), memory.text(rows))
    print("\n".join(part for part in parts if part), file=out)
    return 0 if path is None else picture(series, path, report.title(rows))


def picture(series: Sequence[Series], path: Path, title: str) -> int:
    """Draw the plot; 1 with a message where that is not possible."""
    try:
        plot.draw(series, path, title)
    except plot.PlotError as error:
        print(f"gpufleet bench: no plot: {error}", file=sys.stderr)
        return 1
    return 0
