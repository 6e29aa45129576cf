"""Rules about Kustomizations."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF680 = rule(
    "GF680", Severity.NOTE,
    title="{what} was not followed; what it does to GPUs was not checked.",
    reason="Lint reads generators and patches of Kustomizations as far as the files are given.",
    remedy="Lint the result: `kustomize build FOLDER | gpufleet lint -`",
    source="docs/your-yaml.md",
    wrong="""
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        configMapGenerator:
        - name: gpu-sharing
          files: [any=sharing.yaml]
    """,
    right="""
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        configMapGenerator:
        - name: gpu-sharing
          literals:
          - |-
            any=version: v1
            sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF681 = rule(
    "GF681", Severity.WARNING,
    title="Kustomize adds a hash to the name {value}; {file} calls the ConfigMap without it.",
    reason="Kustomize corrects the name in pods, but not in values of charts and in ClusterPolicies. The pods that "
    "mount it stay in ContainerCreating.",
    remedy="Keep the name: options: {{disableNameSuffixHash: true}}",
    source="kubernetes-sigs/kustomize (configMapGenerator, nameReference)",
    wrong="""
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        configMapGenerator:
        - name: slices
          options: {disableNameSuffixHash: false}
          literals:
          - |-
            any=version: v1
            sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        devicePlugin: {config: {name: slices, default: any}}
        dcgmExporter: {env: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]}
    """,
    fix=("disableNameSuffixHash: false", "disableNameSuffixHash: true"),
)
