"""Rules about what containers ask for."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF600 = rule(
    "GF600", Severity.WARNING,
    title="{value} shares of {key} bring no more than one.",
    reason="A share is neither a part of the memory nor of the compute; several shares may come from the same GPU.",
    remedy="Ask for 1.",
    source="NVIDIA/k8s-device-plugin#491; NVIDIA/gpu-operator#386",
    wrong="""
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 2}}
    """,
    fix=("nvidia.com/gpu: 2", "nvidia.com/gpu: 1"),
)

GF601 = rule(
    "GF601", Severity.ERROR,
    title="A request for {value} of {key} is refused at start.",
    reason="failRequestsGreaterThanOne is in effect; the pod ends with UnexpectedAdmissionError.",
    remedy="Ask for 1.",
    source="NVIDIA/k8s-device-plugin#491; PLUGIN",
    wrong="""
        version: v1
        sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 2}}
    """,
    fix=("nvidia.com/gpu: 2", "nvidia.com/gpu: 1"),
)

GF602 = rule(
    "GF602", Severity.ERROR,
    title="No NVIDIA plugin offers {value}.",
    reason="The name has no form that a plugin could give it; the pod stays Pending for ever.",
    remedy="Use the name that the node shows.",
    source="PLUGIN; MicrosoftDocs/azure-aks-docs",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/mig1g.5gb: 1}}
    """,
    fix=("nvidia.com/mig1g.5gb:", "nvidia.com/mig-1g.5gb:"),
)

GF603 = rule(
    "GF603", Severity.ERROR,
    title="The node does not offer {value}.",
    reason="The pod stays Pending: no node of the given configuration has the resource.",
    because="{by} it offers {offered}.",
    remedy="Ask for what the node offers.",
    do="{advice}",
    source="PLUGIN",
    wrong="""
        # gpufleet lint FILE --gpus 4xA100-80GB
        version: v1
        sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
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
    fix=("nvidia.com/gpu:", "nvidia.com/gpu.shared:"),
)

GF604 = rule(
    "GF604", Severity.ERROR,
    title="{key} must be a whole number, not {value}.",
    reason="The API server takes extended resources in whole numbers only.",
    remedy="Ask for 1 and share the GPU by configuration.",
    source="K8S-DOC (manage-resources-containers)",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 0.5}}
    """,
    fix=("nvidia.com/gpu: 0.5", "nvidia.com/gpu: 1"),
)

GF605 = rule(
    "GF605", Severity.ERROR,
    title="{key} needs an equal limit.",
    reason="Extended resources cannot be overcommitted; the API server refuses a request without the same limit.",
    remedy="Set it under limits.",
    source="K8S-DOC (manage-resources-containers)",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {requests: {nvidia.com/gpu: 1}}
    """,
    fix=("requests:", "limits:"),
)

GF606 = rule(
    "GF606", Severity.WARNING,
    title="One container asks for several MIG devices: {value}.",
    reason="A CUDA process uses one MIG device only; the others stay idle.",
    remedy="Ask for one larger profile, or split the work into several pods.",
    source="MIG-UG",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/mig-1g.5gb: 2}}
    """,
    fix=("nvidia.com/mig-1g.5gb: 2", "nvidia.com/mig-2g.10gb: 1"),
)
