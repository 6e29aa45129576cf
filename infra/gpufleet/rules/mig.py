"""Rules about MIG: what a GPU can be cut into, by whom, under which driver."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF310 = rule(
    "GF310", Severity.ERROR,
    title="{gpu} cannot be cut by MIG.",
    reason="The model has no MIG instances.",
    remedy="Use `strategy: timeSlicing`, or a GPU with MIG.",
    source="mig; MIG-UG",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.10gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: T4}]
    """,
    right="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.6gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A30}]
    """,
)

GF311 = rule(
    "GF311", Severity.ERROR,
    title="{gpu} has no MIG profile {value}.",
    reason="Profiles belong to a model and its memory; neighbouring models use the same names for different parts.",
    remedy="Use one of its profiles.",
    source="mig; MIG-UG",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.5gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A100-SXM4-80GB}]
    """,
    fix=("profile: 1g.5gb", "profile: 1g.10gb"),
)

GF312 = rule(
    "GF312", Severity.ERROR,
    title="{value} do not fit on one {gpu}.",
    reason="MIG instances take fixed places on the GPU, so not every combination fits.",
    because="MIG instances take fixed places on the GPU; possible here: {most}.",
    remedy="Ask for fewer or smaller instances.",
    source="MIG-UG; GPUO",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, instances: {3g.40gb: 3}}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A100-SXM4-80GB}]
    """,
    fix=("3g.40gb: 3", "3g.40gb: 2"),
)

GF313 = rule(
    "GF313", Severity.ERROR,
    title="MIG on {value} is {state} by AKS.",
    reason="AKS cuts GPUs when a node starts, on the sizes it supports.",
    remedy="Use a size with MIG, or `driver: operator`, whose MIG manager cuts them.",
    source="AKS-DOC (gpu-multi-instance); azure_sizes",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.12gb}}
        gpufleet:pools: [{name: t4, sharing: cut, vmSize: Standard_NCC40ads_H100_v5}]
    """,
    fix=("vmSize: Standard_NCC40ads_H100_v5", "vmSize: Standard_NC40ads_H100_v5"),
)

GF314 = rule(
    "GF314", Severity.ERROR,
    title="AKS cannot cut GPUs into {value}.",
    reason="`gpuInstanceProfile` cuts every GPU of a pool into instances of one kind, of those allowed.",
    remedy="Use `profile` with one of them, or `driver: operator`.",
    source="AKS-DOC (gpu-multi-instance); AB",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.20gb}}
        gpufleet:pools: [{name: t4, sharing: cut, vmSize: Standard_NC24ads_A100_v4}]
    """,
    fix=("profile: 1g.20gb", "profile: 2g.20gb"),
)

GF315 = rule(
    "GF315", Severity.ERROR,
    title="Driver {value} is known to fail with MIG.",
    reason="These drivers leave pods Pending, or fail in another way, on GPUs that MIG has cut.",
    because="{when}: {because}. Concerned up to {last} (NVIDIA/gpu-operator#1361).",
    remedy="Use 570.172.08, 580.65.06 or newer.",
    source="NVIDIA/gpu-operator#1361; known_bad",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.10gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A100-SXM4-80GB, driverVersion: 570.148.08}]
    """,
    fix=("driverVersion: 570.148.08", "driverVersion: 570.172.08"),
)

GF316 = rule(
    "GF316", Severity.ERROR,
    title="This pool offers MIG instances as `{value}`, another one of the same operator as `{other}`.",
    reason="The operator gives one MIG strategy to the plugins of all nodes.",
    remedy="Set the same `naming` in all MIG profiles.",
    source="GPUO",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing:
          cut: {strategy: mig, profile: 1g.10gb}
          other: {strategy: mig, instances: {1g.10gb: 1, 3g.40gb: 1}}
        gpufleet:pools:
          - {name: t4, sharing: cut, gpu: A100-SXM4-80GB}
          - {name: b, hosts: {n2: {}}, gpu: A100-SXM4-80GB, sharing: other}
    """,
    fix=("profile: 1g.10gb", "profile: 1g.10gb, naming: mixed"),
)
