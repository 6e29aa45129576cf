"""Rules about configurations of NVIDIA's device plugin."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF510 = rule(
    "GF510", Severity.ERROR,
    title="The device plugin refuses this configuration: {fault}",
    reason="The plugin exits at start, and the node offers no GPU at all.",
    remedy="Correct the value.",
    source="PLUGIN; NVIDIA/k8s-device-plugin#1022",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 1}
    """,
    fix=("replicas: 1", "replicas: 4"),
)

GF511 = rule(
    "GF511", Severity.ERROR,
    title="The device plugin refuses these options: {fault}",
    reason="The plugin exits at start, and the node offers no GPU at all.",
    remedy="Correct the option, or the environment variable that sets it.",
    source="PLUGIN; NVIDIA/k8s-device-plugin#1132",
    wrong="""
        version: v1
        flags: {migStrategy: Mixed}
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    fix=("migStrategy: Mixed", "migStrategy: mixed"),
)

GF512 = rule(
    "GF512", Severity.ERROR,
    title="The device plugin cannot serve this node: {fault}",
    reason="With this MIG strategy the plugin exits on the given layout.",
    remedy="Choose another strategy or another layout; `mixed` takes any layout in which no MIG-enabled GPU is "
    "empty.",
    source="PLUGIN",
    wrong="""
        # gpufleet lint FILE --gpus 2xA100-80GB --mig 0=1g.10gb
        version: v1
        flags: {migStrategy: single}
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    fix=("migStrategy: single", "migStrategy: mixed"),
)

GF513 = rule(
    "GF513", Severity.ERROR,
    title="The key {key} does not exist here and does nothing.",
    reason="The plugin drops keys that it does not know, without an error.",
    remedy="Use the key that is meant, or remove it.",
    source="PLUGIN; NVIDIA/k8s-device-plugin#1433",
    wrong="""
        version: v1
        sharing:
          time_slicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    fix=("time_slicing:", "timeSlicing:"),
)

GF514 = rule(
    "GF514", Severity.ERROR,
    title="The key {key} stands in the wrong place and does nothing there.",
    reason="The plugin knows the key under another parent only, and drops it here without an error.",
    remedy="Move it to {meant}.",
    source="PLUGIN; NVIDIA/k8s-device-plugin#1433",
    wrong="""
        version: v1
        flags: {renameByDefault: true}
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    right="""
        version: v1
        sharing:
          timeSlicing:
            renameByDefault: true
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
)

GF515 = rule(
    "GF515", Severity.ERROR,
    title="The key {key} does nothing: upper and lower case count here.",
    reason="At this level the plugin takes a key in its exact spelling only, and drops others without an error.",
    remedy="Write {meant}.",
    source="PLUGIN",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failrequestsgreaterthanone: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    fix=("failrequestsgreaterthanone:", "failRequestsGreaterThanOne:"),
)

GF516 = rule(
    "GF516", Severity.ERROR,
    title="The key {key} stands here more than once; this value is lost.",
    reason="The plugin takes the last of equal keys and drops the others without an error.",
    remedy="Keep one.",
    source="PLUGIN; YAML",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 2, replicas: 4}
    """,
    fix=("2, replicas: ", ""),
)

GF517 = rule(
    "GF517", Severity.ERROR,
    title="{key} has no effect.",
    reason="The plugin checks the form of this key and then ignores it: all GPUs of a node are shared alike, under "
    "the resource's own name.",
    remedy="Remove it. Different factors need different nodes, one profile per node label.",
    source="PLUGIN; NVIDIA/k8s-device-plugin#1786; NVIDIA/k8s-device-plugin#628",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4, devices: [0]}
    """,
    fix=("4, devices: [0]", "4"),
)

GF518 = rule(
    "GF518", Severity.ERROR,
    title="No resource is called {value}; this entry shares nothing.",
    reason="Sharing applies to resources that the node has without it; an entry for another name is ignored.",
    remedy="Name the resource that the node advertises without sharing.",
    source="PLUGIN",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/a100, replicas: 4}
    """,
    fix=("name: nvidia.com/a100", "name: nvidia.com/gpu"),
)

GF519 = rule(
    "GF519", Severity.ERROR,
    title="sharing.timeSlicing has no effect beside sharing.mps.",
    reason="The plugin takes MPS where both are given, and ignores time-slicing.",
    remedy="Keep one of the two.",
    source="PLUGIN",
    wrong="""
        version: v1
        flags: {mpsRoot: /run/nvidia/mps}
        sharing:
          timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
          mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
    """,
    fix=("timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}\n  ", ""),
)

