"""Facts of hosts against the stack: what the roles have found is compared with what the plan counts on.

A fact is the content of /etc/ansible/facts.d/gpu.fact, as playbooks/verify.yml collects it (roles/README.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gpufleet.catalog import distribution, driver_version, gpu_model
from gpufleet.catalog.cuda import Fit, fit, newest_cuda_major, required_cuda
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import join_path
from gpufleet.findings.registry import finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.runtime import NVIDIA_RUNTIME_CLASS
from gpufleet.places.existing.hosts import PREPARED_OWNERS, host_driver, listed_pools, mig_layout
from gpufleet.places.existing.model import existing_stack, node_pool


class _Part(BaseModel):
    """Facts may hold more than is compared; what is compared has its type."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Gpu(_Part):
    """One GPU on the bus; `model` is an id of gpus.yaml, or 10de:<device> where the tables do not know it."""

    slot: str
    model: str


class Driver(_Part):
    """`version` and `flavour` of the loaded module, `library` the version on disk; None: there is none."""

    owner: Literal["host", "other", "none"]
    version: str | None = Field(default=None, pattern=r"^[0-9]{3}(\.[0-9]{1,3}){1,2}$")
    flavour: str | None = None
    library: str | None = None


class Fabric(_Part):
    """`platform` is "none" on hosts without NVSwitch; `version` that of the fabric packages. `ready` is None where the
    GPUs report no state."""

    platform: str
    version: str | None = None
    unit: str | None = None
    ready: bool | None = None


class Toolkit(_Part):
    """The container toolkit's packages."""

    version: str | None = None


class Runtime(_Part):
    """Who owns the container runtime's configuration, the handler that it knows, whether that is the default."""

    owner: str
    handler: str | None = None
    default: bool = False


class Mig(_Part):
    """The wanted layout, whether it is applied, and the mode of each GPU."""

    layout: str | None = None
    applied: bool = False
    modes: tuple[str | None, ...] = Field(default=(), strict=False)


class HostFact(_Part):
    """The fact file of one host."""

    form: Literal[1] = Field(alias="schema")
    gpus: tuple[Gpu, ...] = Field(strict=False)
    driver: Driver
    fabric: Fabric
    toolkit: Toolkit
    runtime: Runtime
    mig: Mig
    reboot_required: tuple[str, ...] = Field(strict=False)
    healthy: bool


@dataclass(frozen=True)
class _Host:
    """One host with its pool, its fact and its place in the stack file."""

    name: str
    pool: FleetPool
    fact: HostFact
    path: str

    def says(self, code: str, value: object, **details: Any) -> Finding:
        """A diagnostic about this host."""
        return finding(code, self.path, value=value, host=self.name, **details)


def check_facts(fleet: Fleet, facts: Mapping[str, HostFact | None]) -> list[Finding]:
    """Everything in the facts that contradicts the stack, by host in the order of the stack file.

    A host whose fact is None was asked, and its answer is reported elsewhere.
    """
    found: list[Finding] = []
    listed: dict[str, FleetPool] = {}
    for pool in listed_pools(fleet):
        listed |= dict.fromkeys(node_pool(pool).hosts, pool)
    for name in facts:
        if name not in listed:
            found.append(finding("GF822", "pools", value=name, allowed=sorted(listed)))
    for name, pool in listed.items():
        if pool.owner not in PREPARED_OWNERS:
            continue
        path = join_path(("pools", pool.index, "hosts", name))
        if name not in facts:
            found.append(finding("GF823", path, value=name))
            continue
        fact = facts[name]
        if fact is None:
            continue
        host = _Host(name, pool, fact, path)
        about = [
            *_check_gpus(host),
            *(_check_host_owner(host, fleet) if pool.owner == "host" else _check_operator_owner(host)),
            *_check_state(host),
            *_check_images(host, fleet),
        ]
        if not about and not host.fact.healthy and pool.owner == "host":
            about.append(host.says("GF838", "not healthy"))
        found += about
    return found


def _check_gpus(host: _Host) -> Iterator[Finding]:
    models = [gpu.model for gpu in host.fact.gpus]
    if len(models) != host.pool.hardware.gpus:
        yield host.says("GF833", len(models), allowed=[host.pool.hardware.gpus])
    wanted = host.pool.hardware.model
    if wanted is None:
        return
    for model in sorted(set(models)):
        known = gpu_model(model)
        if known is None:
            yield host.says("GF835", model)
        elif known.id not in (wanted.members or (wanted.id,)):
            yield host.says("GF834", model, allowed=wanted.members or (wanted.id,))


def _check_operator_owner(host: _Host) -> Iterator[Finding]:
    """The operator brings driver and toolkit in containers; a second one on the host fights it."""
    driver, mig = host.fact.driver, host.fact.mig
    if driver.owner == "host" or driver.library is not None:
        yield host.says("GF824", driver.library or driver.version)
    if host.fact.toolkit.version is not None:
        yield host.says("GF825", host.fact.toolkit.version)
    if mig.layout is not None:
        yield host.says("GF830", mig.layout)


