"""Rules about sizes, GPUs, and the drivers that drive them."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF211 = rule(
    "GF211", Severity.ERROR,
    title="Driver {value} does not drive {gpu}.",
    reason="NVIDIA drops old GPU architectures from new driver branches; a newer driver does not see the GPU.",
    because="Branch {newest} is the last for the {architecture} architecture.",
    remedy="Set `driverBranch: \"{newest}\"` on this pool (driver owner operator or host).",
    source="architectures; driver_branches",
    needs=("value", "owner"),
    wrong='gpufleet:pools: [{name: t4, gpu: V100-SXM2-16GB, driverBranch: "590"}]',
    right='gpufleet:pools: [{name: t4, gpu: V100-SXM2-16GB, driverBranch: "580"}]',
)

GF212 = rule(
    "GF212", Severity.ERROR,
    title="Driver {value} is too old for {gpu}.",
    reason="A driver does not know GPUs that came after its branch, nor MIG on them.",
    because="{gpu} needs {oldest} or newer.",
    remedy="Choose a newer driver.",
    source="gpus; mig; MIG-UG; OGKM",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, gpu: H200, driverVersion: 550.54.15}]",
    right="gpufleet:pools: [{name: t4, gpu: H200, driverVersion: 550.90.07}]",
)

GF230 = rule(
    "GF230", Severity.ERROR,
    title="{value} is not in the table of Azure GPU sizes.",
    reason="GPU count, memory and driver family of a size come from the catalogue; without them nothing could be "
    "predicted.",
    remedy="Use a listed size in its exact spelling, or add a row with its source to the catalogue.",
    source="azure_sizes; VM-DOC",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NC4as_T4_v4}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF231 = rule(
    "GF231", Severity.ERROR,
    title="{value} is not in the table of GPU models.",
    reason="Memory, architecture and driver range of a model come from the catalogue.",
    remedy="Use a listed model, or add a row with its source to the catalogue.",
    source="gpus",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, gpu: T5, driver: operator}]
    """,
    fix=("gpu: T5", "gpu: tesla-t4"),
)

GF232 = rule(
    "GF232", Severity.ERROR,
    title="{value} cannot be used.",
    reason="Azure does not offer the size any more, it carries no NVIDIA GPUs, or its GPUs would stay idle in the "
    "system pool.",
    remedy="Choose another size.",
    source="azure_sizes; AKS-DOC (use-nvidia-gpu); AKS-REL",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_ND96isr_MI300X_v5}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF233 = rule(
    "GF233", Severity.WARNING,
    title="{value} is being retired.",
    reason="Azure takes the series out of service.",
    remedy="Plan the move to another size.",
    source="azure_sizes; AKS-REL",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NC6s_v3}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF234 = rule(
    "GF234", Severity.WARNING,
    title="{value} is not verified: {unknown} is not confirmed by a specification page.",
    reason="Azure's specification pages do not confirm every figure of this row, so the prediction may be wrong.",
    because="The row comes from: {source}.",
    remedy="Check the size before relying on the prediction.",
    source="azure_sizes",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NC8ads_A10_v4}]",
    right="gpufleet:pools: [{name: t4, vmSize: Standard_NV6ads_A10_v5}]",
)
