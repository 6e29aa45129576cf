"""Whether a measurement was of the kind of work that is asked about. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.measure.measurements import Measurement
from gpufleet.measure.workloads import NOTEBOOK

#: Memory of a pod this many times larger or smaller than that of the measured processes is another kind of work: a
#: model of 30 GiB is bound by memory bandwidth, an encoder of 0.5 GiB by its host.
FAR = 5.0
#: A notebook's memory is mostly data that lies still: its figures follow from how long it works and pauses.
_ANY_MEMORY = (NOTEBOOK,)


def memory_gib(found: Sequence[Measurement], gpu: str, workload: str) -> float | None:
    """The most memory that a measured process of the class had on this GPU; None where it was not read."""
    known = [
        one.series.memory_mib
        for one in found
        if (one.gpu, one.series.workload) == (gpu, workload) and one.series.memory_mib
    ]
    return max(known) / 1024 if known else None


def fits(one: Measurement, found: Sequence[Measurement], wanted_gib: float) -> bool:
    """Whether a pod of ``wanted_gib`` is the kind of work that ``one``, a series of ``found``, was measured with."""
    measured = memory_gib(found, one.gpu, one.series.workload)
    if measured is None or one.own or one.series.workload in _ANY_MEMORY:
        return True
    return measured / FAR <= wanted_gib <= measured * FAR


def fitting(found: Sequence[Measurement], wanted_gib: float) -> list[Measurement]:
    """The measurements that say something about a pod of ``wanted_gib``."""
    return [one for one in found if fits(one, found, wanted_gib)]


def misfit(workload: str, found: Sequence[Measurement], gpu: str, wanted_gib: float) -> str | None:
    """Why no measurement of the class says anything about a pod of ``wanted_gib``; None where one does."""
    of_class = [one for one in found if (one.gpu, one.series.workload) == (gpu, workload)]
    if not of_class or any(fits(one, found, wanted_gib) for one in of_class):
        return None
    others = {one.series.workload for one in fitting(found, wanted_gib) if one.gpu == gpu} - set(_ANY_MEMORY)
    near = "".join(
        f"; {name} was measured with {memory_gib(found, gpu, name):.1f} GiB" for name in sorted(others & {"decoder"})
    )
    measured = memory_gib(found, gpu, workload) or 0.0
    return (
        f"{workload} was measured with {measured:.1f} GiB per process ({of_class[0].series.conditions}); a pod of "
        f"{wanted_gib:g} GiB is another kind of work{near}"
    )


def own_memory(profile: Sequence[Measurement], wanted_gib: float) -> str | None:
    """A user's own processes that had far less or more memory than the pods that are asked about."""
    known = [one.series.memory_mib / 1024 for one in profile if one.series.memory_mib]
    if not known or max(known) / FAR <= wanted_gib <= max(known) * FAR:
        return None
    return (
        f"the measured process had {max(known):.1f} GiB, the pods are to have {wanted_gib:g} GiB: is it the same work?"
    )
