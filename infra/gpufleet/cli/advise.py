"""Recommends a sharing method and a number of replicas from measurements, and prints the lines for the stack file.

examples:
    gpufleet advise --workload inference --gpu H200 --memory 3 --users 4
    gpufleet advise --profile bench.jsonl --memory 8 --users 4 --latency 20
    gpufleet advise --step 12.5 --gpu-active 40 --sm-active 25 --gpu H200 --memory 20 --users 4

Exit code: 0 advice, 1 no method answers the request, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from gpufleet.advise.advice import advise
from gpufleet.advise.render import as_dict, as_text
from gpufleet.advise.request import CLASSES, ENVIRONMENTS, ISOLATIONS, Request, bad_values, problems
from gpufleet.catalog import GpuModel, gpu_groups, gpu_model, gpu_models
from gpufleet.findings.finding import closest_match
from gpufleet.measure.isolation import companies, own_companies
from gpufleet.measure.measurements import Measurement, measurements, own_measurements
from gpufleet.measure.predict import Alone, alone_of, fills
from gpufleet.measure.workloads import COMMAND, TIME_SLICING


def add_parser(subparsers: Any) -> None:
    """Registers the sub-command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "advise", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", choices=CLASSES, help="class of the pods; without it, that of --profile")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="output of your own 'gpufleet bench'")
    alone = parser.add_argument_group(
        "what one process does alone", "from DCGM and your program's own rate, where you have no bench of it"
    )
    alone.add_argument("--step", type=float, metavar="MS", help="time of one step or request, begin to begin")
    alone.add_argument(
        "--gpu-active", type=float, metavar="PERCENT", help="how long the GPU works: GR_ENGINE_ACTIVE or GPU_UTIL"
    )
    alone.add_argument("--sm-active", type=float, metavar="PERCENT", help="SM_ACTIVE; makes the answer for MPS closer")
    alone.add_argument("--dram-active", type=float, metavar="PERCENT", help="DRAM_ACTIVE; the same")
    parser.add_argument("--gpu", metavar="MODEL", help="GPU model, for example H200; without it, that of --profile")
    parser.add_argument(
        "--memory", type=float, required=True, metavar="GIB", help="GPU memory of one pod, CUDA context included"
    )
    parser.add_argument("--users", type=int, required=True, metavar="N", help="how many pods run at the same time")
    parser.add_argument("--latency", type=float, metavar="MS", help="the p99 of a step or request must stay below this")
    parser.add_argument(
        "--slowdown", type=float, metavar="TIMES", help="the slowest pod may take this many times as long as alone"
    )
    parser.add_argument("--isolation", choices=ISOLATIONS, default="none", help="what must be kept apart")
    parser.add_argument("--environment", choices=ENVIRONMENTS, default="dev", help="where the pods run")
    parser.add_argument("--unequal", action="store_true", help="the pods need different amounts of memory")
    parser.add_argument("--price", type=float, metavar="PER_GPU_HOUR", help="price of one GPU for one hour")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Returns 0 with advice, 1 when no method answers the request, 2 on wrong usage."""
    try:
        lines = None if args.profile is None else _lines(args.profile)
        profile = None if lines is None else _profile(args, lines)
        request = _request(args, profile)
    except OSError as error:
        return _fail([f"{error.filename}: {error.strerror}"], 2)
    except ValueError as error:
        return _fail([str(error)], 2)
    wrong = problems(request)
    if wrong:
        return _fail(wrong, 2 if bad_values(request) else 1)
    # A class measured beside others says nothing of the user's own program.
    shipped = () if request.alone else companies()
    beside = shipped if lines is None else own_companies(lines, request.gpu.id)
    advice = advise(request, measurements(), beside)
    print(json.dumps(as_dict(request, advice), indent=2) if args.json else as_text(request, advice))
    return 0


def _fail(problems: list[str], code: int) -> int:
    for problem in problems:
        print(f"gpufleet advise: {problem}", file=sys.stderr)
    return code


def _lines(path: Path) -> list[dict[str, Any]]:
    from gpufleet.bench.options import read_lines

    return read_lines([path])


def _profile(args: argparse.Namespace, lines: list[dict[str, Any]]) -> tuple[Measurement, ...]:
    model = _model(args.gpu) if args.gpu else None
    found = own_measurements(lines, model.id if model else None)
    if not found:
        raise ValueError(f"{args.profile}: no measured point in it")
    for name in {one.gpu for one in own_measurements(lines, None)} if model else ():
        there = _model(name)
        if model and there and there.id != model.id and model.id not in gpu_groups():
            raise ValueError(f"{args.profile} was measured on {name}, not on {args.gpu}")
    return found


def _model(name: str) -> GpuModel | None:
    """A model of the catalogue. nvidia-smi writes spaces where the node label, and so the catalogue, has dashes."""
    return gpu_model(name) or gpu_model(name.replace(" ", "-"))


def _request(args: argparse.Namespace, profile: tuple[Measurement, ...] | None) -> Request:
    workloads = sorted({one.series.workload for one in profile}) if profile else []
    alone = _alone(args)
    workload = args.workload or (workloads[0] if len(workloads) == 1 else COMMAND if alone else None)
    if workload is None:
        many = f"the profile has several ({', '.join(workloads)}): choose one with --workload" if workloads else ""
        raise ValueError(many or "--workload CLASS, --profile FILE or --step MS is needed")
    name = args.gpu or (profile[0].gpu if profile else None)
    if name is None:
        raise ValueError("--gpu MODEL is needed")
    model = _model(name)
    if model is None:
        longer = [known for known in gpu_models() if known.lower().startswith(f"{name.lower()}-")]
        near = closest_match(name, gpu_models())
        meant = f" ({', '.join(longer)})" if longer else f" (did you mean {near}?)" if near else ""
        raise ValueError(f"GPU '{name}' is not in the catalogue{meant}; see 'gpufleet catalog show gpu_models'")
    if profile:
        lines = [one for one in profile if one.gpu in (model.id, name)]
        if workload not in workloads:
            raise ValueError(f"{args.profile} has no measurement of {workload}; it has {', '.join(workloads)}")
        profile = tuple(Measurement(m.id, model.id, m.driver, m.date, m.machine, m.series, own=True) for m in lines)
        of_class = (m.series for m in profile if (m.series.workload, m.series.method) == (workload, TIME_SLICING))
        alone = alone or next((found for one in of_class if (found := alone_of(one))), None)
    return Request(
        workload=workload, gpu=model, memory_gib=args.memory, users=args.users, latency_ms=args.latency,
        slowdown=args.slowdown, isolation=args.isolation, environment=args.environment, alike=not args.unequal,
        price=args.price, profile=profile, alone=alone,
    )  # fmt: skip


def _alone(args: argparse.Namespace) -> Alone | None:
    """What the options say one process does alone. Raises ValueError for half of it and for impossible parts."""
    parts = {name: getattr(args, name) for name in ("gpu_active", "sm_active", "dram_active")}
    given = [f"--{name.replace('_', '-')}" for name, value in parts.items() if value is not None]
    if args.step is None and not given:
        return None
    if args.step is None or args.gpu_active is None:
        raise ValueError("--step and --gpu-active belong together: the time of a step, and the part of it on the GPU")
    if not 0 < args.step < float("inf"):
        raise ValueError(f"--step {args.step:g} is not a number above 0")
    for name, value in parts.items():
        if value is not None and not (0 if name != "gpu_active" else 1e-9) <= value <= 100:
            raise ValueError(f"--{name.replace('_', '-')} {value:g} is not a part in percent, above 0 and up to 100")
    gpu, sm, dram = (None if value is None else value / 100 for value in parts.values())
    assert gpu is not None
    return Alone((args.step,), gpu, fills(gpu, sm, dram))
