"""CUDA of images against the driver and GPUs of a node; the rules are those of infra/gpufleet/teams/cuda.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpufleet.catalog import Place, cuda_min_driver, driver_version, gpu_model, known_to_fail
from gpufleet.catalog.cuda import (
    Fit,
    KnownDriver,
    driver_cuda,
    fit,
    forward_compatible,
    full_driver,
    newest_cuda_major,
    required_cuda,
)
from gpufleet.device_plugin import NodeLayout
from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import finding
from gpufleet.lint.config import Checked
from gpufleet.lint.document import Document
from gpufleet.lint.pods import Container, containers, program


def check_driver(checked: Checked, driver: KnownDriver | None) -> Iterator[Finding]:
    """Drivers that are known to fail with MIG on a part of the GPUs (case NV-39)."""
    node = checked.node
    if driver is None or driver.low != driver.high or node is None or not 0 < len(node.mig) < node.gpus:
        return
    for row in known_to_fail("driver", driver.low, Place(mig="partial")):
        made = finding(
            "GF621",
            checked.config.where,
            value=driver.low,
            when=row.when,
            because=row.reason,
            source=row.source,
            remedy_text=row.remedy or "",
        )
        yield replace(made, file=checked.config.document.file, line=checked.config.line(1))


def check_cuda(document: Document, driver: KnownDriver | None, node: NodeLayout | None) -> Iterator[Finding]:
    """Images of one object against the driver and the GPUs of its nodes; what is not known is not judged."""
    for container in containers(document):
        if not program(container):
            yield from _container(document, container, driver, node)


def _container(
    document: Document, container: Container, driver: KnownDriver | None, node: NodeLayout | None
) -> Iterator[Finding]:
    env = container.env()
    needs = required_cuda(container.image, env)
    if needs is None:
        return
    path, item = (*container.path, "image"), container.item
    newest = newest_cuda_major(_capability(node))
    if newest is not None and needs.major > newest:
        yield document.found("GF623", path, item, value=needs.version, newest=str(newest))
        return
    if driver is None:
        return
    verdict = fit(needs, driver.low)
    floor, full = cuda_min_driver().get(needs.major), full_driver(needs.major, needs.minor)
    top = driver_cuda(driver.low)
    supports = f"supports CUDA {top[0]}.{top[1]}" if top else "is older than every CUDA version of the table"
    said = driver.words[:1].upper() + driver.words[1:]
    if verdict is Fit.REFUSED:
        minor = floor is not None and driver_version(driver.low) >= driver_version(floor)
        needed = full if (needs.condition is not None or minor) and full else floor
        what = f"a driver from {needed} on, " if needed else ""
        remedy = f"Use {what}or an image built for a CUDA version that {driver.words} supports."
        why = f"{said} {supports}; the container does not start."
        code = "GF615" if driver.certain else "GF617"
        yield document.found(code, path, item, value=needs.version, because=why, remedy_text=remedy)
    elif verdict is Fit.MINOR:
        yield document.found("GF616", path, item, value=needs.version, driver=driver.words, full=full)
    elif verdict is Fit.FORWARD:
        model = gpu_model(node.product) if node is not None else None
        known = f"{model.id} is one." if model and forward_compatible(model) else "Whether this is one is not known."
        why = f"{said} {supports}. {known}"
        yield document.found("GF622", path, item, value=needs.version, because=why, full=full or floor)


def _capability(node: NodeLayout | None) -> str | None:
    if node is None or node.compute_capability is None:
        return None
    major, minor = node.compute_capability
    return f"{major}.{minor}"
