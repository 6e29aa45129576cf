"""Rules about values of the two charts, and ClusterPolicies."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF534 = rule(
    "GF534", Severity.ERROR,
    title="devicePlugin.config.default has no effect without devicePlugin.config.name.",
    reason="The operator looks at the name only, and runs the plugin without any configuration.",
    remedy="Set devicePlugin.config.name.",
    source="GPUO; NVIDIA/gpu-operator#1745",
    wrong="devicePlugin: {config: {default: any}}",
    right="devicePlugin: {config: {name: sharing, default: any}}",
)

GF535 = rule(
    "GF535", Severity.ERROR,
    title="devicePlugin.config.create needs {what}.",
    reason="Before chart 26.7.0 nothing says so, and the plugin's pods cannot mount their ConfigMap.",
    remedy="Set it, or create: false.",
    source="NVIDIA/gpu-operator#2641",
    wrong="devicePlugin: {config: {create: true, name: sharing}}",
    right="""
        devicePlugin:
          config:
            create: true
            name: sharing
            default: any
            data: {any: "version: v1"}
    """,
)

GF536 = rule(
    "GF536", Severity.ERROR,
    title="config.name and config.map are both set.",
    reason="The chart refuses to render with both.",
    remedy="Keep the name of an existing ConfigMap, or the map.",
    source="PLUGIN (chart)",
    wrong="""
        gfd: {enabled: true}
        config:
          name: sharing
          map:
            any: |
              version: v1
              sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("name: sharing\n  ", ""),
)

GF537 = rule(
    "GF537", Severity.ERROR,
    title="config.map has several keys and nothing says which one is the default.",
    reason="The chart refuses to render; it needs config.default, a key called default, or the fallback strategy "
    "empty.",
    remedy="Set config.default to one of the keys.",
    source="PLUGIN (chart)",
    wrong="""
        gfd: {enabled: true}
        config:
          map:
            t4: |
              version: v1
              sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
            a100: |
              version: v1
              sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("config:", "config:\n  default: t4"),
)

GF548 = rule(
    "GF548", Severity.ERROR,
    title="A sharing configuration is given, and the device plugin is switched off.",
    reason="With devicePlugin.enabled false nobody reads it.",
    remedy="Switch the plugin on, or remove the configuration.",
    source="GPUO",
    wrong="""
        devicePlugin:
          enabled: false
          config:
            create: true
            name: sharing
            default: any
            data:
              any: |
                version: v1
                sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("enabled: false", "enabled: true"),
)

GF549 = rule(
    "GF549", Severity.ERROR,
    title="MPS needs gfd.enabled in these values.",
    reason="The MPS daemon runs only on nodes labelled nvidia.com/mps.capable=true, a label that only feature "
    "discovery writes.",
    remedy="Set gfd.enabled: true.",
    source="NVIDIA/k8s-device-plugin#762; NVIDIA/k8s-device-plugin#634; PLUGIN (chart)",
    wrong="""
        gfd: {enabled: false}
        config:
          map:
            any: |
              version: v1
              sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("enabled: false", "enabled: true"),
)

GF551 = rule(
    "GF551", Severity.WARNING,
    title="{key} has no effect any more.",
    reason="The chart still takes the value, and no template reads it.",
    remedy="Remove it.",
    source="GPUO",
    wrong="""
        driver: {useOpenKernelModules: true}
        toolkit: {enabled: true}
    """,
    fix=("useOpenKernelModules: true", "kernelModuleType: open"),
)

GF552 = rule(
    "GF552", Severity.WARNING,
    title="{key} is empty and is rendered as such.",
    reason="The chart puts empty and null fields into the ClusterPolicy, which server-side apply and Argo CD then "
    "reject.",
    remedy="Remove the key, or write the value that is meant.",
    do="{remedy_text}",
    source="NVIDIA/gpu-operator#1745; NVIDIA/gpu-operator#461; NVIDIA/gpu-operator#1993",
    wrong="""
        validator: {plugin: null}
        toolkit: {enabled: true}
    """,
    fix=("validator: {plugin: null}\n", ""),
)

GF554 = rule(
    "GF554", Severity.WARNING,
    title="With these values the plugin runs on no node of a fresh cluster.",
    reason="The chart requires labels that node feature discovery or a person must set, and both gfd.enabled and "
    "NFD are off.",
    remedy="Set gfd.enabled: true, or label the pool nvidia.com/gpu.present=true.",
    source="NVIDIA/k8s-device-plugin#708; NVIDIA/k8s-device-plugin#607",
    wrong="""
        gfd: {enabled: false}
        config:
          map:
            any: |
              version: v1
              sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("enabled: false", "enabled: true"),
)

GF556 = rule(
    "GF556", Severity.WARNING,
    title="The exporter will show one pod per GPU, or none.",
    reason="Shared devices carry a suffix that the exporter only understands with KUBERNETES_VIRTUAL_GPUS=true.",
    remedy="Set dcgmExporter.env: [{{name: KUBERNETES_VIRTUAL_GPUS, value: \"true\"}}]",
    source="NVIDIA/dcgm-exporter#151; NVIDIA/dcgm-exporter#201",
    wrong="""
        devicePlugin:
          enabled: true
          config:
            create: true
            name: sharing
            default: any
            data:
              any: |
                version: v1
                sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    right="""
        dcgmExporter: {env: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]}
        devicePlugin:
          enabled: true
          config:
            create: true
            name: sharing
            default: any
            data:
              any: |
                version: v1
                sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF557 = rule(
    "GF557", Severity.NOTE,
    title="Pod labels of the exporter arrive in Prometheus as exported_pod and exported_namespace.",
    reason="honorLabels is false, so Prometheus renames what clashes with its own labels.",
    remedy="Set serviceMonitor.honorLabels: true, or write dashboards for the exported_ names.",
    source="NVIDIA/dcgm-exporter#340; NVIDIA/dcgm-exporter#85",
    wrong="""
        dcgmExporter: {serviceMonitor: {enabled: true, honorLabels: false}}
        toolkit: {enabled: true}
    """,
    fix=("honorLabels: false", "honorLabels: true"),
)

GF559 = rule(
    "GF559", Severity.ERROR,
    title="devicePlugin.config.data has no effect without devicePlugin.config.create.",
    reason="The chart makes the ConfigMap only with create: true; without it the name must be that of a ConfigMap "
    "that exists.",
    remedy="Set create: true, or remove data.",
    source="GPUO",
    wrong="""
        devicePlugin:
          enabled: true
          config:
            name: sharing
            default: any
            data:
              any: |
                version: v1
                sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("config:", "config:\n    create: true"),
)

GF566 = rule(
    "GF566", Severity.WARNING,
    title="No taint of the GPU nodes is tolerated by {value}.",
    reason="The operand gets the tolerations of daemonsets.tolerations only, and there are none; older operators "
    "give it none of its own.",
    because="It gets the tolerations of daemonsets.tolerations only, and there are none; before operator {own_from} "
    "it has none of its own either (NVIDIA/gpu-operator#2717).",
    remedy="Add the taints of the GPU nodes to daemonsets.tolerations: [{{key: nvidia.com/gpu, operator: Exists, "
    "effect: NoSchedule}}]",
    source="NVIDIA/gpu-operator#2717",
    wrong="""
        apiVersion: nvidia.com/v1
        kind: ClusterPolicy
        metadata: {name: cluster-policy, labels: {app.kubernetes.io/version: v26.3.3}}
        spec:
          sandboxWorkloads: {enabled: true}
          daemonsets: {tolerations: []}
    """,
    fix=("tolerations: [", "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}"),
)
