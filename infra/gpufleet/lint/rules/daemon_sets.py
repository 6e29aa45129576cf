"""Rules about DaemonSets of the plugin and how they get a configuration."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF540 = rule(
    "GF540", Severity.ERROR,
    title="The configuration {value} arrives as environment variables; the plugin reads none of them.",
    reason="The plugin takes a configuration only from the file that CONFIG_FILE or --config-file names.",
    remedy="Mount the ConfigMap as a directory and set CONFIG_FILE to the file in it.",
    source="NVIDIA/k8s-device-plugin#615",
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
                envFrom: [{configMapRef: {name: sharing-5f6d7c}}]
    """,
    right="""
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
    """,
)

GF541 = rule(
    "GF541", Severity.ERROR,
    title="A configuration is mounted, and nothing tells the plugin to read it.",
    reason="The plugin looks at no fixed place; without CONFIG_FILE or --config-file it runs on its defaults.",
    remedy="Set the environment variable CONFIG_FILE to {expected}.",
    source="NVIDIA/k8s-device-plugin#615",
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
                volumeMounts: [{name: config, mountPath: /config}]
              volumes: [{name: config, configMap: {name: sharing-5f6d7c}}]
    """,
    fix=(
        "image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
        "image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0\n        env: [{name: CONFIG_FILE, value: /config/any}]",
    ),
)

GF542 = rule(
    "GF542", Severity.ERROR,
    title="Nothing is mounted at {value}.",
    reason="The plugin exits when the file that CONFIG_FILE or --config-file names does not exist.",
    remedy="Point CONFIG_FILE at a key below a mount of the ConfigMap.",
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
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                env: [{name: CONFIG_FILE, value: /etc/nvidia/any}]
                volumeMounts: [{name: config, mountPath: /config}]
              volumes: [{name: config, configMap: {name: sharing-5f6d7c}}]
    """,
    fix=("value: /etc/nvidia/any", "value: /config/any"),
)

GF543 = rule(
    "GF543", Severity.WARNING,
    title="The configuration is mounted with subPath and will never change in a running pod.",
    reason="Kubernetes does not update files mounted by subPath.",
    remedy="Mount the ConfigMap as a directory.",
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
                env: [{name: CONFIG_FILE, value: /config.yaml}]
                volumeMounts: [{name: config, mountPath: /config.yaml, subPath: any}]
              volumes: [{name: config, configMap: {name: sharing-5f6d7c}}]
    """,
    right="""
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
    """,
)

GF544 = rule(
    "GF544", Severity.ERROR,
    title="MPS needs a control daemon, and nothing here brings one.",
    reason="The plugin advertises the replicas and waits for a control daemon that nothing starts.",
    remedy="Use the chart or the operator for MPS, or time-slicing here.",
    source="NVIDIA/k8s-device-plugin#1132; NVIDIA/k8s-device-plugin#762",
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
        metadata: {name: sharing-5f6d7c, namespace: gpu}
        data:
          any: |
            version: v1
            flags: {mpsRoot: /run/nvidia/mps}
            sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    right="""
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
        metadata: {name: sharing-5f6d7c, namespace: gpu}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF546 = rule(
    "GF546", Severity.ERROR,
    title="Feature discovery does not read the plugin's configuration.",
    reason="Its labels gpu.replicas, gpu.product and gpu.sharing-strategy will not match what the node offers.",
    remedy="Give it the same ConfigMap and CONFIG_FILE as the plugin.",
    source="NVIDIA/k8s-device-plugin#732; NVIDIA/gpu-feature-discovery#76",
    wrong="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: gfd, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: gfd
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                command: [gpu-feature-discovery]
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing-5f6d7c, namespace: gpu}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    right="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: gfd, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: gfd
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                command: [gpu-feature-discovery]
                env: [{name: CONFIG_FILE, value: /config/any}]
                volumeMounts: [{name: config, mountPath: /config}]
              volumes: [{name: config, configMap: {name: sharing-5f6d7c}}]
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing-5f6d7c, namespace: gpu}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF547 = rule(
    "GF547", Severity.NOTE,
    title="A change of the ConfigMap {value} reaches no running pod.",
    reason="The plugin reads its file when it starts, and nothing watches the file. A change takes effect at some "
    "later restart.",
    remedy="Carry a hash of the content in the ConfigMap's name or in a pod annotation, or restart the DaemonSet.",
    source="NVIDIA/gpu-operator#1144",
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
              volumes: [{name: config, configMap: {name: sharing}}]
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing, namespace: gpu}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    right="""
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
        metadata: {name: sharing-5f6d7c, namespace: gpu}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF567 = rule(
    "GF567", Severity.ERROR,
    title="The plugin has no option {value}.",
    reason="It prints its help and exits; the node offers no GPU at all.",
    remedy="Use the option that is meant, or remove it. A ConfigMap is mounted as a file and named by --config-file.",
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
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                args: [--config-map=sharing]
    """,
    right="""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: gpu}
        spec:
          template:
            spec:
              containers:
              - name: plugin
                image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
                args: [--config-file=/config/any]
                volumeMounts: [{name: config, mountPath: /config}]
              volumes: [{name: config, configMap: {name: sharing-5f6d7c}}]
    """,
)
