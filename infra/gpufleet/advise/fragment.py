"""The stack-file lines that an advice amounts to."""

from __future__ import annotations

from gpufleet.advise.request import Facts
from gpufleet.measure.workloads import DECODER, GRAPH, INFERENCE, NOTEBOOK, TRAINING

#: Class of measurement -> `workload` of a sharing profile; other classes have no word there.
WORKLOADS = {
    TRAINING: "training", INFERENCE: "inference", GRAPH: "inference", DECODER: "inference", NOTEBOOK: "notebooks",
}  # fmt: skip


def profile_name(workload: str, environment: str) -> str:
    """Name of the sharing profile, e.g. ``inference-production``."""
    return f"{workload}-{environment}"


def settings(facts: Facts, method: str, pods: int) -> dict[str, str | int | float]:
    """The sharing profile of a stack file."""
    gib = facts.request.memory_gib
    memory: dict[str, str | int | float] = {"memoryPerPodGib": int(gib) if gib == int(gib) else gib}
    word = WORKLOADS.get(facts.request.workload)
    workload = {"workload": word} if word else {}
    if method in ("timeSlicing", "mps"):
        return {"strategy": method, "replicas": pods, **memory, **workload}
    if method == "mig" and facts.mig:
        return {"strategy": "mig", "profile": facts.mig.profile, **memory, **workload}
    if method == "hami":  # its profile has no workload: nothing was measured to argue from
        return {"strategy": "hami", "splitCount": pods, **memory}
    return {"strategy": "none"}


def fragment(facts: Facts, method: str, pods: int, *, apart: bool = False) -> str:
    """YAML for ``gpufleet:sharing`` and the line that a pool takes it by. ``apart``: other classes stay out of it."""
    name = profile_name(facts.request.workload, facts.request.environment)
    values = ", ".join(f"{key}: {value}" for key, value in settings(facts, method, pods).items())
    pool = f"in a pool for {facts.request.workload} alone" if apart else "in the pool"
    return f"gpufleet:sharing:\n  {name}: {{{values}}}\n# {pool}:\n#   sharing: {name}\n"
