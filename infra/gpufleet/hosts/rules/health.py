"""Rules about a converged host: driver, services, GPUs, drift."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF770 = rule(
    "GF770", Severity.ERROR,
    title="Driver not as wanted: {what}",
    reason="The host does not offer its GPUs as planned.",
    remedy="Run playbooks/site.yml; look at the kernel log when it stays.",
    source="NVIDIA/deepops#1308",
    cases=("BM-10",),
    wrong="driver 580.95.05 is loaded, 580.126.09 is wanted",
    right="driver 580.126.09 is loaded, 580.126.09 is wanted",
)

GF771 = rule(
    "GF771", Severity.ERROR,
    title="Loaded module and libraries differ: module {module}, packages {package}",
    reason="NVML answers 'Driver/library version mismatch'.",
    remedy="Drain the host and run playbooks/upgrade.yml, or reboot.",
    source="pando85/homelab#4110",
    cases=("BM-21",),
    wrong="module 580.95.05 is loaded; the libraries are 580.126.09",
    right="module 580.126.09 is loaded; the libraries are 580.126.09",
)

GF774 = rule(
    "GF774", Severity.ERROR,
    title="Service not as wanted: {unit}: {state}",
    reason="It is masked, failed or not enabled.",
    remedy="Run playbooks/site.yml; see journalctl -u {unit}.",
    source="NVIDIA/gpu-operator#356",
    cases=("BM-25",),
    wrong="nvidia-persistenced.service: failed, enabled",
    right="nvidia-persistenced.service: active, enabled",
)

GF775 = rule(
    "GF775", Severity.ERROR,
    title="Device files missing: {files}",
    reason="The node would be Ready while CUDA cannot start.",
    remedy="Load nvidia-uvm; see nvidia-modprobe.",
    source="NVIDIA/gpu-operator#2685",
    cases=("BM-39",),
    wrong="/dev/nvidia-uvm is not there",
    right="/dev/nvidia-uvm is there",
)

GF776 = rule(
    "GF776", Severity.ERROR,
    title="GPU reports hardware errors: {gpu}: {what}",
    reason="The GPU must not take work.",
    remedy="Drain the host and run diagnostics.",
    source="NVIDIA/open-gpu-kernel-modules#862",
    cases=("BM-23",),
    wrong="nvidia-smi -q: Remapping Failure Occurred: Yes",
    right="nvidia-smi -q: Remapping Failure Occurred: No",
)

GF778 = rule(
    "GF778", Severity.NOTE,
    title="Reboot required: {reasons}",
    reason="A change takes effect only then.",
    remedy="Set gpu_reboot_policy, or reboot in a maintenance window.",
    source="DIG",
    cases=("BM-47",),
    wrong="driver 580.95.05 is loaded and cannot be unloaded, 580.126.09 is wanted",
    right="driver 580.126.09 is loaded, 580.126.09 is wanted",
)

GF779 = rule(
    "GF779", Severity.ERROR,
    title="Drift: {role}: {what}",
    reason="The host is not as the variables say.",
    remedy="Run playbooks/site.yml.",
    source="NVIDIA/ansible-role-nvidia-driver#95",
    cases=("BM-49",),
    wrong="/etc/modprobe.d/ has lost the role's blacklist",
    right="/etc/modprobe.d/ holds the role's blacklist",
)

GF785 = rule(
    "GF785", Severity.ERROR,
    title="CUDA smoke test failed: {what}",
    reason="The driver loads but does not compute.",
    remedy="See the kernel log; error 802 points to the fabric.",
    source="NVIDIA/nvidia-container-toolkit#152",
    wrong="cuInit returns 802",
    right="cuInit returns 0",
)

GF786 = rule(
    "GF786", Severity.ERROR,
    title="nvidia-smi does not answer: exit status {status}",
    reason="The driver is loaded but not usable.",
    remedy="See the kernel log; reboot when it hangs.",
    source="GPUO",
    wrong="nvidia-smi ends with status 9",
    right="nvidia-smi ends with status 0",
)

GF787 = rule(
    "GF787", Severity.ERROR,
    title="GPUs missing from the driver: {found} of {wanted}",
    reason="A GPU did not initialise.",
    remedy="See the kernel log for its PCI address.",
    source="NVIDIA/open-gpu-kernel-modules#862",
    cases=("BM-23",),
    wrong="eight GPUs on the PCI bus, seven in nvidia-smi",
    right="eight GPUs on the PCI bus, eight in nvidia-smi",
)
