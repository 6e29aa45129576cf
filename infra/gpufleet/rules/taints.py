"""Rules about taints and the tolerations that follow from them."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF401 = rule(
    "GF401", Severity.ERROR,
    title="The spot taint is stated differently from what AKS sets.",
    reason="AKS itself adds kubernetes.azure.com/scalesetpriority=spot:NoSchedule to spot pools, and only to them.",
    remedy="Remove the taint and set `spot: true`.",
    source="AKS-DOC (spot-node-pool)",
    wrong="""
        gpufleet:pools:
          - {name: t4, taints: ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]}
    """,
    right="""
        gpufleet:pools:
          - {name: t4, taints: ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"], spot: true}
    """,
)

GF402 = rule(
    "GF402", Severity.ERROR,
    title="{value} is a taint of {whose} itself.",
    reason="Kubernetes sets and removes its own taints by the state of the node; AKS refuses other taints under its "
    "prefix.",
    remedy="Use a key of your own.",
    source="K8S-DOC (taint-and-toleration); Azure/karpenter-provider-azure#1830",
    wrong='gpufleet:pools: [{name: t4, taints: ["kubernetes.azure.com/x=z:NoSchedule"]}]',
    right='gpufleet:pools: [{name: t4, taints: ["azure.com/x=z:NoSchedule"]}]',
)

GF440 = rule(
    "GF440", Severity.NOTE,
    title="Pods that ask for {resource} must carry a toleration of their own.",
    reason="AKS adds a toleration by itself (ExtendedResourceToleration). Its key is the name of the requested "
    "resource, which is not the key of this taint (Azure/AKS#1449).",
    remedy="Add to the pods: {add}",
    source="Azure/AKS#1449",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half, taints: ["nvidia.com/gpu=present:NoSchedule"]}]
    """,
    fix=("2, renameByDefault: true", "2"),
)
