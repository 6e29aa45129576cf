"""Rules that need a look at the running cluster."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF450 = rule(
    "GF450", Severity.ERROR,
    title="The node {node} is in use and would change from {now} to {planned}.",
    reason="Running pods hold devices of the node, and these would change under them.",
    because="Running pods hold devices of the node, and these would change under them: {pods}.",
    remedy="Drain the node first (kubectl drain {node} --ignore-daemonsets), or give new nodes a pool of their own.",
    source="PLUGIN; NVIDIA/mig-parted",
    wrong="""
        # Pods on the nodes of this pool hold whole GPUs, and the pool is to share them from now on.
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}}, gpu: T4, sharing: half}
    """,
    right="""
        # The pool stays as it is; new nodes get a pool of their own.
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}}, gpu: T4}
          - {name: shared, hosts: {n2: {}}, gpu: T4, sharing: half}
    """,
)

GF451 = rule(
    "GF451", Severity.ERROR,
    title="The namespace {value} exists and does not belong to this stack.",
    reason="A namespace has one owner; removed from the stack later, it would be deleted with everything in it.",
    remedy="Choose another name, or delete the namespace first if nothing in it is needed.",
    source="K8S-DOC (namespaces)",
    wrong="""
        # The cluster has a namespace prod already.
        gpufleet:cluster: {kind: existing}
        gpufleet:teams:
          - {name: vision, namespace: prod, pools: [t4]}
    """,
    fix=("namespace: prod", "namespace: vision"),
)

GF452 = rule(
    "GF452", Severity.ERROR,
    title="The cluster still runs the other route ({now}).",
    reason="Both routes would register the same devices, and both bring the runtime class nvidia.",
    remedy="Drain the GPU nodes, run `pulumi destroy`, then `pulumi up` with the new route.",
    source="NVIDIA/k8s-device-plugin#990",
    wrong="""
        # The cluster still runs the plugin route.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
    """,
    fix=("kind: operator", "kind: plugin"),
)

GF481 = rule(
    "GF481", Severity.ERROR,
    title="The cluster is one of AKS, and the stack file says {value}.",
    reason="Nodes of AKS have another runtime class, and AKS owns containerd's file: what is set up for another "
    "distribution stops containerd there.",
    because="The node {node} carries the label kubernetes.azure.com/cluster, which AKS sets. What is set up for "
    "{value} stops containerd there.",
    remedy="Write `distribution: aks` in the section cluster.",
    source="NVIDIA/aicr#1680; AKS-DOC (use-labels); distributions",
    wrong="""
        # The nodes of the cluster carry the label kubernetes.azure.com/cluster.
        gpufleet:cluster: {kind: existing, distribution: kubeadm}
        gpufleet:pools: [{name: t4, gpu: T4, nodeSelector: {agentpool: t4}}]
    """,
    fix=("distribution: kubeadm", "distribution: aks"),
)
