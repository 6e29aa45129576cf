"""Rules about how the plugin is installed, and about installations beside each other."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF545 = rule(
    "GF545", Severity.ERROR,
    title="Two installations register nvidia.com/gpu: {value} and {other}.",
    reason="The kubelet keeps the last one that registers; counts and sharing change with every restart.",
    remedy="Keep one. With the operator, set devicePlugin.enabled to false for the other.",
    source="NVIDIA/k8s-device-plugin#990; NVIDIA/k8s-device-plugin#255; NVIDIA/k8s-device-plugin#647",
    wrong="""
        devicePlugin: {enabled: true}
        toolkit: {enabled: false}
        ---
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
    fix=("enabled: true", "enabled: false"),
)

GF555 = rule(
    "GF555", Severity.ERROR,
    title="HAMi and NVIDIA's device plugin both register nvidia.com/gpu.",
    reason="On one node the last one wins, and counts are wrong from then on.",
    remedy="Keep one per node; with HAMi set devicePlugin.enabled: false in the operator's values.",
    source="Project-HAMi/HAMi#646; Project-HAMi/HAMi#1708",
    wrong="""
        devicePlugin: {enabled: true}
        toolkit: {enabled: false}
        ---
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: hami, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: hami
                image: projecthami/hami:v2.10.0
    """,
    fix=("enabled: true", "enabled: false"),
)

GF558 = rule(
    "GF558", Severity.ERROR,
    title="MIG manager does not restart a device plugin that the operator did not install.",
    reason="It stops its clients by the label nvidia.com/gpu.deploy.device-plugin, which this DaemonSet does not "
    "follow.",
    remedy="Set nodeSelector: {{nvidia.com/gpu.deploy.device-plugin: \"true\"}} on the plugin.",
    source="NVIDIA/mig-parted#485; NVIDIA/gpu-operator#2833",
    wrong="""
        devicePlugin: {enabled: false}
        migManager: {enabled: true}
        ---
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              nodeSelector: {nvidia.com/gpu.present: "true"}
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
    fix=("nvidia.com/gpu.present:", "nvidia.com/gpu.deploy.device-plugin:"),
)

GF560 = rule(
    "GF560", Severity.WARNING,
    title="The annotation scheduler.alpha.kubernetes.io/critical-pod does nothing since Kubernetes 1.16.",
    reason="The sample that it comes from is old.",
    remedy="Set priorityClassName: system-node-critical.",
    source="MicrosoftDocs/azure-docs#123166",
    wrong="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            metadata: {annotations: {scheduler.alpha.kubernetes.io/critical-pod: ""}}
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
    right="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              priorityClassName: system-node-critical
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
)

GF561 = rule(
    "GF561", Severity.WARNING,
    title="The plugin has no priority class.",
    reason="Under pressure the kubelet evicts it like any pod, and the node offers no GPU.",
    remedy="Set priorityClassName: system-node-critical.",
    source="K8S-DOC (guaranteed-scheduling-critical-addon-pods)",
    wrong="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
    right="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              priorityClassName: system-node-critical
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
)

GF562 = rule(
    "GF562", Severity.WARNING,
    title="The plugin runs on every node, with or without a GPU.",
    reason="Without node selector or affinity it waits on CPU nodes, or crashes there.",
    remedy="Select the GPU nodes by a label.",
    source="MicrosoftDocs/azure-docs#115314",
    wrong="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
    right="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              nodeSelector: {nvidia.com/gpu.present: "true"}
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
    """,
)

GF563 = rule(
    "GF563", Severity.NOTE,
    title="This runs the plugin in version {value}; the answers here are those of {known}.",
    reason="Rules and defaults differ between versions.",
    remedy="Use {known}, or check the difference in the plugin's changelog.",
    source="PLUGIN",
    wrong="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.14.5
    """,
    fix=("nvcr.io/nvidia/k8s-device-plugin:v0.14.5", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"),
)

GF564 = rule(
    "GF564", Severity.WARNING,
    title="Two DaemonSets of one namespace select the same pods: {value} and {other}.",
    reason="Services, budgets and monitors that select by these labels hit the pods of both; an MPS daemon that did "
    "not start was reported (NVIDIA/k8s-device-plugin#982).",
    remedy="Give each its own matchLabels. NVIDIA's chart has no value for that; with it, select pods by none of "
    "these labels.",
    source="NVIDIA/k8s-device-plugin#982",
    wrong="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          selector: {matchLabels: {app: plugin}}
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        ---
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: mps, namespace: gpu}
        spec:
          selector: {matchLabels: {app: plugin}}
          template:
            spec:
              containers:
              - name: mps
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                command: [mps-control-daemon]
    """,
    right="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          selector: {matchLabels: {app: plugin}}
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        ---
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: mps, namespace: gpu}
        spec:
          selector: {matchLabels: {app: mps}}
          template:
            spec:
              containers:
              - name: mps
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                command: [mps-control-daemon]
    """,
)

GF565 = rule(
    "GF565", Severity.WARNING,
    title="This {kind} selects the pods of plugin, feature discovery and MPS daemon alike.",
    reason="The chart gives all three the same labels.",
    remedy="Select by a label that only one of them has.",
    source="NVIDIA/k8s-device-plugin#982",
    wrong="""
        apiVersion: policy/v1
        kind: PodDisruptionBudget
        metadata: {name: plugin}
        spec:
          selector:
            matchLabels: {app.kubernetes.io/name: nvidia-device-plugin}
    """,
    right="""
        apiVersion: policy/v1
        kind: PodDisruptionBudget
        metadata: {name: plugin}
        spec:
          selector:
            matchLabels:
              app.kubernetes.io/name: nvidia-device-plugin
              app.kubernetes.io/component: gpu-feature-discovery
    """,
)
