"""Rules about the driver that is wanted: branch, version, flavour, known faults."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF704 = rule(
    "GF704", Severity.ERROR,
    title="GPU no longer supported by the branch: {gpu} ({architecture}) on branch {branch}; the last one is {last}",
    reason="Newer drivers refuse the GPU.",
    remedy="Set gpu_driver_branch to {last} or older.",
    source="DIG; NixOS/nixos-hardware#1880",
    cases=("NV-32",),
    wrong="""
        # Tesla V100
        gpu_driver_branch: "595"
    """,
    right="""
        # Tesla V100
        gpu_driver_branch: "580"
    """,
)

GF706 = rule(
    "GF706", Severity.ERROR,
    title="Driver older than the GPU: {gpu} needs {minimum}, wanted is {version}",
    reason="The driver does not know the GPU.",
    remedy="Set gpu_driver_version to {minimum} or newer.",
    source="MIG-UG; GPUO",
    wrong="""
        # B200
        gpu_driver_version: 570.124.06
    """,
    right="""
        # B200
        gpu_driver_version: 570.133.20
    """,
)

GF707 = rule(
    "GF707", Severity.ERROR,
    title="Malformed variable: {variable}: {given} is not {form}",
    reason="A branch and a version are different things; a version in the place of a stream or suffix names nothing.",
    remedy="Correct {variable}.",
    source="NVIDIA/ansible-role-nvidia-driver#75",
    cases=("BM-09",),
    wrong="gpu_driver_branch: 535.104.05",
    right="gpu_driver_branch: \"535\"",
)

GF708 = rule(
    "GF708", Severity.ERROR,
    title="Branch and version contradict each other: gpu_driver_branch {branch}, gpu_driver_version {version}",
    reason="The version belongs to another branch.",
    remedy="Set one of them only, or make them agree.",
    source="NVIDIA/ansible-role-nvidia-driver#75",
    cases=("BM-09",),
    wrong="""
        gpu_driver_branch: "580"
        gpu_driver_version: 595.91.07
    """,
    right="""
        gpu_driver_branch: "580"
        gpu_driver_version: 580.126.09
    """,
)

GF709 = rule(
    "GF709", Severity.ERROR,
    title="Unknown driver branch: {branch}; known: {known}",
    reason="The branch is not in driver_branches.yaml.",
    remedy="Use a known branch or add a row.",
    source="NVIDIA/ansible-role-nvidia-driver#81",
    cases=("BM-11",),
    wrong="gpu_driver_branch: \"577\"",
    right="gpu_driver_branch: \"580\"",
)

GF710 = rule(
    "GF710", Severity.WARNING,
    title="Driver branch past its end of life: branch {branch}, support ended {eol}",
    reason="No more fixes; packages vanish from the archives.",
    remedy="Plan the move to a supported branch with playbooks/upgrade.yml.",
    source="DC-DOCS",
    cases=("BM-11",),
    wrong="gpu_driver_branch: \"535\"",
    right="gpu_driver_branch: \"580\"",
)

GF711 = rule(
    "GF711", Severity.ERROR,
    title="No exact version known: branch {branch}",
    reason="An exact set needs an exact version.",
    remedy="Set gpu_driver_version.",
    source="NVIDIA/ansible-role-nvidia-driver#81",
    cases=("BM-11",),
    wrong="gpu_driver_branch: \"515\"",
    right="""
        gpu_driver_branch: "515"
        gpu_driver_version: 515.105.01
    """,
)

GF712 = rule(
    "GF712", Severity.ERROR,
    title="Kernel modules that the GPU refuses: {flavour} modules with {gpus}",
    reason="Open modules need Turing or newer, proprietary ones do not know Grace Hopper and Blackwell.",
    remedy="Set gpu_driver_flavour to auto.",
    source="DIG; zzzhouuu/truenas-nvidia-drivers#20",
    cases=("NV-32",),
    wrong="""
        # B200
        gpu_driver_flavour: proprietary
    """,
    right="""
        # B200
        gpu_driver_flavour: auto
    """,
)

GF713 = rule(
    "GF713", Severity.ERROR,
    title="No flavour fits all GPUs: open only: {open}; proprietary only: {proprietary}",
    reason="One host loads one kernel module.",
    remedy="Separate the GPUs into different hosts.",
    source="DIG",
    cases=("NV-32",),
    wrong="a V100 and a B200 in one host",
    right="a V100 in one host, a B200 in another",
)

GF714 = rule(
    "GF714", Severity.ERROR,
    title="Branch does not have the flavour: {flavour} modules on branch {branch}: {offered}",
    reason="The package does not exist.",
    remedy="Choose another gpu_driver_flavour or gpu_driver_branch.",
    source="DIG",
    cases=("BM-15",),
    wrong="""
        gpu_driver_version: 620.30.01
        gpu_driver_flavour: proprietary
    """,
    right="""
        gpu_driver_version: 620.30.01
        gpu_driver_flavour: open
    """,
)

GF715 = rule(
    "GF715", Severity.ERROR,
    title="Driver too old for the CUDA target: CUDA {cuda} needs driver {minimum}, wanted is {version}",
    reason="The containers of the CUDA target need a newer driver and do not start.",
    because="Containers stop with 'unsatisfied condition: cuda>={cuda}'.",
    remedy="Raise the driver or lower gpu_preflight_cuda_target.",
    source="COMPAT; NVIDIA/nvidia-container-toolkit#152",
    cases=("BM-37",),
    wrong="""
        gpu_driver_version: 535.183.01
        gpu_preflight_cuda_target: "13.0"
    """,
    right="""
        gpu_driver_version: 580.126.09
        gpu_preflight_cuda_target: "13.0"
    """,
)

GF716 = rule(
    "GF716", Severity.ERROR,
    title="Version known to fail: {component} {version}: {reason} ({when})",
    reason="known_bad.yaml lists the version, with the fault and its thread.",
    because="{source}; known_bad.yaml, row {id}.",
    remedy="Choose another version.",
    do="{remedy}",
    source="NVIDIA/open-gpu-kernel-modules#587; NVIDIA/enroot#232",
    cases=("BM-15", "BM-36", "BM-45"),
    wrong="""
        # eight H100 SXM
        gpu_driver_version: 535.183.01
        gpu_driver_flavour: open
    """,
    right="""
        # eight H100 SXM
        gpu_driver_version: 535.183.01
        gpu_driver_flavour: proprietary
    """,
)

GF717 = rule(
    "GF717", Severity.WARNING,
    title="Version with a known fault: {component} {version}: {reason} ({when})",
    reason="known_bad.yaml lists the version, with the fault and its thread.",
    because="{source}; known_bad.yaml, row {id}.",
    remedy="Choose another version, or accept this code with a reason.",
    do="{remedy} Or accept this code with a reason.",
    source="NVIDIA/gpu-operator#1361",
    cases=("BM-45",),
    wrong="""
        # A100
        gpu_driver_version: 570.148.08
        gpu_mig_layout: all-1g.10gb
    """,
    right="""
        # A100
        gpu_driver_version: 580.65.06
        gpu_mig_layout: all-1g.10gb
    """,
)

GF728 = rule(
    "GF728", Severity.NOTE,
    title="HMM together with KASLR: driver {version}, neither nokaslr nor uvm_disable_hmm=1",
    reason="On some kernels CUDA cannot initialise.",
    remedy="If it happens, set gpu_driver_module_options: {{nvidia_uvm: uvm_disable_hmm=1}}.",
    source="NVIDIA/gpu-operator#1546",
    cases=("NV-33",),
    wrong="""
        # the kernel command line has no nokaslr
        gpu_driver_module_options: {}
    """,
    right="""
        # the kernel command line has no nokaslr
        gpu_driver_module_options: {nvidia_uvm: uvm_disable_hmm=1}
    """,
)

GF756 = rule(
    "GF756", Severity.ERROR,
    title="Driver would change on a host in use: installed {installed}, wanted {wanted}",
    reason="site.yml does not upgrade a driver under a cluster node or a running workload.",
    remedy="Run playbooks/upgrade.yml.",
    source="NVIDIA/deepops#1308",
    cases=("BM-13",),
    wrong="""
        # a node of a cluster, with driver 570.158.01
        gpu_driver_version: 580.126.09
    """,
    right="""
        # a node of a cluster, with driver 570.158.01
        gpu_driver_version: 570.158.01
    """,
)

GF758 = rule(
    "GF758", Severity.ERROR,
    title="Runfile without checksum: {url}",
    reason="An installer that runs as root must be the one that was reviewed.",
    remedy="Set gpu_driver_runfile_sha256.",
    source="DIG",
    wrong="gpu_driver_method: runfile",
    right="""
        gpu_driver_method: runfile
        gpu_driver_runfile_sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    """,
)
