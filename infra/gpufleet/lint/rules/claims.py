"""Rules about claims of devices (DRA)."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

_TEMPLATE = """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: half-gpu, namespace: lab}
        spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""
_POD = """
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: api, namespace: lab}
        spec:
          resourceClaims: [{name: g, resourceClaimTemplateName: half-gpu}]
          containers: [{name: c, image: "example/app:1", resources: {claims: [{name: g, request: g}]}}]
"""
_CONFIG = """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: half-gpu}
        spec:
          spec:
            devices:
              requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}]
              config:
              - requests: [g]
                opaque:
                  driver: gpu.nvidia.com
                  parameters:
                    apiVersion: resource.nvidia.com/v1beta1
                    kind: GpuConfig
                    sharing: {strategy: MPS, mpsConfig: {defaultActiveThreadPercentage: 50}}
"""

GF657 = rule(
    "GF657", Severity.ERROR,
    title="No supported Kubernetes serves the version {value} of {kind}.",
    reason="The API server refuses the object; the alpha versions had another form.",
    remedy="Write it for resource.k8s.io/v1 (Kubernetes 1.34 and later).",
    source="kubernetes-sigs/dra-driver-nvidia-gpu (chart values); K8S-DOC (dynamic-resource-allocation)",
    wrong=_TEMPLATE.replace("k8s.io/v1", "k8s.io/v1alpha2"),
    fix=("k8s.io/v1alpha2", "k8s.io/v1"),
)

GF658 = rule(
    "GF658", Severity.ERROR,
    title="This is not the form of a request in {value}.",
    reason="In v1 and v1beta2 what a request asks for stands below `exactly`, in v1beta1 beside its name. The API "
    "server refuses the other form.",
    remedy="Move it, or change apiVersion.",
    source="K8S-DOC (dynamic-resource-allocation)",
    wrong=_TEMPLATE.replace("exactly: {deviceClassName: gpu.nvidia.com}", "deviceClassName: gpu.nvidia.com"),
    fix=("deviceClassName: gpu.nvidia.com", "exactly: {deviceClassName: gpu.nvidia.com}"),
)

GF659 = rule(
    "GF659", Severity.WARNING,
    title="No known driver makes the device class {value}.",
    reason="A claim for a class that does not exist is never allocated, and its pod stays Pending.",
    remedy="Correct the name, or lint the DeviceClass together with this.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu (chart templates)",
    wrong=_TEMPLATE.replace("gpu.nvidia.com", "gpus.nvidia.com"),
    fix=("gpus.nvidia.com", "gpu.nvidia.com"),
)

GF660 = rule(
    "GF660", Severity.ERROR,
    title="The claim has no request {value}.",
    reason="Constraints and parameters name requests of the same claim. The API server refuses any other name.",
    remedy="Use the name of a request.",
    source="K8S-DOC (dynamic-resource-allocation)",
    wrong=_CONFIG.replace("requests: [g]", "requests: [gpu]"),
    fix=("requests: [gpu]", "requests: [g]"),
)

GF661 = rule(
    "GF661", Severity.ERROR,
    title="No node of this stack has devices of the class {value}.",
    reason="The stack offers its GPUs by a device plugin, not to claims. The claim is never allocated, and its pod "
    "stays Pending.",
    remedy="Ask for the resource that the pool offers, under limits: {{nvidia.com/gpu: 1}}",
    source="kubernetes-sigs/dra-driver-nvidia-gpu; NVIDIA/aicr#332",
    wrong="\n        # gpufleet lint FILE --stack-file Pulumi.a10.yaml" + _TEMPLATE,
    right="""
        # gpufleet lint FILE --stack-file Pulumi.a10.yaml
        apiVersion: v1
        kind: Pod
        metadata: {name: api}
        spec:
          containers:
          - name: c
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
)

GF662 = rule(
    "GF662", Severity.ERROR,
    title="The pod has no claim {value}.",
    reason="A container names claims of its pod's resourceClaims. The API server refuses any other name.",
    remedy="Use the name under resourceClaims.",
    source="K8S-DOC (dynamic-resource-allocation)",
    wrong=_POD.replace("---", "").replace("claims: [{name: g, request: g}]", "claims: [{name: gg}]"),
    fix=("claims: [{name: gg}]", "claims: [{name: g}]"),
)

GF663 = rule(
    "GF663", Severity.ERROR,
    title="The claim of this pod has no request {value}.",
    reason="The container gets the devices of the request that it names, so this one gets none.",
    remedy="Use the name of a request, or leave `request` out to get all devices of the claim.",
    source="K8S-DOC (dynamic-resource-allocation)",
    wrong=_TEMPLATE + _POD.replace("request: g", "request: gpu"),
    fix=("request: gpu", "request: g"),
)

GF664 = rule(
    "GF664", Severity.WARNING,
    title="No container uses the claim {value}.",
    reason="The pod holds the GPU, and none of its containers gets it.",
    remedy="Name the claim under resources.claims of a container.",
    source="K8S-DOC (dynamic-resource-allocation)",
    wrong=_TEMPLATE + _POD.replace(", resources: {claims: [{name: g, request: g}]}", ""),
    right=_TEMPLATE + _POD,
)

GF665 = rule(
    "GF665", Severity.ERROR,
    title="There is no {kind} {value} for this pod among what was given.",
    reason="The pod stays Pending until an object of this name is in its namespace.",
    remedy="Correct the name or the namespace.",
    source="K8S-DOC (dynamic-resource-allocation)",
    wrong=_TEMPLATE + _POD.replace("resourceClaimTemplateName: half-gpu", "resourceClaimTemplateName: half-gpuu"),
    fix=("resourceClaimTemplateName: half-gpuu", "resourceClaimTemplateName: half-gpu"),
)

GF666 = rule(
    "GF666", Severity.WARNING,
    title="Each of the {number} pods gets a GPU of its own; nothing is shared between them.",
    reason="A template makes one claim, and so one GPU, for each pod. Sharing in it is among the containers of a pod.",
    remedy="Let the pods name one ResourceClaim, or use the driver's consumable shares.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu#459; kubernetes-sigs/dra-driver-nvidia-gpu#850",
    wrong=_CONFIG
    + """
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: api}
        spec:
          replicas: 4
          template:
            spec:
              resourceClaims: [{name: g, resourceClaimTemplateName: half-gpu}]
              containers: [{name: c, image: "example/app:1", resources: {claims: [{name: g}]}}]
    """,
    fix=("replicas: 4", "replicas: 1"),
)

GF667 = rule(
    "GF667", Severity.ERROR,
    title="NVIDIA's driver refuses these parameters: {fault}.",
    reason="The driver reads them strictly, and only when the pod is on its node. Then the pod stays in "
    "ContainerCreating.",
    remedy="Correct them.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu (api/nvidia.com/resource/v1beta1)",
    wrong=_CONFIG.replace("defaultActiveThreadPercentage", "activeThreadPercentage"),
    fix=("activeThreadPercentage", "defaultActiveThreadPercentage"),
)

GF668 = rule(
    "GF668", Severity.NOTE,
    title="The strategy {value} needs the driver's feature gate {gate}.",
    reason="The gate is off by default. Without it the driver refuses the claim, and the pod stays in "
    "ContainerCreating.",
    remedy="Set featureGates in the values of the driver's chart: {{{gate}: true}}",
    source="kubernetes-sigs/dra-driver-nvidia-gpu (pkg/featuregates, api validate.go)",
    wrong=_CONFIG,
    right=_TEMPLATE,
)
