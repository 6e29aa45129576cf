"""Rules about the host itself and the controller: operating system, GPUs, Python, locks, space."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF701 = rule(
    "GF701", Severity.ERROR,
    title="Operating system refused: {platform}: {reason}",
    reason="The tools cannot manage it reliably.",
    remedy="Use a newer release, or leave the driver to the GPU Operator.",
    source="ansible/ansible#82068",
    cases=("BM-46",),
    wrong="Rocky Linux 8.10",
    right="Rocky Linux 9.4",
)

GF702 = rule(
    "GF702", Severity.WARNING,
    title="Operating system not in the vendor's table: {platform}: {note}",
    reason="The vendor neither builds nor tests packages for it.",
    remedy="Routes that remain: {routes}.",
    source="NVIDIA/nvidia-container-runtime#193",
    cases=("BM-06",),
    wrong="openEuler 22.03",
    right="Ubuntu 24.04",
)

GF703 = rule(
    "GF703", Severity.ERROR,
    title="No such route to a driver here: gpu_driver_method is {method}, {platform} has {routes}: {note}",
    reason="Repository directories come from a table; none is built from a version number.",
    remedy="Set gpu_driver_method to one of: {routes}. An own repository may be given in gpu_driver_repo_url.",
    source="NVIDIA/nvidia-container-runtime#193",
    cases=("BM-06",),
    wrong="""
        # Debian 12
        gpu_driver_method: distro
    """,
    right="""
        # Debian 12
        gpu_driver_method: cuda_repo
    """,
)

GF705 = rule(
    "GF705", Severity.WARNING,
    title="GPU unknown to the catalogue: {slot}: device {device}",
    reason="Architecture, flavour and lowest driver cannot be checked.",
    remedy="State gpu_driver_branch and gpu_driver_flavour, and add the device to pci.yaml.",
    source="PCI-IDS",
    wrong="PCI device 10de:fffe",
    right="PCI device 10de:1eb8, a Tesla T4",
)

GF718 = rule(
    "GF718", Severity.ERROR,
    title="No NVIDIA GPU: no PCI device of vendor 10de and class display",
    reason="The host has none, or it is hidden by firmware or passthrough.",
    remedy="Take the host out of the GPU pool, or look at the firmware.",
    source="fgci-org/ansible-role-cuda#20",
    cases=("BM-29",),
    wrong="`lspci -d 10de:` prints nothing",
    right="`lspci -d 10de:` prints a 3D controller",
)

GF719 = rule(
    "GF719", Severity.ERROR,
    title="Not the declared GPUs: declared {wanted}, found {found}",
    reason="The plan of the cluster counts on them.",
    remedy="Correct the stack file or the host.",
    source="GPUO",
    wrong="""
        # one T4 in the host
        gpu_preflight_gpu_count: 8
    """,
    right="""
        # one T4 in the host
        gpu_preflight_gpu_count: 1
    """,
)

GF720 = rule(
    "GF720", Severity.ERROR,
    title="Python on the host too old: {python}; ansible-core {core} needs {minimum}",
    reason="Modules do not start, or only the simple ones do.",
    remedy="Set ansible_python_interpreter to a newer Python, or use an older controller.",
    source="terrateamio/action#631",
    cases=("BM-46",),
    wrong="ansible-core 2.19, Python 3.6.8 on the host",
    right="ansible-core 2.19, Python 3.12.3 on the host",
)

GF721 = rule(
    "GF721", Severity.ERROR,
    title="Ansible too old: ansible-core {core}; lowest is {minimum}",
    reason="Older apt modules lack options that the roles use.",
    remedy="Install ansible-core {minimum} or newer on the controller.",
    source="NVIDIA/cloud-native-stack#28",
    cases=("BM-46",),
    wrong="ansible-core 2.16.3",
    right="ansible-core 2.19.14",
)

GF739 = rule(
    "GF739", Severity.NOTE,
    title="Host is still busy: {what}",
    reason="First-boot jobs hold the package lock.",
    remedy="The roles wait up to gpu_lock_timeout seconds.",
    source="ansible/ansible#51663",
    cases=("BM-22",),
    wrong="process 812 holds the lock of dpkg",
    right="no process holds the lock of dpkg",
)

GF740 = rule(
    "GF740", Severity.NOTE,
    title="Interrupted package operation: {packages}",
    reason="A run was killed in the middle.",
    remedy="The roles finish it first.",
    source="ansible/ansible#51663",
    cases=("BM-22",),
    wrong="nvidia-dkms-580-open is unpacked and not configured",
    right="every package is configured",
)

GF743 = rule(
    "GF743", Severity.ERROR,
    title="Not enough free space: {folder}: {free} MiB free, {wanted} MiB wanted",
    reason="A package transaction that runs out of space leaves the host half installed.",
    remedy="Free space, or lower gpu_preflight_min_free_mib.",
    source="DIG",
    wrong="/usr: 100 MiB free",
    right="/usr: 50000 MiB free",
)

GF760 = rule(
    "GF760", Severity.ERROR,
    title="Wrong variable: {what}",
    reason="The roles take what their argument_specs say; a name that none of them knows would have no effect.",
    remedy="Correct it; roles/README.md lists every variable.",
    source="NVIDIA/ansible-role-nvidia-driver#75",
    cases=("BM-09",),
    wrong="gpu_driver_verison: 580.126.09",
    right="gpu_driver_version: 580.126.09",
)
