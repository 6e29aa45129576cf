"""CUDA of an image against the driver of a node.

Rules: NVIDIA's CUDA compatibility guide. Within one major version an image runs on every driver from the floor of that
major version on; below the driver released with its own minor version some things are missing. The message is the one
that users see from the container toolkit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from infra.catalog import cuda_full_driver, cuda_min_driver, driver_version, known_bad_drivers
from infra.config.diagnostics import Diagnostic, diagnostic
from infra.lint.config import Checked
from infra.lint.document import Document
from infra.lint.pods import Container, containers, program

_IMAGE = (
    re.compile(r"(?:^|/)nvidia/cuda:(\d+)\.(\d+)"),
    re.compile(r"cuda[-_]?(\d{2})\.(\d+)"),
    re.compile(r"(?:^|[-_:.])cu(\d{2})(\d)(?=$|[-_.])"),
)
_CONDITION = re.compile(r"(cuda|driver|brand|arch)\s*(>=|<=|!=|=|<|>)\s*(\S+)")


@dataclass(frozen=True)
class Required:
    """The CUDA version that an image needs, and the text that says so."""

    major: int
    minor: int
    said_by: str

    @property
    def version(self) -> str:
        """`12.4`."""
        return f"{self.major}.{self.minor}"


def required_cuda(image: str, env: dict[str, str]) -> Required | None:
    """The CUDA version of an image, from NVIDIA_REQUIRE_CUDA or from its tag; None where neither says it."""
    if env.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true"):
        return None
    text = env.get("NVIDIA_REQUIRE_CUDA", "")
    match = re.search(r"cuda\s*>=\s*(\d+)\.(\d+)", text)
    if match:
        return Required(int(match[1]), int(match[2]), "NVIDIA_REQUIRE_CUDA")
    for pattern in _IMAGE:
        match = pattern.search(image)
        if match:
            return Required(int(match[1]), int(match[2]), "image")
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


def check_driver(checked: Checked, driver: str | None) -> Iterator[Diagnostic]:
    """Drivers that are known to fail with MIG on a part of the GPUs (case NV-39)."""
    node = checked.node
    if driver is None or node is None or not 0 < len(node.mig) < node.gpus:
        return
    for row in known_bad_drivers():
        if row.applies.get("mig") == "partial" and row.concerns(driver):
            fixed = f" from {row.fixed_in} on" if row.fixed_in else ""
            made = diagnostic(
                "GF621",
                checked.config.where,
                value=driver,
                when=row.when,
                why=row.reason,
                source=row.source,
                fixed=fixed,
            )
            yield replace(made, file=checked.config.document.file, line=checked.config.line(1))


def check_cuda(document: Document, driver: str | None) -> Iterator[Diagnostic]:
    """Images of one object against the driver that its nodes have."""
    if driver is None:
        return
    for container in containers(document):
        if not program(container):
            yield from _container(document, container, driver)


def _container(document: Document, container: Container, driver: str) -> Iterator[Diagnostic]:
    env = container.env()
    needs = required_cuda(container.image, env)
    if needs is None:
        return
    path = (*container.path, "image")
    have = driver_version(driver)
    floor = cuda_min_driver().get(needs.major)
    full = full_driver(needs.major, needs.minor)
    condition = env.get("NVIDIA_REQUIRE_CUDA")
    refused = condition is not None and not satisfied(condition, driver)
    if refused or floor is None or have < driver_version(floor):
        top = driver_cuda(driver)
        supports = f"supports CUDA {top[0]}.{top[1]}" if top else "is older than every CUDA version of the table"
        needed = full if condition is not None and full else floor
        why = f"Driver {driver} {supports}; the container does not start."
        what = f"a driver from {needed} on, " if needed else ""
        remedy = f"Use {what}or an image built for a CUDA version that driver {driver} supports."
        yield document.found("GF615", path, container.item, value=needs.version, why=why, remedy_text=remedy)
    elif full is not None and have < driver_version(full):
        yield document.found("GF616", path, container.item, value=needs.version, driver=driver, full=full)
