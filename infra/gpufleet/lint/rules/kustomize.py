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

GF682 = rule(
    "GF682", Severity.ERROR,
    title="Kustomize renames the {kind} {value} to {new}, but not where it is called here.",
    reason="namePrefix and nameSuffix change names of objects, and those that pods of Kubernetes' own kinds call. "
    "Names in labels and in objects of Kueue stay as they are.",
    remedy="Write {new} here, or leave this object out of the Kustomization that renames.",
    source="kubernetes-sigs/kustomize (api/internal/konfig/builtinpluginconsts/namereference.go)",
    wrong="""
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        namePrefix: prod-
        ---
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: LocalQueue
        metadata: {name: users, namespace: lab}
        spec: {clusterQueue: shared}
        ---
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ClusterQueue
        metadata: {name: shared}
        spec:
          resourceGroups:
          - coveredResources: [nvidia.com/gpu]
            flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
    """,
    fix=("clusterQueue: shared", "clusterQueue: prod-shared"),
)
