"""Rules about the CUDA of the teams' images and the drivers of their pools."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF350 = rule(
    "GF350", Severity.ERROR,
    title="unsatisfied condition: cuda>={version}",
    reason="The driver is older than the CUDA of the image. The container does not start, or CUDA fails in it.",
    because="{value} on pool {pool}: {driver} {supports}. The container does not start, or CUDA fails in it "
    "(NVIDIA's CUDA compatibility guide).",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; CUDA-IMG; cuda",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driverBranch: "535"}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=('driverBranch: "535"', 'driverBranch: "580"'),
)

GF351 = rule(
    "GF351", Severity.WARNING,
    title="unsatisfied condition: cuda>={version}",
    reason="The driver of the AKS node image is older than the CUDA of the image. A newer node image may carry "
    "another driver, so this is a warning.",
    because="{value} on pool {pool}: {driver} {supports}. A newer node image may carry another.",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; AB-IMG; aks",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:pools: [{name: t4, vmSize: Standard_NV6ads_A10_v5}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=('"app:1-cu130"', '"app:1-cu128"'),
)

GF352 = rule(
    "GF352", Severity.WARNING,
    title="{value} runs on pool {pool} in minor-version mode only.",
    reason="The driver is of the same CUDA major version, but older than the image's. Most programs run; PTX of the "
    "newer version cannot be compiled, and newer driver calls are missing.",
    because="{driver} {supports}. CUDA {version} came with driver {full}; below it, PTX of this version cannot be "
    "compiled and newer driver calls are missing.",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; CUDA-RN",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverVersion: 535.183.01}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cuda12.8"]}]
    """,
    fix=('"app:1-cuda12.8"', '"app:1-cuda12.2"'),
)

GF353 = rule(
    "GF353", Severity.WARNING,
    title="{value} runs on pool {pool} through cuda-compat only.",
    reason="The driver is of an older CUDA major version. The package cuda-compat helps on data-centre GPUs only; "
    "elsewhere the container does not start, or CUDA ends with error 804.",
    because="{driver} {supports}. Forward compatibility works on data-centre GPUs; {known}. Elsewhere the container "
    "ends with `unsatisfied condition: cuda>={version}`, or CUDA with error 804.",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; CUDA-IMG",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverBranch: "570"}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["nvidia/cuda:13.0.2-base"]}]
    """,
    right="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverBranch: "570"}]
        gpufleet:teams:
          - {name: x, namespace: x, pools: [t4], images: ["nvidia/cuda:13.0.2-base"], cudaCompat: true}
    """,
)

GF354 = rule(
    "GF354", Severity.ERROR,
    title="CUDA {version} has no code for {gpu}.",
    reason="New CUDA versions no longer compile for old GPU architectures. Kernels fail with `no kernel image is "
    "available`, whatever the driver.",
    because="{value} on pool {pool}: CUDA {newest} is the last that compiles for the {architecture} architecture, "
    "whatever the driver; kernels fail with `no kernel image is available`.",
    remedy="Use an image built for CUDA {newest}, or a pool with newer GPUs.",
    source="CUDA-RN; architectures",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:pools: [{name: t4, driverBranch: "580", gpu: V100-SXM2-32GB}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=('"app:1-cu130"', '"app:1-cu128"'),
)

GF355 = rule(
    "GF355", Severity.NOTE,
    title="{value} does not say its CUDA version.",
    reason="Nothing compares the image with the drivers of the team's pools.",
    remedy="Use a tag that says it, such as `-cuda12.8`, or compare it yourself (docs/cuda.md).",
    source="CUDA-IMG",
    wrong='gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1"]}]',
    right='gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]',
)

GF356 = rule(
    "GF356", Severity.NOTE,
    title="Nothing is known of the driver on pool {pool}.",
    reason="The pool states no driver, so the CUDA version of the image is not compared with it.",
    because="So {value} (CUDA {version}) is not compared with it.",
    remedy="State `driverBranch` or `driverVersion` where the owner is `host` or `operator`.",
    source="COMPAT",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=(
        "gpufleet:cluster: {kind: existing}",
        'gpufleet:cluster: {kind: existing}\ngpufleet:pools: [{name: t4, driverBranch: "580"}]',
    ),
)
