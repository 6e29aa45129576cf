"""Rules about NVSwitch and NVLink fabrics."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF737 = rule(
    "GF737", Severity.ERROR,
    title="Fabric package not at the driver's version: {missing}; driver {version}",
    reason="Fabric manager exits unless its version equals the driver's to the last field.",
    remedy="Choose a driver version for which the fabric packages exist: {available}.",
    source="NVIDIA/apt-packaging-fabric-manager#1; NVIDIA/gpu-operator#544",
    cases=("BM-26",),
    wrong="driver 535.183.01; the repository has nvidia-fabricmanager-535 at 535.216.03 only",
    right="driver 535.216.03; the repository has nvidia-fabricmanager-535 at 535.216.03",
)

GF763 = rule(
    "GF763", Severity.NOTE,
    title="IMEX is left alone: gpu_fabric_imex_nodes is empty",
    reason="Its service ends without the trays of its NVLink domain. With compute domains of the DRA driver it must "
    "not run on the host.",
    remedy="List the trays in gpu_fabric_imex_nodes where the host is to run it.",
    source="DEEPOPS; GDC",
    wrong="""
        # GB200
        gpu_fabric_imex_nodes: []
    """,
    right="""
        # GB200
        gpu_fabric_imex_nodes: [10.0.0.1, 10.0.0.2]
    """,
)

GF772 = rule(
    "GF772", Severity.ERROR,
    title="Version-bound packages differ from the driver: {packages}; driver {version}",
    reason="Fabric manager exits and CUDA returns error 802.",
    remedy="Run playbooks/upgrade.yml.",
    source="NVIDIA/gpu-operator#544; dstackai/dstack#2348",
    cases=("BM-10", "BM-24"),
    wrong="driver 580.126.09, nvidia-fabricmanager 580.95.05",
    right="driver 580.126.09, nvidia-fabricmanager 580.126.09",
)

GF773 = rule(
    "GF773", Severity.ERROR,
    title="Fabric not ready: {gpus}",
    reason="CUDA returns error 802 (system not yet initialised).",
    remedy="Look at nvidia-fabricmanager.service and at the NVSwitches.",
    source="pytorch/pytorch#35710",
    cases=("BM-27",),
    wrong="nvidia-smi -q: Fabric, State: In Progress",
    right="nvidia-smi -q: Fabric, State: Completed, Status: Success",
)