def _check_host_owner(host: _Host, fleet: Fleet) -> Iterator[Finding]:
    yield from _check_driver(host)
    yield from _check_mig(host)
    yield from _check_runtime(host, fleet)


def _check_driver(host: _Host) -> Iterator[Finding]:
    driver, pool, spec = host.fact.driver, host.pool, host.pool.spec
    if driver.version is None:
        yield host.says("GF826", driver.library or "none")
        return
    branch = str(driver_version(driver.version).branch)
    if spec.driver_version is not None and driver.version != spec.driver_version:
        yield host.says("GF827", driver.version, allowed=[spec.driver_version])
    elif spec.driver_branch is not None and branch != spec.driver_branch:
        yield host.says("GF828", driver.version, allowed=[spec.driver_branch])
    elif spec.driver_version is None:
        yield from _check_gpu_driver(host, driver.version)
    model = pool.hardware.model
    modules = model.modules if model is not None and model.modules != "both" else None
    wanted = host_driver(node_pool(pool)).flavour or modules
    if wanted is not None and driver.flavour is not None and driver.flavour != wanted:
        yield host.says("GF840", driver.flavour, allowed=[wanted])
    if driver.library is not None and driver.library != driver.version:
        yield host.says("GF841", driver.version, library=driver.library)


def _check_gpu_driver(host: _Host, version: str) -> Iterator[Finding]:
    """Where the stack names no exact version, the one on the host has to know the GPU; a named one is checked by the
    plan."""
    model = host.pool.hardware.model
    if model is not None and model.min_driver and driver_version(version) < driver_version(model.min_driver):
        yield host.says("GF842", version, gpu=model.id, oldest=model.min_driver)


def _check_mig(host: _Host) -> Iterator[Finding]:
    mig, wanted = host.fact.mig, mig_layout(host.pool)
    enabled = any(mode == "Enabled" for mode in mig.modes)
    if wanted is None and (enabled or mig.layout not in (None, "all-disabled")):
        yield host.says("GF829", f"layout {mig.layout}" if mig.layout else "the mode is on", allowed=["no MIG"])
    elif wanted is not None and (mig.layout != wanted[0] or not mig.applied):
        state = "" if mig.applied else ", not applied"
        yield host.says("GF829", f"layout {mig.layout or 'none'}{state}", allowed=[wanted[0]])


def _check_runtime(host: _Host, fleet: Fleet) -> Iterator[Finding]:
    runtime, wanted = host.fact.runtime, node_pool(host.pool).nvidia_default_runtime
    if host.fact.toolkit.version is None:
        yield host.says("GF831", "none")
    owner = _runtime_owner(fleet)
    if owner != "auto" and runtime.owner != owner:
        yield host.says("GF843", runtime.owner or "unclear", allowed=[owner])
        return  # what the runtime knows was read in the wrong place
    if runtime.owner == "none":
        return  # somebody else's: the roles do not look into it
    if runtime.handler != NVIDIA_RUNTIME_CLASS:
        yield host.says("GF832", runtime.handler or "none", allowed=[NVIDIA_RUNTIME_CLASS])
    elif runtime.default != wanted:
        yield host.says("GF839", runtime.default, allowed=["true" if wanted else "false"])


def _runtime_owner(fleet: Fleet) -> str:
    stack = existing_stack(fleet)
    known = distribution(fleet.distribution)
    return stack.hosts.runtime_owner or (known.host_runtime_owner if known else "auto")


def _check_state(host: _Host) -> Iterator[Finding]:
    """What has to be over before pods are sent to the host."""
    fact = host.fact
    if fact.reboot_required:
        yield host.says("GF837", "; ".join(fact.reboot_required))
    if host.pool.owner != "host":
        return
    loaded, fabric = fact.driver.version, fact.fabric
    if fabric.unit is not None and loaded is not None and fabric.version != loaded:
        yield host.says("GF836", fabric.version or "none", allowed=[loaded])
    elif fabric.ready is False:
        yield host.says("GF845", fabric.platform)


def _check_images(host: _Host, fleet: Fleet) -> Iterator[Finding]:
    """The images that teams name, on the driver that is loaded; the plan knows only what the stack file says of it."""
    model, version = host.pool.hardware.model, host.fact.driver.version
    if version is None:
        return
    newest = newest_cuda_major(model.compute_capability) if model else None
    for team in fleet.stack.teams:
        for image in team.images if host.pool.name in team.pools else ():
            needs = required_cuda(image, {})
            if needs and fit(needs, version, newest, compat=team.cuda_compat) is Fit.REFUSED:
                yield host.says("GF844", version, image=image, team=team.name, cuda=needs.version)
