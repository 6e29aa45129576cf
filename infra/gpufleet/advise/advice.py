"""The advice: method, replicas, what a pod gets, why, and why not the others. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpufleet.advise.fragment import fragment
from gpufleet.advise.neighbours import Neighbour, neighbours
from gpufleet.advise.request import Facts, MigFit, Option, Request, facts, usable_gib
from gpufleet.advise.tree import Leaf, Step, decide
from gpufleet.measure.conditions import own_memory
from gpufleet.measure.interpolate import Expected
from gpufleet.measure.isolation import Company
from gpufleet.measure.measurements import Measurement
from gpufleet.measure.objections import MOST_TRAINING_PODS
from gpufleet.measure.predict import laws
from gpufleet.measure.workloads import TRAINING

#: Said of methods that share where nothing that was measured fits.
UNKNOWN = "what each gets was not measured"
CLASS = (
    "these are the figures of one program of its class, yours may gain more or less: measure it alone for a minute "
    "('gpufleet bench --processes 1 --window 15 --repetitions 4') and ask with --profile"
)
METHODS = ("timeSlicing", "mps", "mig", "hami", "none")


@dataclass(frozen=True)
class Advice:
    """``pods_per_gpu`` and ``gpus`` for the users asked for. ``expected`` is None where nothing was measured, and
    ``basis`` says in either case what the advice rests on. ``cost_per_pod`` is per hour, in the price's currency.
    ``neighbours``: what pods of other classes on the same GPU were measured to do to a request with a bound.
    """

    method: str
    because: str
    replicas: int | None
    pods_per_gpu: int
    gpus: int
    expected: Expected | None
    basis: str
    steps: list[Step]
    not_others: dict[str, str]
    notes: list[str]
    fragment: str
    cost_per_pod: float | None = None
    neighbours: list[Neighbour] = field(default_factory=list)
    unmeasured: str | None = None  # why nothing that was measured fits the request
    measure: list[str] = field(default_factory=list)  # the commands that would measure it


def advise(request: Request, found: Sequence[Measurement], companies: Sequence[Company] = ()) -> Advice:
    """Decide. ``found`` and ``companies``: the measurements of pods alike and of other classes to argue from.

    Raises ValueError with every problem of the request.
    """
    known = facts(request, request.profile if request.profile is not None else found)
    leaf, steps = decide(known)
    by_method = {"timeSlicing": known.time_slicing, "mps": known.mps}
    chosen = by_method.get(leaf.method)
    most = min(known.by_memory, request.users)
    pods = {"mig": known.mig.pods if known.mig else 1, "none": 1}.get(leaf.method, most)
    pods = chosen.pods if chosen else pods
    if leaf.method == "hami":
        from gpufleet.methods.hami import MOST_SPLITS  # a stack file's bound; its reader is loaded for nothing else

        pods = min(pods, MOST_SPLITS)
    expected, basis = _basis(request, known, leaf, chosen, known.time_slicing)
    shared = request.bound is not None and leaf.method in ("timeSlicing", "mps")
    beside, measured = neighbours(request, companies, leaf.method) if shared else ([], "")
    unknown = _unmeasured(request, known, leaf)
    open_question = leaf.method in ("timeSlicing", "mps") and expected is None
    return Advice(
        method=leaf.method,
        because=f"the fewest pods that share; {UNKNOWN}" if open_question else leaf.because,
        replicas=pods if leaf.method in ("timeSlicing", "mps") else None,
        pods_per_gpu=pods,
        gpus=math.ceil(request.users / pods),
        expected=expected,
        basis=basis,
        steps=steps,
        not_others={m: _why_not(request, known, m, leaf, by_method.get(m)) for m in METHODS if m != leaf.method},
        notes=[
            *_notes(request, leaf, pods, expected, known.mig),
            *([CLASS] if expected and chosen and chosen.measurement and not chosen.measurement.own else []),
            *([_beside_note(request, leaf, beside, measured)] if shared else []),
        ],
        fragment=fragment(known, leaf.method, pods, apart=bool(beside)),
        neighbours=beside,
        unmeasured=unknown,
        measure=commands(request, known) if unknown else [],
        cost_per_pod=None if request.price is None else request.price / pods,
    )


def _unmeasured(request: Request, known: Facts, leaf: Leaf) -> str | None:
    """What is not known, where the answer would need it."""
    if request.users == 1 or known.by_memory < 2 or leaf.method in ("mig", "hami"):
        return None
    return None if known.time_slicing.expected or known.mps.expected else known.time_slicing.why


def commands(request: Request, known: Facts) -> list[str]:
    """A bench of the user's own program, and the question with its result."""
    alone = "--processes 1 --window 15 --repetitions 4"
    several = f"--method timeSlicing,mps --processes {','.join(str(n) for n in (1, 2, 4, 8) if n <= known.by_memory)}"
    what = alone if request.gpu.id in laws() and request.latency_ms is None else several
    return [
        f"gpufleet bench {what} --output mine.jsonl -- YOUR COMMAND",
        f"gpufleet advise --profile mine.jsonl --gpu {request.gpu.id} --memory {request.memory_gib:g} "
        f"--users {request.users}",
    ]


