"""Rules about labels of nodes: who sets them, and which ones the GPU software looks for."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF222 = rule(
    "GF222", Severity.ERROR,
    title="Nodes of this pool do not carry the label that selects the profile {profile}.",
    reason="The operator finds a node's profile by the label nvidia.com/device-plugin.config; nodes that are found "
    "by a selector are labelled by somebody else.",
    remedy="Add `nvidia.com/device-plugin.config: {profile}` to nodeSelector (and to the nodes), or list the nodes "
    "under `hosts`.",
    source="PLUGIN (config-manager); GPUO",
    needs=("value", "offers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools: [{name: t4, sharing: half, nodeSelector: {a: b}}]
    """,
    right="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, sharing: half, nodeSelector: {nvidia.com/device-plugin.config: half}}
    """,
)

GF223 = rule(
    "GF223", Severity.ERROR,
    title="Nodes of this pool do not carry the labels that keep the operator's work off them: {missing}.",
    reason="The driver here has another owner, and without these labels the operator installs a second one; nodes "
    "that are found by a selector are labelled by somebody else.",
    remedy="Add the labels to nodeSelector (and to the nodes), or list the nodes under `hosts`.",
    source="GPUO; NVIDIA/gpu-operator#525",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - {name: t4, nodeSelector: {a: b}}
          - {name: b, hosts: {n2: {}}, gpu: T4, driver: operator}
    """,
    right="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - name: t4
            nodeSelector:
              nvidia.com/gpu.deploy.driver: "false"
              nvidia.com/gpu.deploy.container-toolkit: "false"
          - {name: b, hosts: {n2: {}}, gpu: T4, driver: operator}
    """,
)

GF225 = rule(
    "GF225", Severity.ERROR,
    title="Nodes of this pool do not carry the labels by which the GPU software finds them: {missing}.",
    reason="HAMi's plugin and the MIG manager select nodes by these labels; nodes that are found by a selector are "
    "labelled by somebody else.",
    remedy="Add the labels to nodeSelector (and to the nodes), or list the nodes under `hosts`.",
    source="Project-HAMi/HAMi#2280; GPUO; MIGP",
    needs=("value", "offers"),
    wrong="""
        gpufleet:sharing: {own: {strategy: hami}}
        gpufleet:pools: [{name: t4, nodeSelector: {a: b}, sharing: own}]
    """,
    fix=("a: b", 'a: b, gpu: "on"'),
)

GF317 = rule(
    "GF317", Severity.ERROR,
    title="The label {value} makes the MIG manager cut these nodes, and the pool's method is {strategy}.",
    reason="The MIG manager applies the label again and again, and restarts every GPU pod of the node "
    "(NVIDIA/gpu-operator#1310).",
    remedy="Use `strategy: mig` on this pool, or nodes without the label.",
    source="NVIDIA/gpu-operator#1310",
    needs=("value", "offers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {own: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - name: t4
            nodeSelector:
              a: b
              nvidia.com/mig.config: all-balanced
              nvidia.com/device-plugin.config: own
            sharing: own
    """,
    fix=("nvidia.com/mig.config: all-balanced", "nvidia.com/mig.config: all-disabled"),
)

GF403 = rule(
    "GF403", Severity.ERROR,
    title="The label {value} cannot be set here.",
    reason="The label belongs to AKS, to Kubernetes or to NVIDIA's software, which writes it or refuses it.",
    remedy="Remove it.",
    source="AKS-DOC (use-labels); K8S-DOC (labels-annotations-taints); PLUGIN",
    wrong="gpufleet:pools: [{name: t4, labels: {kubernetes.io/x: z}}]",
    right="gpufleet:pools: [{name: t4, labels: {x.kubernetes.io/x: z}}]",
)

GF424 = rule(
    "GF424", Severity.ERROR,
    title="The pools {value} and {other} pick the same nodes.",
    reason="A node that both selectors match would get two device plugins, and the last one to register wins.",
    remedy="Give the selectors a key with different values.",
    source="NVIDIA/k8s-device-plugin#990",
    wrong="""
        gpufleet:pools:
          - {name: t4, nodeSelector: {rack: a}}
          - {name: b, nodeSelector: {rack: a, gpu: t4}, gpu: T4}
    """,
    fix=("a, gpu: t4", "b"),
)
