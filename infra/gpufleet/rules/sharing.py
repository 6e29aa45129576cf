"""Rules about sharing profiles: memory, MPS, time slices, HAMi."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

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
