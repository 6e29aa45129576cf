"""Rules about the CUDA of images and the driver of the nodes."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF615 = rule(
    "GF615", Severity.ERROR,
    title="unsatisfied condition: cuda>={value}",
    reason="The driver is older than the CUDA of the image; the container does not start.",
    remedy="Use a newer driver, or an image built for a CUDA version that the driver supports.",
    do="{remedy_text}",
    source="COMPAT; CUDA-IMG",
    wrong="""
        # gpufleet lint FILE --driver 560.35.05
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: nvidia/cuda:13.0.1-base
    """,
    fix=("nvidia/cuda:13.0.1-base", "nvidia/cuda:12.6.3-base"),
)

GF616 = rule(
    "GF616", Severity.WARNING,
    title="CUDA {value} runs on {driver} in minor-version mode only.",
    reason="The driver is of the same CUDA major version, but older than the image's: PTX of this version cannot be "
    "compiled, and newer driver calls are missing.",
    because="Everything needs driver {full}; below it PTX of this version cannot be compiled and newer driver calls "
    "are missing.",
    remedy="Use an image built for the driver, or a newer driver.",
    source="COMPAT; CUDA-RN",
    wrong="""
        # gpufleet lint FILE --driver 535.183.01
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: nvidia/cuda:12.4.1-base
    """,
    fix=("nvidia/cuda:12.4.1-base", "nvidia/cuda:12.2.2-base"),
)

GF617 = rule(
    "GF617", Severity.WARNING,
    title="unsatisfied condition: cuda>={value}",
    reason="The driver of the AKS node image is older than the CUDA of the image; the container does not start. A "
    "newer node image may carry another driver.",
    because="{because} A newer node image may carry another driver.",
    remedy="Use a newer driver, or an image built for a CUDA version that the driver supports.",
    do="{remedy_text}",
    source="COMPAT; AB-IMG",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.a10.yaml
        # The pool of that stack has the size Standard_NV6ads_A10_v5, whose node image carries driver 570.
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1-cu130
    """,
    fix=("example/app:1-cu130", "example/app:1-cu128"),
)

GF621 = rule(
    "GF621", Severity.ERROR,
    title="Driver {value} is known to fail here: {when}.",
    reason="These drivers leave pods Pending, or fail in another way, where MIG has cut some GPUs of a node.",
    because="{because}. Source: {source}",
    remedy="Use another driver.",
    do="{remedy_text}",
    source="NVIDIA/gpu-operator#1361; known_bad",
    wrong="""
        # gpufleet lint FILE --gpus 2xA100-80GB --mig 0=1g.10gb --driver 570.148.08
        version: v1
        flags: {migStrategy: mixed}
    """,
    fix=("--driver 570.148.08", "--driver 580.65.06"),
)

GF622 = rule(
    "GF622", Severity.WARNING,
    title="CUDA {value} runs here through cuda-compat only.",
    reason="The driver is of an older CUDA major version. The package cuda-compat helps on data-centre GPUs only; "
    "elsewhere the container does not start, or CUDA ends with error 804.",
    because="{because} Forward compatibility works on data-centre GPUs; elsewhere the container ends with "
    "`unsatisfied condition: cuda>={value}`, or CUDA with error 804.",
    remedy="Use a driver from {full} on, or an image built for an older CUDA version, where the GPUs are not "
    "data-centre GPUs.",
    source="COMPAT; CUDA-IMG",
    wrong="""
        # gpufleet lint FILE --driver 570.124.06
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: nvidia/cuda:13.0.1-base
    """,
    fix=("nvidia/cuda:13.0.1-base", "nvidia/cuda:12.8.1-base"),
)

GF623 = rule(
    "GF623", Severity.ERROR,
    title="CUDA {value} has no code for these GPUs.",
    reason="New CUDA versions no longer compile for old GPU architectures; kernels fail with `no kernel image is "
    "available`, whatever the driver.",
    because="CUDA {newest} is the last that compiles for their architecture, whatever the driver; kernels fail with "
    "`no kernel image is available`.",
    remedy="Use an image built for CUDA {newest}.",
    source="CUDA-RN; architectures",
    wrong="""
        # gpufleet lint FILE --gpus 1xV100-32GB
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: nvidia/cuda:13.0.1-base
    """,
    fix=("nvidia/cuda:13.0.1-base", "nvidia/cuda:12.8.1-base"),
)
