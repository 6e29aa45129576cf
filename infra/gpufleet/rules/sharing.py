"""Rules about sharing profiles: memory, MPS, time slices, HAMi."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.methods.mps import Mps, most_clients
from gpufleet.methods.time_slicing import TimeSlicing
from gpufleet.parts.names import UNSHARED
from gpufleet.stackfile.model import Stack

GF302 = rule(
    "GF302", Severity.WARNING,
    title="{pods} pods of {each} GiB are promised {promised} GiB of a GPU with {memory} GiB.",
    reason="Replicas multiply what can be scheduled, not the memory. When the pods use what they were promised, "
    "some of them fail.",
    because="Replicas multiply what can be scheduled, not the memory. {measured}",
    remedy="At most {fit} such pods fit; lower replicas or memoryPerPodGib.",
    source="NVIDIA/k8s-device-plugin#461; measurements_h200; isolation_h200",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 4, memoryPerPodGib: 4}}
        gpufleet:pools: [{name: t4, sharing: half}]
    """,
    fix=("memoryPerPodGib: 4", "memoryPerPodGib: 3.75"),
)

GF303 = rule(
    "GF303", Severity.WARNING,
    title="No pool uses the sharing profile {value}.",
    reason="A profile takes effect through the pools that name it.",
    remedy="Name it in a pool, or remove it.",
    source="stacks/schema.json",
    needs=("value", "profiles"),
    wrong="gpufleet:sharing: {spare: {strategy: none}}",
    right="""
        gpufleet:sharing: {spare: {strategy: none}}
        gpufleet:pools: [{name: t4, sharing: spare}]
    """,
)

GF304 = rule(
    "GF304", Severity.ERROR,
    title="The name {value} is taken.",
    reason="gpufleet gives this name to pools that share nothing, and the operator uses it as the default.",
    remedy="Choose another name.",
    source="GPUO",
    wrong="""
        gpufleet:sharing: {unshared: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools: [{name: t4, sharing: unshared}]
    """,
    fix=("timeSlicing, replicas: 2", "none"),
)

GF307 = rule(
    "GF307", Severity.ERROR,
    title="A pod is promised {each} GiB and can have {most} GiB at most.",
    reason="A pod cannot have more memory than the device that it shares; under MPS it cannot have more than its "
    "part of it.",
    remedy="Lower memoryPerPodGib, under MPS also replicas, or take a GPU with more memory.",
    do="Lower memoryPerPodGib{lower}, or take a GPU with more memory.",
    source="PLUGIN (mps-control-daemon); gpus",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, memoryPerPodGib: 15.5}}
        gpufleet:pools: [{name: t4, sharing: half}]
    """,
    fix=("memoryPerPodGib: 15.5", "memoryPerPodGib: 7.5"),
)

GF320 = rule(
    "GF320", Severity.ERROR,
    title="MPS serves at most {most} clients on {gpu}, not {value}.",
    reason="The MPS daemon serves 48 clients per GPU, and 16 below compute capability 7.5.",
    remedy="Lower replicas.",
    source="PLUGIN (mps-control-daemon)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:sharing: {own: {strategy: mps, replicas: 49}}
        gpufleet:pools: [{name: t4, sharing: own}]
    """,
    fix=("replicas: 49", "replicas: 48"),
)