def _too_large(request: Request) -> str:
    return f"two pods of {request.memory_gib:g} GiB do not fit into the {usable_gib(request.gpu):.1f} GiB of one GPU"


def _basis(
    request: Request, known: Facts, leaf: Leaf, chosen: Option | None, other: Option
) -> tuple[Expected | None, str]:
    if request.users == 1:
        return None, "there is one pod"
    if leaf.method == "none" and known.by_memory < 2:
        return None, _too_large(request)
    if leaf.method == "none":
        # One pod has what one process had alone; the measurement of either method shows why not more.
        alone = other.measurement
        return None, f"{other.why}" + (f" ({alone.conditions})" if alone else "")
    if chosen is None:
        return None, f"no measurement of {request.workload} under {leaf.method}; run 'gpufleet bench' to have one"
    if chosen.expected is None:
        return None, f"{chosen.why}; run 'gpufleet bench' on {request.gpu.id}"
    e = chosen.expected
    if chosen.measurement is None:
        return e, f"{predicted_from(request)} ({chosen.why})"
    how = "measured" if e.between is None else f"interpolated between {e.between[0]} and {e.between[1]} processes"
    return e, f"{how}: {chosen.measurement.conditions} ({chosen.why})"


def predicted_from(request: Request) -> str:
    """What a prediction rests on."""
    alone, law = request.alone, laws()[request.gpu.id]
    assert alone is not None
    fills = "not known which part of the GPU it fills" if alone.fills is None else f"fills {alone.fills:.0%} of the GPU"
    return (
        f"predicted from what one process does alone: a step of {alone.step_ms:.3g} ms, {alone.gpu_ms:.3g} ms of it on "
        f"the GPU ({fills}) and {alone.host_ms:.3g} ms of the host alone; costs of sharing as measured on {law.checked}"
    )


def _why_not(request: Request, known: Facts, method: str, leaf: Leaf, offered: Option | None) -> str:
    mig = known.mig
    limited = request.isolation == "memory" or request.environment == "production"
    if request.users == 1:
        return "there is one pod"
    if method == "none":
        return "a GPU would serve one pod only"
    if known.by_memory < 2 and method != "mig":
        return _too_large(request)
    if request.isolation == "fault" and method in ("timeSlicing", "mps", "hami"):
        return "a fault in one pod can end the others"
    if method == "timeSlicing" and limited:
        return "no limit on memory: one pod can take what the others were promised"
    if method == "mig":
        return _why_not_mig(request, mig)
    if method == "hami":
        return "not measured; it replaces NVIDIA's plugin and scheduler" + ("" if request.alike else " (first choice)")
    assert offered is not None
    if not request.alike and limited:
        return "it splits memory equally, the pods differ"
    if offered.pods < 2:
        return offered.why
    if offered.expected is None:
        return offered.why
    e = offered.expected
    within = "" if e.low is None or e.high is None else f" ({e.low:.4g} to {e.high:.4g})"
    gets = f"{e.total:.4g} steps/s in total{within}, slowest pod {e.least:.0%} of alone"
    return f"{e.n} pods per GPU, {gets}: {leaf.method} is preferred"


