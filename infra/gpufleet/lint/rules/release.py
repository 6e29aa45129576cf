"""Rules about values of charts that contradict a stack."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF590 = rule(
    "GF590", Severity.ERROR,
    title="{key} lacks {value}.",
    reason="The pools of the stack have taints that the release does not tolerate; its pods do not run on their "
    "nodes, and these offer no GPU.",
    remedy="Add to {key}: {add}. A list replaces the chart's default, so keep what is needed of that.",
    source="GPUO; K8S-DOC (taint-and-toleration); NVIDIA/k8s-device-plugin#68",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: ml, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, taints: ["team=ml:NoSchedule"]}]
          gpufleet:stack: {kind: operator}
        ---
        devicePlugin: {enabled: true}
        driver: {enabled: false}
        toolkit: {enabled: false}
        node-feature-discovery: {worker: {tolerations: [{operator: Exists}]}}
    """,
    fix=("devicePlugin:", "daemonsets: {tolerations: [{key: team, operator: Exists}]}\ndevicePlugin:"),
)

GF591 = rule(
    "GF591", Severity.ERROR,
    title="{key} is {value}; with this stack it is {planned}.",
    reason="The stack decides who installs driver, toolkit and plugin. A release that differs installs a second one, "
    "or leaves the nodes without.",
    remedy="Set {key}: {planned}",
    source="GPUO; NVIDIA/gpu-operator#525",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, driver: host}]
          gpufleet:stack: {kind: operator}
        ---
        devicePlugin: {enabled: true}
        driver: {enabled: true}
        toolkit: {enabled: false}
    """,
    fix=("driver: {enabled: true}", "driver: {enabled: false}"),
)

GF592 = rule(
    "GF592", Severity.ERROR,
    title="{key} is {value}; with this stack it is {planned}.",
    reason="The plan derives it from the cluster and its pools; with another value the release does not serve them.",
    remedy="Set {key}: {planned}",
    source="GPUO; RKE2-DOC",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, distribution: rke2, kubeconfig: {path: lab.conf}}
          gpufleet:pools:
            - {name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, os: ubuntu-22.04, driver: operator}
          gpufleet:stack: {kind: operator}
        ---
        devicePlugin: {enabled: true}
        toolkit: {enabled: true}
    """,
    fix=(
        "toolkit: {enabled: true}",
        "toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock}]}",
    ),
)

GF593 = rule(
    "GF593", Severity.WARNING,
    title="The stack serves the GPUs with {value}; this would be a second plugin.",
    reason="Two plugins on a node register the same resource. The kubelet keeps the last one, and counts change with "
    "every restart.",
    remedy="Leave this chart out, or keep its pods off the nodes of the stack.",
    source="NVIDIA/k8s-device-plugin#990",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1}]
          gpufleet:stack: {kind: plugin}
        ---
        devicePlugin: {enabled: true}
        driver: {enabled: false}
    """,
    fix=("devicePlugin: {enabled: true}", "devicePlugin: {enabled: false}"),
)