GF520 = rule(
    "GF520", Severity.WARNING,
    title="{key} in the file has no effect: {fault}.",
    reason="The environment of the plugin counts before the file; the GPU Operator and the plugin's chart set it.",
    remedy="Set it where it counts, and remove it from the file.",
    source="PLUGIN; GPUO",
    wrong="""
        # gpufleet lint FILE --env MIG_STRATEGY=single
        version: v1
        flags: {migStrategy: mixed}
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    fix=("flags: {migStrategy: mixed}\n", ""),
)

GF521 = rule(
    "GF521", Severity.ERROR,
    title="A second document stands in the text; the plugin never reads it.",
    reason="The plugin reads the first document of its file and no other.",
    remedy="Put everything into one document, or each configuration under a key of its own.",
    source="PLUGIN",
    wrong="""
        version: v1
        ---
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("---\nversion: v1\n", ""),
)

GF522 = rule(
    "GF522", Severity.ERROR,
    title="This entry for {value} has no effect on the count.",
    reason="Of several entries for one resource the largest factor counts, while the label nvidia.com/gpu.replicas "
    "shows the first.",
    remedy="Keep one entry per resource.",
    source="PLUGIN",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
            - {name: gpu, replicas: 2}
    """,
    right="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
)

GF523 = rule(
    "GF523", Severity.ERROR,
    title="{value} is read as {number}.",
    reason="The plugin reads YAML 1.1, where a leading 0 means octal, 0x hexadecimal, 0b binary, and underscores "
    "are dropped.",
    remedy="Write the number that is meant as a plain decimal.",
    source="PLUGIN; YAML",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 010}
    """,
    fix=("replicas: 010", "replicas: 10"),
)

GF524 = rule(
    "GF524", Severity.ERROR,
    title="Feature discovery fails here and takes every GPU label off the node.",
    reason="Feature discovery ends with an error where MPS meets GPUs in MIG mode.",
    remedy="Use MPS only on nodes without MIG.",
    source="PLUGIN",
    wrong="""
        # gpufleet lint FILE --gpus 2xA100-80GB --mig 0=1g.10gb --env MPS_ROOT=/run/nvidia/mps
        version: v1
        sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("mps:", "timeSlicing:"),
)

GF525 = rule(
    "GF525", Severity.ERROR,
    title="No MPS control daemon will start: {fault}",
    reason="The plugin advertises the replicas all the same, and waits for a daemon that never comes.",
    remedy="Use at most {limit} replicas per GPU.",
    source="PLUGIN (mps-control-daemon)",
    wrong="""
        # gpufleet lint FILE --gpus 2xA100-80GB --env MPS_ROOT=/run/nvidia/mps
        version: v1
        sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 49}]}}
    """,
    fix=("replicas: 49", "replicas: 48"),
)

GF526 = rule(
    "GF526", Severity.WARNING,
    title="{value} replicas per GPU are more than a GPU serves.",
    reason="Replicas do not divide memory. Every replica that a pod gets becomes an entry in its container's "
    "environment.",
    remedy="Use at most {limit}, or limit memory by other means.",
    source="NVIDIA/k8s-device-plugin#1432",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            failRequestsGreaterThanOne: true
            resources:
            - {name: nvidia.com/gpu, replicas: 4096}
    """,
    fix=("replicas: 4096", "replicas: 4"),
)

GF527 = rule(
    "GF527", Severity.NOTE,
    title="Pods may ask for several shares of one GPU and gain nothing by it.",
    reason="Several shares of one GPU bring neither more memory nor more compute.",
    remedy="Set failRequestsGreaterThanOne: true, so that such a pod is refused.",
    source="NVIDIA/k8s-device-plugin#491; NVIDIA/gpu-operator#386",
    wrong="""
        version: v1
        sharing:
          timeSlicing:
            resources:
            - {name: nvidia.com/gpu, replicas: 4}
    """,
    fix=("timeSlicing:", "timeSlicing:\n    failRequestsGreaterThanOne: true"),
)

GF528 = rule(
    "GF528", Severity.ERROR,
    title="A whole {value} stands where the plugin's configuration belongs.",
    reason="The plugin knows none of its keys and ignores them; nothing is shared.",
    remedy="Put only the text that begins with `version` and `sharing` here.",
    source="PLUGIN",
    wrong="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: |
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: sharing}
            data:
              any: |
                version: v1
                sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
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
