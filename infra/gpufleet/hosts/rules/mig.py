"""Rules about MIG layouts."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF753 = rule(
    "GF753", Severity.ERROR,
    title="MIG layout cannot fit: {layout} on {gpu}: {reason}",
    reason="The layout fails only when it is applied.",
    remedy="Correct the layout; profiles of the GPU: {profiles}.",
    source="MIG-UG",
    cases=("BM-44",),
    wrong="""
        # A100 80 GB
        gpu_mig_layout: x
        gpu_mig_layouts: {x: [{devices: all, mig-enabled: true, mig-devices: {7g.80gb: 2}}]}
    """,
    right="""
        # A100 80 GB
        gpu_mig_layout: x
        gpu_mig_layouts: {x: [{devices: all, mig-enabled: true, mig-devices: {7g.80gb: 1}}]}
    """,
)

GF754 = rule(
    "GF754", Severity.ERROR,
    title="No MIG on this GPU or driver: {gpu}: {reason}",
    reason="The layout cannot be applied.",
    remedy="Remove gpu_mig_layout or raise the driver.",
    source="MIG-UG",
    wrong="""
        # T4
        gpu_mig_layout: all-1g.10gb
    """,
    right="""
        # T4
        gpu_mig_layout: ""
    """,
)

GF755 = rule(
    "GF755", Severity.ERROR,
    title="Unknown MIG layout: {layout}; known: {known}",
    reason="Nothing says what the layout is.",
    remedy="Define it in gpu_mig_layouts.",
    source="MIGP",
    cases=("BM-44",),
    wrong="""
        # A100 80 GB
        gpu_mig_layout: all-1g.10g
    """,
    right="""
        # A100 80 GB
        gpu_mig_layout: all-1g.10gb
    """,
)

GF777 = rule(
    "GF777", Severity.ERROR,
    title="MIG layout not as wanted: wanted {wanted}, found {found}",
    reason="Instances do not survive a reboot by themselves.",
    remedy="Run playbooks/site.yml on the drained host.",
    source="NVIDIA/k8s-device-plugin#225",
    cases=("BM-41",),
    wrong="""
        # no GPU is in MIG mode
        gpu_mig_layout: all-1g.10gb
    """,
    right="""
        # seven 1g.10gb on every GPU
        gpu_mig_layout: all-1g.10gb
    """,
)

GF788 = rule(
    "GF788", Severity.ERROR,
    title="MIG unit without start limit: {unit}: {limit}",
    reason="A hanging GPU would hang the boot.",
    remedy="Run playbooks/site.yml: the role ships a limit.",
    source="NVIDIA/mig-parted#68",
    cases=("BM-43",),
    wrong="nvidia-mig-manager.service: TimeoutStartSec=infinity",
    right="nvidia-mig-manager.service: TimeoutStartSec=600",
)
