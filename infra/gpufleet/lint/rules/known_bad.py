"""Rules about versions that are known to fail."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF568 = rule(
    "GF568", Severity.ERROR,
    title="{component} {value} is known to fail here: {when}.",
    reason="The table known_bad lists the version with this condition and its thread.",
    because="{because}. Source: {source}.",
    remedy="Use another version.",
    do="{remedy_text}",
    source="known_bad; NVIDIA/gpu-operator#1694; NVIDIA/k8s-device-plugin#1726",
    wrong="""
        apiVersion: helm.cattle.io/v1
        kind: HelmChart
        metadata: {name: gpu-operator, namespace: kube-system}
        spec:
          chart: gpu-operator
          version: v25.3.3
          targetNamespace: gpu-operator
          valuesContent: |-
            toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock}]}
    """,
    fix=("v25.3.3", "v25.3.4"),
)

GF569 = rule(
    "GF569", Severity.WARNING,
    title="{component} {value} has a known fault: {when}.",
    reason="The table known_bad lists the version with this condition and its thread.",
    because="{because}. Source: {source}.",
    remedy="Use another version.",
    do="{remedy_text}",
    source="known_bad; NVIDIA/dcgm-exporter#611",
    wrong="""
        # values of the GPU Operator
        dcgmExporter:
          version: 4.4.2-4.7.0-ubuntu22.04
          env: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]
        migManager: {enabled: true}
    """,
    fix=("4.4.2-4.7.0-ubuntu22.04", "4.6.0-4.8.3-distroless"),
)
