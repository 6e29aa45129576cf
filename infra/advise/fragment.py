"""The stack-file lines that an advice amounts to."""

from __future__ import annotations

from infra.advise.request import Facts


def profile_name(workload: str, environment: str) -> str:
    """Name of the sharing profile, e.g. ``inference-production``."""
    return f"{workload}-{environment}"


def settings(facts: Facts, method: str, pods: int) -> dict[str, str | int | float]:
    """The sharing profile of a stack file."""
    memory: dict[str, str | int | float] = {"memoryPerPodGib": facts.request.memory_gib}
    if method in ("timeSlicing", "mps"):
        return {"strategy": method, "replicas": pods, **memory}
    if method == "mig" and facts.mig:
        return {"strategy": "mig", "profile": facts.mig.profile, **memory}
    if method == "hami":
        return {"strategy": "hami", "splitCount": pods, **memory}
    return {"strategy": "none"}


def fragment(facts: Facts, method: str, pods: int) -> str:
    """YAML for ``gpufleet:sharing`` and the line that a pool takes it by."""
    name = profile_name(facts.request.workload, facts.request.environment)
    values = ", ".join(f"{key}: {value}" for key, value in settings(facts, method, pods).items())
    return f"gpufleet:sharing:\n  {name}: {{{values}}}\n# in the pool:\n#   sharing: {name}\n"
