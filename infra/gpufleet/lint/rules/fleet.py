"""Rules about pods that the pools of a stack, or the described node, cannot run."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF624 = rule(
    "GF624", Severity.ERROR,
    title="{value} of {key} is more than one node offers.",
    reason="A pod runs on one node, so its containers get together what that node offers at most.",
    because="A pod runs on one node, and there a node offers {most}.",
    remedy="Ask for at most {most}, or split the work over several pods.",
    source="K8S-DOC (manage-resources-containers)",
    wrong="""
        # gpufleet lint FILE --gpus 8xH100-SXM5-80GB
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 16}}
    """,
    fix=("nvidia.com/gpu: 16", "nvidia.com/gpu: 8"),
)

GF625 = rule(
    "GF625", Severity.ERROR,
    title="No node there has the label {value}.",
    reason="The pod chooses its node by a label that the stack does not put on these nodes; it stays Pending.",
    remedy="To run on {pool}, select instead of it {selector}.",
    source="K8S-DOC (assign-pod-node)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: h100, hosts: {n1: {}}, gpu: H100-PCIE-80GB, gpusPerNode: 4, driver: operator}]
          gpufleet:stack: {kind: operator}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          nodeSelector: {gpufleet.dev/pool: h1OO}
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("pool: h1OO", "pool: h100"),
)

GF626 = rule(
    "GF626", Severity.ERROR,
    title="Pods on {pool} need runtimeClassName: {value}.",
    reason="NVIDIA's runtime is not the default one on these nodes. Without the class the pod starts, and sees no GPU.",
    remedy="Add runtimeClassName: {value} to the pod's spec.",
    source="NVIDIA/gpu-operator#1398; NVIDIA/k8s-device-plugin (README)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1}]
          gpufleet:stack: {kind: plugin}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("spec:", "spec:\n  runtimeClassName: nvidia"),
)

GF627 = rule(
    "GF627", Severity.ERROR,
    title="The runtime class {value} gives no GPU there.",
    reason="A pod with another runtime class than the one that the stack's nodes need gets no GPU; one with a class "
    "that does not exist is refused.",
    remedy="Name the class that `gpufleet plan` tells the team, or none where it tells none.",
    source="NVIDIA/gpu-operator#1398; K8S-DOC (runtime-class)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1}]
          gpufleet:stack: {kind: plugin}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          runtimeClassName: nvidia-container-runtime
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("nvidia-container-runtime", "nvidia"),
)

GF628 = rule(
    "GF628", Severity.ERROR,
    title="{value} pods are more than the fleet takes: {most}.",
    reason="All nodes of the fitting pools together, with the autoscaler's maximum, offer less than all replicas ask "
    "for; the last pods stay Pending.",
    because="Fitting pools, with the autoscaler's maximum: {pools}. The last pods stay Pending.",
    remedy="Lower replicas to {most}, or add nodes to a pool.",
    source="K8S-DOC (manage-resources-containers)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 2, driver: operator}]
          gpufleet:stack: {kind: operator}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: serve}
        spec:
          replicas: 3
          template:
            spec:
              containers:
              - name: app
                image: example/app:1
                resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("replicas: 3", "replicas: 2"),
)

GF629 = rule(
    "GF629", Severity.ERROR,
    title="{value} is more than the quota of the team {team} allows: {most}.",
    reason="The namespace has a ResourceQuota; the API server refuses pods beyond it.",
    because="The namespace {namespace} has a ResourceQuota; {counts}.",
    remedy="Ask for less, or raise the team's quota in the stack file.",
    source="K8S-DOC (resource-quotas)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 4, driver: operator}]
          gpufleet:stack: {kind: operator}
          gpufleet:teams: [{name: vision, namespace: vision, pools: [l4], quota: {gpu: 2}}]
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train, namespace: vision}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 3}}
    """,
    fix=("nvidia.com/gpu: 3", "nvidia.com/gpu: 2"),
)

GF638 = rule(
    "GF638", Severity.WARNING,
    title="This runs {value} and asks for no GPU.",
    reason="Without a request the pod gets no GPU, or takes one that was given to others, and the scheduler counts "
    "nothing.",
    remedy="Ask for one: resources: {{limits: {{{resource}: 1}}}}.",
    source="vllm-project/vllm#23661; vllm-project/production-stack#1047",
    wrong="""
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: serve}
        spec:
          template:
            spec:
              containers:
              - name: app
                image: vllm/vllm-openai:v0.10.1
                args: [--model, Qwen/Qwen3-8B]
                resources: {limits: {memory: 16Gi}}
    """,
    fix=("memory: 16Gi", "nvidia.com/gpu: 1"),
)
