"""Rules about MIG layouts and the MIG manager that applies them."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF650 = rule(
    "GF650", Severity.ERROR,
    title="There is no key {key} in the ConfigMap {name}.",
    reason="The operator gives the MIG manager this one key as its file. Without it the manager cannot read its file, "
    "and exits.",
    because="The operator gives the MIG manager this one key as its file; here is {value}. The manager cannot read its "
    "file, and exits.",
    remedy="Name the key config.yaml.",
    source="NVIDIA/mig-parted#157; NVIDIA/gpu-operator (values.yaml, migManager.config)",
    wrong="""
        migManager: {config: {name: parts}}
        toolkit: {enabled: false}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: parts}
        data:
          mig.yaml: |
            version: v1
            mig-configs: {all-disabled: [{devices: all, mig-enabled: false}]}
    """,
    fix=("mig.yaml:", "config.yaml:"),
)

GF651 = rule(
    "GF651", Severity.ERROR,
    title="No layout is called {value}.",
    reason="The label nvidia.com/mig.config names a layout of the MIG manager's file. With another value the state "
    "becomes failed, and the GPUs stay as they are.",
    remedy="Use the name of a layout.",
    source="NVIDIA/mig-parted (reconfigure-mig.sh)",
    wrong="""
        migManager: {config: {name: parts}}
        toolkit: {enabled: false}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: parts}
        data:
          config.yaml: |
            version: v1
            mig-configs: {half: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}]}
        ---
        apiVersion: v1
        kind: Node
        metadata: {name: gpu01, labels: {nvidia.com/mig.config: halves}}
    """,
    fix=("mig.config: halves", "mig.config: half"),
)

GF652 = rule(
    "GF652", Severity.ERROR,
    title="The default of the MIG manager cannot be {value}.",
    reason="The ClusterPolicy takes all-disabled or nothing here, so the API server refuses it.",
    remedy="Leave the default out, and choose the layout with the node label nvidia.com/mig.config.",
    source="NVIDIA/gpu-operator (ClusterPolicy v1, migManager.config.default)",
    wrong="""
        migManager: {config: {name: parts, default: half}}
        toolkit: {enabled: false}
    """,
    fix=("default: half", "default: all-disabled"),
)

GF653 = rule(
    "GF653", Severity.ERROR,
    title="mig-parted refuses this file: {fault}.",
    reason="It reads the file strictly. With one mistake it applies none of the layouts.",
    remedy="Correct it.",
    source="NVIDIA/mig-parted (api/spec/v1/spec.go)",
    wrong="""
        version: v1
        mig-configs:
          half:
          - {devices: all, mig-enable: true, mig-devices: {3g.40gb: 2}}
    """,
    fix=("mig-enable:", "mig-enabled:"),
)

GF654 = rule(
    "GF654", Severity.WARNING,
    title="No node label can name the layout {value}.",
    reason="Values of labels have up to 63 letters, digits, dots, dashes and underscores, so nobody can select this "
    "layout. NVIDIA writes 1g.10gb.me where the profile is 1g.10gb+me.",
    remedy="Give it another name.",
    source="NVIDIA/mig-parted (config-default.yaml); K8S-DOC (labels)",
    wrong="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: parts}
        data:
          config.yaml: |
            version: v1
            mig-configs: {all-1g.10gb+me: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb+me: 1}}]}
    """,
    fix=("all-1g.10gb+me:", "all-1g.10gb.me:"),
)

GF655 = rule(
    "GF655", Severity.NOTE,
    title="{gpu} does not take the layouts {value}.",
    reason="They fit on other GPUs, and other layouts here fit on this one.",
    remedy="Nothing, as long as no label selects them on such a node.",
    source="mig; MIG-UG",
    wrong="""
        # gpufleet lint FILE --gpus 2xA30
        version: v1
        mig-configs:
          a30: [{devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}]
          a100: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]
    """,
    fix=("1g.5gb: 7", "2g.12gb: 2"),
)

GF656 = rule(
    "GF656", Severity.WARNING,
    title="The node has no GPU {value}; it has {gpus}, counted from 0.",
    reason="mig-parted passes over numbers that no GPU has, so this entry does less than it says.",
    remedy="Use the numbers that nvidia-smi shows, or `devices: all`.",
    source="NVIDIA/mig-parted (cmd/nvidia-mig-parted/assert)",
    wrong="""
        # gpufleet lint FILE --gpus 2xA30
        version: v1
        mig-configs:
          second: [{devices: [2], mig-enabled: true, mig-devices: {1g.6gb: 4}}]
    """,
    fix=("devices: [2]", "devices: [1]"),
)
