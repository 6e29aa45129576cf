"""Rules about which configuration is used where."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF530 = rule(
    "GF530", Severity.ERROR,
    title="There is no ConfigMap {value} among what was given.",
    reason="The pods that mount the ConfigMap stay in ContainerCreating.",
    remedy="Correct the name, or lint the file that brings the ConfigMap together with this one.",
    source="GPUO; PLUGIN (config-manager)",
    wrong="""
        devicePlugin:
          config: {name: sharign, default: any}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("name: sharign", "name: sharing"),
)

GF531 = rule(
    "GF531", Severity.ERROR,
    title="The ConfigMap {value} is in the namespace {there}, this needs it in {here}.",
    reason="A pod can only mount ConfigMaps of its own namespace; it stays in ContainerCreating.",
    remedy="Use one namespace.",
    source="K8S-DOC (configmap)",
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
                env: [{name: CONFIG_FILE, value: /config/any}]
                volumeMounts: [{name: config, mountPath: /config}]
              volumes: [{name: config, configMap: {name: sharing-5f6d7c}}]
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing-5f6d7c, namespace: default}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("namespace: default", "namespace: gpu"),
)

GF532 = rule(
    "GF532", Severity.ERROR,
    title="The ConfigMap {name} has no key {value}.",
    reason="Something asks for a key that the ConfigMap does not have; the plugin's pod does not start.",
    remedy="Use one of the allowed keys.",
    source="PLUGIN (config-manager); NVIDIA/gpu-operator#835",
    wrong="""
        devicePlugin:
          config: {name: sharing, default: anny}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("default: anny", "default: any"),
)

GF533 = rule(
    "GF533", Severity.WARNING,
    title="Nodes without the label nvidia.com/device-plugin.config run without sharing, and nothing says so.",
    reason="No default is set, and the operator's only fallback is an empty configuration.",
    remedy="Set devicePlugin.config.default to one of the keys.",
    source="GPUO; PLUGIN (config-manager)",
    wrong="devicePlugin: {config: {name: sharing}}",
    right="devicePlugin: {config: {name: sharing, default: any}}",
)

GF538 = rule(
    "GF538", Severity.NOTE,
    title="The key {value} looks like a GPU model; the name alone selects nothing.",
    reason="A key is used where it is the default, or where the node label nvidia.com/device-plugin.config names it.",
    remedy="Label the nodes: nvidia.com/device-plugin.config={value}",
    source="PLUGIN (config-manager)",
    wrong="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          tesla-t4: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    right="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          tesla-t4: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
        ---
        apiVersion: v1
        kind: Node
        metadata: {name: n1, labels: {nvidia.com/device-plugin.config: tesla-t4}}
    """,
)

GF539 = rule(
    "GF539", Severity.ERROR,
    title="The value of the key {key} is not a text.",
    reason="A ConfigMap holds text only.",
    remedy="Write the configuration as a block of text: `{key}: |`, indented.",
    source="K8S-DOC (configmap)",
    wrong="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: {version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}}
    """,
    right="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF553 = rule(
    "GF553", Severity.WARNING,
    title="The ConfigMap {value} is in the namespace {there}; the operator looks for it in its own only.",
    reason="The plugin's pods run in the operator's namespace and can mount no ConfigMap of another; they stay in "
    "ContainerCreating.",
    remedy="Create it where the operator is installed, for example: kubectl create -n gpu-operator -f ...",
    source="GPUO; K8S-DOC (configmap)",
    wrong="""
        apiVersion: nvidia.com/v1
        kind: ClusterPolicy
        metadata: {name: cluster-policy}
        spec: {devicePlugin: {config: {name: sharing, default: any}}}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing, namespace: default}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("namespace: default", "namespace: gpu-operator"),
)
