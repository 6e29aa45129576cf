"""Rules about pods that use GPUs."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF607 = rule(
    "GF607", Severity.WARNING,
    title="NVIDIA_VISIBLE_DEVICES is set next to a GPU request.",
    reason="The value of the pod counts before the plugin's, and the container sees GPUs that were given to others.",
    remedy="Remove the variable.",
    source="CTK",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]\n    ", ""),
)

GF608 = rule(
    "GF608", Severity.WARNING,
    title="NVIDIA_VISIBLE_DEVICES takes GPUs without asking for them.",
    reason="The scheduler and every other pod take those GPUs for free.",
    remedy="Remove the variable and request a GPU.",
    source="CTK",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
    """,
    fix=("env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]", "resources: {limits: {nvidia.com/gpu: 1}}"),
)

GF609 = rule(
    "GF609", Severity.WARNING,
    title="CUDA_VISIBLE_DEVICES is set next to a GPU request.",
    reason="Inside the container GPUs are counted from 0 again; another index or UUID hides the GPU that was given.",
    remedy="Remove the variable.",
    source="CUDA-PG",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            env: [{name: CUDA_VISIBLE_DEVICES, value: "1"}]
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=('env: [{name: CUDA_VISIBLE_DEVICES, value: "1"}]\n    ', ""),
)

GF610 = rule(
    "GF610", Severity.WARNING,
    title="A request for {value} brings no toleration for the taint nvidia.com/gpu.",
    reason="The toleration that clusters add by themselves has the name of the requested resource as its key, which "
    "is not the key of the taint.",
    remedy="Add the toleration {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}.",
    source="Azure/AKS#1449; K8S-DOC (admission-controllers)",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu.shared: 1}}
    """,
    fix=("spec:", "spec:\n  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]"),
)

GF611 = rule(
    "GF611", Severity.ERROR,
    title="hostUsers: false does not work with GPUs.",
    reason="The NVIDIA container toolkit does not support pods with a user namespace of their own.",
    remedy="Remove hostUsers.",
    source="NVIDIA/nvidia-container-toolkit#648",
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          hostUsers: false
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("hostUsers: false\n  ", ""),
)

GF612 = rule(
    "GF612", Severity.WARNING,
    title="Nothing bounds the GPU memory of this container, and the GPU is shared.",
    reason="Under time-slicing all pods share one frame buffer; the first that takes all of it makes the others "
    "fail.",
    remedy="Bound it with an option of the framework, or use MPS or MIG.",
    source="NVIDIA/k8s-device-plugin#461; isolation_h200",
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
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=(
        "image: example/app:1",
        'image: example/app:1\n    env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "0.2"}]',
    ),
)

GF613 = rule(
    "GF613", Severity.WARNING,
    title="Pods that may share a GPU are forced onto different nodes.",
    reason="With one pod per node the other shares of its GPU stay empty, and further pods stay Pending.",
    remedy="Use preferred anti-affinity, or ScheduleAnyway.",
    source="K8S-DOC (topology-spread-constraints)",
    wrong="""
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: serve}
        spec:
          replicas: 3
          template:
            spec:
              topologySpreadConstraints:
              - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}
              containers:
              - name: app
                image: example/app:1
                env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "0.2"}]
                resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("whenUnsatisfiable: DoNotSchedule", "whenUnsatisfiable: ScheduleAnyway"),
)

GF614 = rule(
    "GF614", Severity.WARNING,
    title="Nothing spreads these pods over the nodes.",
    reason="The scheduler may put all of them onto the shares of one GPU while others are idle.",
    remedy="Add a topology spread over kubernetes.io/hostname with whenUnsatisfiable: ScheduleAnyway.",
    source="K8S-DOC (topology-spread-constraints)",
    wrong="""
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
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
                env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "0.2"}]
                resources: {limits: {nvidia.com/gpu: 1}}
    """,
    right="""
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: serve}
        spec:
          replicas: 3
          template:
            spec:
              topologySpreadConstraints:
              - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}
              containers:
              - name: app
                image: example/app:1
                env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "0.2"}]
                resources: {limits: {nvidia.com/gpu: 1}}
    """,
)

GF618 = rule(
    "GF618", Severity.ERROR,
    title="Pods that share a GPU reserve {value} of its memory together.",
    reason="Each server reserves its fraction of the whole GPU at start; the pods that come last fail.",
    remedy="Lower the fraction to at most {each} per pod, or share with fewer pods.",
    source="NVIDIA/k8s-device-plugin#461; isolation_h200",
    wrong="""
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: serve}
        spec:
          replicas: 3
          template:
            spec:
              topologySpreadConstraints:
              - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}
              containers:
              - name: app
                image: vllm/vllm-openai:v0.6.3
                args: [--gpu-memory-utilization=0.9]
                resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("args: [--gpu-memory-utilization=0.9", "args: [--gpu-memory-utilization=0.3"),
)

GF619 = rule(
    "GF619", Severity.WARNING,
    title="With the given configuration no node carries the product label {value}.",
    reason="Sharing adds -SHARED to nvidia.com/gpu.product, except with renameByDefault.",
    because="Sharing adds -SHARED to nvidia.com/gpu.product, except with renameByDefault; here the label is "
    "{product}.",
    remedy="Select {product}.",
    source="PLUGIN",
    wrong="""
        # gpufleet lint FILE --gpus 2xH200
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
          containers:
          - name: app
            image: example/app:1
            env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "0.2"}]
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("nvidia.com/gpu.product: NVIDIA-H200", "nvidia.com/gpu.product: NVIDIA-H200-SHARED"),
)

GF620 = rule(
    "GF620", Severity.ERROR,
    title="The taint {value} keeps this pod off the nodes.",
    reason="Nothing in the pod tolerates the taint, and no requested resource has its key as its name.",
    remedy="Add the toleration {{key: {key}, operator: Exists, effect: {effect}}}.",
    source="Azure/AKS#1449; NVIDIA/k8s-device-plugin#68",
    wrong="""
        # gpufleet lint FILE --taint sku=gpu:NoSchedule
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("spec:", "spec:\n  tolerations: [{key: sku, operator: Exists, effect: NoSchedule}]"),
)