GF321 = rule(
    "GF321", Severity.ERROR,
    title="MPS does not go together with MIG instances under their own names.",
    reason="The operator gives the MIG strategy `mixed` to all plugins, and one with MPS refuses to start then.",
    remedy="Set `naming: single` in the MIG profiles, or use another method here.",
    source="PLUGIN; GPUO",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing:
          own: {strategy: mps, replicas: 2}
          other: {strategy: mig, profile: 1g.10gb, naming: mixed}
        gpufleet:pools:
          - {name: t4, sharing: own}
          - {name: b, hosts: {n2: {}}, gpu: A100-SXM4-80GB, sharing: other}
    """,
    fix=("1g.10gb, naming: mixed", "1g.10gb"),
)

GF330 = rule(
    "GF330", Severity.ERROR,
    title="Nothing can set the time slice of this pool.",
    reason="The device plugin never sets it; the Ansible roles do, on hosts whose driver they look after.",
    remedy="Remove timeSlice, or use `driver: host` with `hosts`.",
    source="PLUGIN; DIG",
    wrong="""
        gpufleet:sharing: {own: {strategy: timeSlicing, replicas: 2, timeSlice: long}}
        gpufleet:pools: [{name: t4, sharing: own}]
    """,
    fix=("2, timeSlice: long", "2"),
)

GF340 = rule(
    "GF340", Severity.ERROR,
    title="HAMi on the pools {pools} excludes NVIDIA's plugin on this one.",
    reason="Both register nvidia.com/gpu, and HAMi's scheduler takes every pod that asks for it.",
    remedy="Use `strategy: hami` on all pools of the stack, or on none.",
    source="Project-HAMi/HAMi#646; Project-HAMi/HAMi#1708",
    wrong="""
        gpufleet:sharing: {own: {strategy: hami}, other: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, sharing: own}
          - {name: b, hosts: {n2: {}}, gpu: A100-SXM4-80GB, sharing: other}
    """,
    fix=("timeSlicing, replicas: 2", "hami"),
)

GF341 = rule(
    "GF341", Severity.ERROR,
    title="The pools want different HAMi settings.",
    reason="One HAMi release has one split count and one memory scaling.",
    remedy="Use the same profile for all pools.",
    source="HAMI",
    wrong="""
        gpufleet:sharing: {own: {strategy: hami}, other: {strategy: hami, splitCount: 4}}
        gpufleet:pools:
          - {name: t4, sharing: own}
          - {name: b, hosts: {n2: {}}, gpu: A100-SXM4-80GB, sharing: other}
    """,
    fix=("splitCount: 4", "splitCount: 10"),
)


@check("pool", GF302, GF307, GF320, GF330)
def profile(pool: FleetPool) -> Iterator[Finding]:
    """What one pool's hardware and owner say about its profile."""
    if pool.profile is None:
        return
    method, where = pool.method, f"{pool.path}.sharing"
    yield from _memory(pool, where)
    if isinstance(method, TimeSlicing) and method.time_slice and not pool.place.sets_time_slice(pool.spec):
        yield GF330.at(where, value=method.time_slice)
    model = pool.hardware.model
    if isinstance(method, Mps) and model is not None and model.compute_capability is not None:
        most = most_clients(model.compute_capability)
        if method.replicas > most:
            yield GF320.at(where, value=method.replicas, gpu=model.id, most=str(most))


def _memory(pool: FleetPool, where: str) -> Iterator[Finding]:
    """Memory that pods were promised and that the device does not have."""
    method, promised = pool.method, pool.method.promised_gib
    have = method.device_memory_gib(pool.hardware)
    if promised is None or have is None:
        return
    scaled = have * method.memory_scale
    bound = method.most_for_one(scaled)
    if bound.gib is not None and promised > bound.gib:
        texts = {"each": f"{promised:g}", "most": f"{bound.gib:g}", "because": bound.why, "lower": bound.or_lower}
        yield GF307.at(where, value=pool.profile_name, **texts)
        return
    together = method.pods_per_device * promised
    if together > scaled:
        yield GF302.at(where,
            value=pool.profile_name,
            pods=str(method.pods_per_device),
            each=f"{promised:g}",
            promised=f"{together:g}",
            memory=f"{scaled:g}",
            fit=str(int(scaled // promised)),
            measured=_measured(pool),
        )


def _measured(pool: FleetPool) -> str:
    """What becomes of memory promised twice: as measured for time-slicing, of a GPU or inside an instance."""
    if pool.method.memory_unbounded:
        from gpufleet.measure.isolation import unbounded_memory  # read only where something may be said

        return unbounded_memory()
    return "A pod that asks for more than is left is refused it."


@check("stack", GF304, GF321, GF340, GF341)
def methods(fleet: Fleet) -> Iterator[Finding]:
    """Names that are taken, and methods that exclude each other in one cluster."""
    yield from _names(fleet.stack)
    own = [pool for pool in fleet.served if pool.method.own_plugin]
    if own and len(own) < len(fleet.served):
        other = next(pool for pool in fleet.served if not pool.method.own_plugin)
        names = ", ".join(pool.name for pool in own)
        yield GF340.at(f"{other.path}.sharing", value=other.profile_name, pools=names)
    if len({pool.method.for_the_release for pool in own}) > 1:
        yield GF341.at(f"{own[-1].path}.sharing", value=own[-1].spec.sharing)
    if fleet.release is not None and fleet.release.mig_strategy == "mixed":
        for pool in fleet.served:
            if pool.method.control_daemon:
                yield GF321.at(f"{pool.path}.sharing", value=pool.spec.sharing)


def _names(stack: Stack) -> Iterator[Finding]:
    named = stack.sharing.get(UNSHARED)
    if named is not None and getattr(named, "strategy", "none") != "none":
        yield GF304.at(f"sharing.{UNSHARED}", value=UNSHARED)
