"""Rules about teams: namespaces, quotas, pools."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF430 = rule(
    "GF430", Severity.ERROR,
    title="`gpu` is ambiguous in this quota.",
    reason="The team's pools offer several resource names, and a quota limits each by itself.",
    remedy="Name the resources.",
    source="K8S-DOC (resource-quotas)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half}, {name: b, vmSize: Standard_NC4as_T4_v3}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4, b], quota: {gpu: 1}}]
    """,
    right="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half}, {name: b, vmSize: Standard_NC4as_T4_v3}]
        gpufleet:teams:
          - {name: x, namespace: x, pools: [t4, b], quota: {nvidia.com/gpu: 1, nvidia.com/gpu.shared: 2}}
    """,
)

GF431 = rule(
    "GF431", Severity.ERROR,
    title="The quota on {value} would limit nothing.",
    reason="None of the team's pools offers a resource of that name.",
    remedy="Use a resource that they offer.",
    source="K8S-DOC (resource-quotas)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], quota: {nvidia.com/gpu: 1}}]
    """,
    fix=("nvidia.com/gpu:", "nvidia.com/gpu.shared:"),
)

GF432 = rule(
    "GF432", Severity.ERROR,
    title="The namespace {value} belongs to {whose}.",
    reason="What this stack puts there (quota, role binding, privileged pods) would mix with what is there. When "
    "the stack goes, it would take that along.",
    remedy="Choose a namespace of its own.",
    source="K8S-DOC (namespaces)",
    wrong="gpufleet:teams: [{name: x, namespace: kube-system, pools: [t4]}]",
    right="gpufleet:teams: [{name: x, namespace: kubesystem, pools: [t4]}]",
)

GF433 = rule(
    "GF433", Severity.ERROR,
    title="The pool {value} offers no GPUs.",
    reason="Nothing of this stack's GPU software runs there.",
    remedy="Remove it from the team's pools, or change the pool's driver owner.",
    source="AKS-DOC (aks-managed-gpu-nodes)",
    wrong="""
        gpufleet:pools: [{name: t4}, {name: b, vmSize: Standard_NC4as_T4_v3, driver: none}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4, b]}]
    """,
    fix=("driver: none", "driver: aks"),
)