def _why_not_mig(request: Request, mig: MigFit | None) -> str:
    if not request.gpu.mig_profiles:
        return f"{request.gpu.id} has no MIG"
    if mig is None or mig.pods < 2:
        return f"no profile of {request.gpu.id} holds {request.memory_gib:g} GiB at least twice"
    fixed = f"{mig.profile} fits {mig.pods} times, but an instance's part is fixed whether the others are idle or not"
    return fixed + (", and it was not measured, so no bound can be promised" if request.bound else "")


def _notes(request: Request, leaf: Leaf, pods: int, e: Expected | None, mig: MigFit | None) -> list[str]:
    notes = []
    if e and e.gain > 1.02 * e.n:
        notes.append(f"{e.n} processes did more than {e.n} times one alone, which ran slower than usual: take 100 %")
    if request.profile and (note := own_memory(request.profile, request.memory_gib)):
        notes.append(note)
    if e and e.low is not None and e.high is not None and e.high > 1.2 * e.low:
        notes.append("the host's share makes the total unsteady: measure with several processes for a closer answer")
    if e and e.spread > 0.1:
        notes.append(f"the repetitions of this measurement differ by {e.spread:.0%}: leave that much room")
    if request.bound and e is None and leaf.method in ("mig", "hami"):
        notes.append(f"whether {leaf.method} keeps a {request.bound} was not measured")
    if leaf.method == "mig" and mig:
        notes.append(f"{mig.profile}: {mig.memory_gib:.1f} GiB or a little more for each pod")
    if request.workload == TRAINING and leaf.method in ("timeSlicing", "mps") and pods > MOST_TRAINING_PODS:
        notes.append(
            f"'gpufleet plan' warns of {pods} training pods on a GPU: they wait for each other, as allowed here"
        )
    if leaf.method == "timeSlicing":
        notes.append("no memory or fault isolation: pods must keep to their memory by themselves")
    if leaf.method == "mps":
        notes.append("the MPS daemon owns the GPU; a fatal fault in one pod can end the others")
    if leaf.method in ("timeSlicing", "mps") and pods * request.memory_gib * 1024 > 0.9 * (request.gpu.memory_mib or 0):
        notes.append("more than 90 % of the GPU's memory is promised")
    return notes


def _beside_note(request: Request, leaf: Leaf, beside: Sequence[Neighbour], measured: str) -> str:
    """What pods of other classes on the same GPU do to the bound, and what follows from it."""
    if not beside:
        return (
            f"pods of other classes beside these under {leaf.method} were not measured: give these a pool of their own"
        )
    broken: dict[str, str] = {}
    for one in beside:
        if not one.keeps:
            p99 = "" if one.p99_ms is None else f" p99 {one.p99_ms:.4g} ms,"
            broken.setdefault(one.workload, f"{one.others} x {one.workload}:{p99} {one.share:.0%} of its rate")
    if broken:
        return (
            f"a pod of another class on the same GPU breaks the {request.bound} ({'; '.join(broken.values())}; "
            f"measured: {measured}): give these pods a profile and a pool of their own"
        )
    most = max(one.others for one in beside)
    kinds = ", ".join(dict.fromkeys(one.workload for one in beside))
    return (
        f"up to {most} pods of {kinds} beside one of these kept the {request.bound} (measured: {measured}); beside "
        "others or more of them it is not known, so a pool of their own is the safe choice"
    )
