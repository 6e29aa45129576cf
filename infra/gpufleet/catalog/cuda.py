"""CUDA of an image against the driver of a node. Needs nothing but the catalogue.

Rules: NVIDIA's CUDA compatibility guide and release notes; the tables are catalog/tables/cuda.yaml. A driver runs every
CUDA version up to its own. Within one major version it also runs newer ones, from a floor on, with some things missing
(minor-version mode). Below the floor only cuda-compat helps (forward compatibility), on data-centre GPUs. Base images
of CUDA refuse drivers that they do not list; the message is that of the container toolkit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from gpufleet.catalog import (
    GpuModel,
    architecture,
    cuda_compat_unknown,
    cuda_full_driver,
    cuda_image_branches,
    cuda_min_driver,
    driver_branch,
    driver_branches,
    driver_version,
    gpu_models,
)

_BASE_IMAGE = re.compile(r"(?:^|/)cuda:(\d{1,2})\.(\d+)")
_IMAGE = (
    _BASE_IMAGE,
    re.compile(r"cuda[-_]?(\d{2})\.(\d+)"),
    re.compile(r"(?:^|[-_:.])cu(\d{2})(\d)(?=$|[-_.])"),
)
_CONDITION = re.compile(r"(cuda|driver|brand|arch)\s*(>=|<=|!=|=|<|>)\s*(\S+)")


@dataclass(frozen=True)
class Required:
    """The CUDA version that an image needs, and what says so.

    `condition` is the text of NVIDIA_REQUIRE_CUDA where it is given; `branches` are the older driver branches that a
    base image of CUDA lets pass (None: not such an image, or its condition is not known).
    """

    major: int
    minor: int
    said_by: str
    condition: str | None = None
    branches: tuple[int, ...] | None = None

    @property
    def version(self) -> str:
        """`12.4`."""
        return f"{self.major}.{self.minor}"


class Fit(IntEnum):
    """How an image gets along with a driver, best first."""

    FULL = 0  #: nothing is missing
    MINOR = 1  #: minor-version mode
    FORWARD = 2  #: only through cuda-compat
    REFUSED = 3  #: the container does not start, or CUDA does not
    NO_CODE = 4  #: this CUDA version compiles nothing for the GPU


def required_cuda(image: str, env: dict[str, str]) -> Required | None:
    """The CUDA version of an image, from NVIDIA_REQUIRE_CUDA or from its tag; None where neither says it."""
    if env.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true"):
        return None
    text = env.get("NVIDIA_REQUIRE_CUDA", "")
    match = re.search(r"cuda\s*>=\s*(\d+)\.(\d+)", text)
    if match:
        return Required(int(match[1]), int(match[2]), "NVIDIA_REQUIRE_CUDA", text)
    for pattern in _IMAGE:
        match = pattern.search(image)
        if match:
            listed = cuda_image_branches().get(f"{match[1]}.{match[2]}") if pattern is _BASE_IMAGE else None
            return Required(int(match[1]), int(match[2]), "image", branches=listed)
    return None


def full_driver(major: int, minor: int) -> str | None:
    """The driver released with a CUDA version, or None where the table has none."""
    return cuda_full_driver().get(f"{major}.{minor}")


def driver_cuda(driver: str) -> tuple[int, int] | None:
    """The highest CUDA version that a driver supports in full, or None where it is older than the table."""
    have = driver_version(driver)
    versions = [
        (int(major), int(minor))
        for name, needs in cuda_full_driver().items()
        if " " not in name and driver_version(needs) <= have
        for major, minor in [name.split(".")]
    ]
    return max(versions, default=None)


def newest_cuda_major(compute_capability: str | None) -> int | None:
    """The last CUDA major version that compiles for GPUs of a compute capability ("7.0"); None: no end known."""
    of_it = {m.architecture for m in gpu_models().values() if m.compute_capability == compute_capability}
    ends = {row.newest_cuda_major for name in of_it if (row := architecture(name)) is not None}
    return ends.pop() if compute_capability is not None and len(ends) == 1 else None


def satisfied(condition: str, driver: str) -> bool:
    """Whether NVIDIA_REQUIRE_CUDA holds on a driver: blanks mean or, commas mean and; brand and architecture pass."""
    alternatives = [a for a in condition.split() if a]
    return not alternatives or any(all(_holds(part, driver) for part in a.split(",")) for a in alternatives)


def _holds(part: str, driver: str) -> bool:
    match = _CONDITION.fullmatch(part.strip())
    if match is None or match[1] in ("brand", "arch"):
        return True
    try:
        if match[1] == "cuda":
            have: tuple[int, ...] = driver_cuda(driver) or (0, 0)
        else:
            have = driver_version(driver).fields
        want = tuple(int(x) for x in match[3].split("."))
    except ValueError:
        return True
    have = have[: len(want)] + (0,) * (len(want) - len(have))
    order = (have > want) - (have < want)
    return {">=": order >= 0, "<=": order <= 0, "!=": order != 0, "=": order == 0, "<": order < 0, ">": order > 0}[
        match[2]
    ]


def forward_compatible(gpu: GpuModel | None) -> bool | None:
    """Whether cuda-compat works on a GPU; None where no source says it or the model is not known."""
    return None if gpu is None or gpu.id in cuda_compat_unknown() else True


def fit(needs: Required, driver: str, newest_major: int | None = None, *, compat: bool = False) -> Fit:
    """How an image gets along with one driver version.

    Args:
        needs: what the image requires.
        driver: exact version of the driver.
        newest_major: last CUDA major version that compiles for the GPU (`newest_cuda_major`).
        compat: the image is known to carry cuda-compat. Base images of CUDA do, for the branches that they list.

    Raises:
        ValueError: `driver` is not a version.
    """
    if newest_major is not None and needs.major > newest_major:
        return Fit.NO_CODE
    have = driver_version(driver)
    if needs.condition is not None and not satisfied(needs.condition, driver):
        return Fit.REFUSED
    floor, full = cuda_min_driver().get(needs.major), full_driver(needs.major, needs.minor)
    if floor is None:  # a major version outside of the table: drivers run older ones, and none of today a newer one
        newer = needs.major > max(cuda_min_driver()) and have.branch <= max(driver_branches())
        return Fit.REFUSED if newer else Fit.FULL
    if have >= driver_version(floor) and (full is None or have >= driver_version(full)):
        return Fit.FULL
    if compat or (needs.branches is not None and have < driver_version(floor) and have.branch in needs.branches):
        return Fit.FORWARD
    if have < driver_version(floor) or (needs.branches is not None and have.branch not in needs.branches):
        return Fit.REFUSED
    return Fit.MINOR


@dataclass(frozen=True)
class KnownDriver:
    """What is known of the driver on some nodes: versions `low` to `high`, both included.

    They differ where only the branch is known; CUDA is the same in all of it, so `low` stands for all.
    `certain` is False where a node image brings it and the next image may bring another; `words` says all this.
    """

    low: str
    high: str
    certain: bool
    words: str

    @classmethod
    def exact(cls, version: str) -> KnownDriver:
        """One version, without any doubt."""
        return cls(version, version, True, f"driver {version}")


def branch_bounds(branch: str) -> KnownDriver:
    """A branch without a version: from its first release that a CUDA table names to the newest that a source names."""
    row = driver_branch(branch)
    tables = (*cuda_full_driver().values(), *cuda_min_driver().values())
    named = [v for v in tables if driver_version(v).branch == int(branch)]
    newest = row.newest_seen if row is not None else None
    low = min(named, key=driver_version, default=newest or branch)
    return KnownDriver(low, newest or low, True, f"a driver of branch {branch}")
