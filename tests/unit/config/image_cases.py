"""Rules about the images that teams name: their CUDA versions against the drivers of pools."""

from __future__ import annotations

from typing import Any

from tests.unit.config.case import Case

V100 = "V100-SXM2-32GB"


def run(image: str, compat: bool = False, **pool: Any) -> dict[str, Any]:
    """A team that runs one image on the first pool, and settings of that pool."""
    team = {"name": "x", "namespace": "x", "pools": ["t4"], "images": [image], "cudaCompat": compat}
    return {"teams": [team], **{f"pools[0].{key}": value for key, value in pool.items()}}


IMAGE = "teams[0].images[0]"

IMAGES = [
    Case("GF106", IMAGE, "aks-plugin", run("a b:12"), run("a/b:1-cuda12.8"), value="a b:12", says="without blanks"),
    # ---- the operator's default driver, 595.91.07, and pinned ones
    Case(
        "GF350",
        IMAGE,
        value="app:1-cu130",
        says="driver 535.309.01 supports CUDA 12.2. The container does not start, or CUDA fails in it (NVIDIA's CUDA "
        'compatibility guide). Choose `driverBranch: "580"` on the pool; or an image built for CUDA 12.2 or older; or '
        "forward compatibility on this data-centre GPU, by the package cuda-compat-13-0 in the image, with"
        " `cudaCompat: true` on the team.",
        also=(("GF272", "pools[0].driverBranch"),),
    ),
    Case("GF350", IMAGE, "aks-operator", run("app:1-cu140"), run("app:1-cu132"), says="driver 595.91.07"),
    # A base image refuses branches that it does not list, though CUDA 12 would run there.
    Case(
        "GF350",
        IMAGE,
        "existing-plugin",
        run("nvidia/cuda:12.6.3-base", driverVersion="555.42.06"),
        run("nvidia/cuda:12.6.3-base", driverVersion="560.35.05"),
        says="NVIDIA_DISABLE_REQUIRE=1",
    ),
    # A branch as a whole is too old.
    Case(
        "GF350",
        IMAGE,
        "existing-plugin",
        run("app:1-cu130", driverBranch="570"),
        run("app:1-cu130", driverBranch="580"),
        says="a driver of branch 570 supports CUDA 12.8",
        also=(("GF272", "pools[0].driverBranch"),),
    ),
    # ---- AKS: the node image decides, so it is a warning
    Case(
        "GF351",
        IMAGE,
        value="app:1-cu130",
        says="driver 570.211.01 (AKS node images of 2026-08) supports CUDA 12.8. A newer node image may carry another.",
    ),
    # ---- minor-version mode
    Case(
        "GF352",
        IMAGE,
        value="app:1-cuda12.8",
        says="CUDA 12.8 came with driver 570.26",
        also=(("GF272", "pools[0].driverVersion"),),
        right_also=(("GF272", "pools[0].driverVersion"),),
    ),
    Case("GF352", IMAGE, "aks-plugin", run("app:1-cu131"), run("app:1-cu130"), says="driver 580.126.09 (AKS node im"),
    Case(
        "GF352",
        IMAGE,
        "existing-plugin",
        run("app:1-cuda12.8", driverBranch="535"),
        run("app:1-cuda12.8", driverBranch="535", compat=True),
        also=(("GF272", "pools[0].driverBranch"),),
        right_also=(("GF272", "pools[0].driverBranch"),),
    ),
    # ---- forward compatibility
    Case(
        "GF353",
        IMAGE,
        value="nvidia/cuda:13.0.2-base",
        says="T4 is one. Elsewhere the container ends with `unsatisfied condition: cuda>=13.0`, or CUDA with error 804",
        also=(("GF272", "pools[0].driverBranch"),),
        right_also=(("GF272", "pools[0].driverBranch"),),
    ),
    Case(
        "GF353",
        IMAGE,
        "existing-plugin",
        run("app:1-cu130", driverBranch="575", compat=True, gpu="RTX-PRO-6000-Blackwell-Server-Edition"),
        run("app:1-cu129", driverBranch="575", compat=True, gpu="RTX-PRO-6000-Blackwell-Server-Edition"),
        says="no source says it of RTX-PRO-6000-Blackwell-Server-Edition",
    ),
    # ---- GPUs that CUDA 13 has left behind
    Case(
        "GF354",
        IMAGE,
        value="app:1-cu130",
        says="CUDA 13.0 has no code for V100-SXM2-32GB.",
    ),
    Case(
        "GF354",
        IMAGE,
        "existing-plugin",
        run("app:1-cu130", compat=True, driverBranch="580", gpu="P40"),
        run("app:1-cu130", compat=True, driverBranch="580", gpu="T4"),
        says="the last that compiles for the pascal architecture",
    ),
    # ---- what is not known is said
    Case("GF355", IMAGE, value="app:1"),
    Case("GF356", IMAGE, says="pool t4"),
]
