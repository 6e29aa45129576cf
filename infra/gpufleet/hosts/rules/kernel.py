"""Rules about the kernel: headers, compiler, secure boot, other drivers of the GPU, kernel log."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF722 = rule(
    "GF722", Severity.ERROR,
    title="Kernel headers missing: running kernel {kernel}: {packages} neither installed nor available",
    reason="DKMS would build for another kernel, and the module is missing after a clean install.",
    remedy="Reboot into the newest installed kernel, or add the repository that has the headers.",
    source="NVIDIA/ansible-role-nvidia-driver#18; NVIDIA/gpu-operator#526",
    cases=("BM-16", "NV-28"),
    wrong="kernel 6.8.0-45-generic runs; no repository has linux-headers-6.8.0-45-generic",
    right="kernel 6.8.0-45-generic runs; linux-headers-6.8.0-45-generic is installed",
)

GF723 = rule(
    "GF723", Severity.ERROR,
    title="Compiler does not fit the kernel: kernel built with gcc {kernel}, gcc here is {here}",
    reason="The module build stops on the mismatch.",
    remedy="Install gcc-{kernel} and make it the default.",
    source="GoogleCloudPlatform/compute-gpu-installation#15",
    cases=("BM-20",),
    wrong="the kernel was built with gcc 12; gcc is version 11",
    right="the kernel was built with gcc 12; gcc is version 12",
)

GF724 = rule(
    "GF724", Severity.ERROR,
    title="Secure boot without an enrolled key: secure boot is on, {detail}",
    reason="The kernel refuses a module that is not signed by an enrolled key.",
    remedy="Enrol the key of DKMS (mokutil --import, confirmed at the console at boot), use signed modules "
    "(gpu_driver_method distro on Ubuntu), or turn secure boot off.",
    source="NVIDIA/gpu-operator#497; NVIDIA/gpu-operator#1726",
    cases=("NV-29",),
    wrong="secure boot is on; the key in /var/lib/dkms/mok.pub is not enrolled",
    right="secure boot is on; the key in /var/lib/dkms/mok.pub is enrolled",
)

GF725 = rule(
    "GF725", Severity.WARNING,
    title="nouveau is loaded: module nouveau",
    reason="It holds the GPUs until the host has rebooted without it.",
    remedy="gpu_driver blacklists it and rebuilds the initramfs; a reboot is required.",
    source="NVIDIA/gpu-operator#541",
    cases=("NV-30", "BM-17"),
    wrong="nouveau is loaded",
    right="nouveau is not loaded",
)

GF726 = rule(
    "GF726", Severity.ERROR,
    title="GPU held by another driver: {slot} is bound to {driver}",
    reason="The NVIDIA module finds no free GPU.",
    remedy="Release the GPU from the driver, or take the host out of the pool. gpu_driver blacklists nova_core.",
    do="{remedy}",
    source="beclab/Olares#3963",
    cases=("BM-18",),
    wrong="GPU 0000:17:00.0 is bound to vfio-pci",
    right="GPU 0000:17:00.0 is bound to no driver",
)

GF727 = rule(
    "GF727", Severity.WARNING,
    title="Kernel log reports GPU trouble: {line}",
    reason="A GPU, its firmware or its driver has a problem; host_kernel.yaml says what each line means.",
    because="{hint}.",
    remedy="See the vendor's list of NVRM and Xid messages.",
    source="NVIDIA/open-gpu-kernel-modules#862",
    cases=("BM-23",),
    wrong="kernel log: pci 0000:17:00.0: BAR 1: can't assign",
    right="the kernel log has no such line",
)

GF780 = rule(
    "GF780", Severity.ERROR,
    title="No module for the running kernel: kernel {kernel}",
    reason="DKMS built for another kernel, or not at all.",
    remedy="Install the headers of the running kernel and run dkms autoinstall, or reboot.",
    source="NVIDIA/ansible-role-nvidia-driver#18",
    cases=("BM-16",),
    wrong="kernel 6.8.0-45-generic runs; it has no module nvidia",
    right="kernel 6.8.0-45-generic runs; it has a module nvidia",
)

GF781 = rule(
    "GF781", Severity.ERROR,
    title="nouveau after the blacklist: {what}",
    reason="It was loaded before the blacklist was written, or the initramfs lacks the blacklist.",
    remedy="Reboot. When it is loaded again, rebuild the initramfs (playbooks/site.yml does where it is too old) and "
    "reboot.",
    source="NVIDIA/ansible-role-nvidia-driver#44",
    cases=("BM-17",),
    wrong="the blacklist is written; nouveau is loaded",
    right="the blacklist is written; nouveau is not loaded",
)

GF782 = rule(
    "GF782", Severity.ERROR,
    title="A kernel arrived with the driver: before {before}, after {after}",
    reason="The driver was built for a kernel that will not be booted next.",
    remedy="Hold the kernel, or reboot into the new one on purpose.",
    source="microsoft/azurelinux#13433",
    cases=("BM-19",),
    wrong="linux-image-6.8.0-45-generic before, linux-image-6.8.0-48-generic as well after",
    right="the same kernel packages before and after",
)
