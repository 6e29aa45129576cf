"""Sharing profiles: the device plugin's configuration text, and what each pool offers with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import Facts
from gpufleet.plan.mig import memory_per_instance_gib, release_strategy, resource_names
from gpufleet.plan.names import UNSHARED
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import NodePool, Pool
from gpufleet.stackfile.sharing import Hami, Mig, Mps, NoSharing, TimeSlicing
from gpufleet.stackfile.software import OperatorRoute

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the C one writes the same text in a tenth of the time
GPU = "nvidia.com/gpu"
Spec = TimeSlicing | Mps | Mig | Hami | NoSharing
#: Where plugin and MPS control daemon meet on the host; the operator's default as well.
MPS_ROOT = "/run/nvidia/mps"


@dataclass(frozen=True)
class Profile:
    """One sharing profile.

    `config` is the file that the plugin reads, `resources` what pods can ask for, `pods_per_device` how many pods take
    part in one device (GPU or MIG instance). `mig_strategy` is the plugin's word for how it offers MIG instances.
    """

    name: str
    strategy: str
    pods_per_device: int
    resources: tuple[str, ...]
    config: str
    mig_strategy: str = "none"
    memory_per_pod_gib: float | None = None

    @property
    def resource(self) -> str:
        """The resource of profiles that offer one; the first of several."""
        return self.resources[0]


def plugin_config(profile: Spec) -> str:
    """The text of the plugin's configuration file (API version v1)."""
    content: dict[str, Any] = {"version": "v1"}
    if isinstance(profile, Mig):
        content["flags"] = {"migStrategy": profile.mig_strategy}
        if profile.replicas is not None:
            names = [n.removesuffix(".shared") for n in resource_names(profile)]
            content["sharing"] = {"timeSlicing": _replicated(profile, profile.replicas, names)}
    elif isinstance(profile, Mps):
        content["flags"] = {"mpsRoot": MPS_ROOT}
        content["sharing"] = {"mps": _replicated(profile, profile.replicas, [GPU])}
    elif isinstance(profile, TimeSlicing):
        content["sharing"] = {"timeSlicing": _replicated(profile, profile.replicas, [GPU])}
    return yaml.dump(content, Dumper=_DUMPER, sort_keys=False)


def _replicated(profile: TimeSlicing | Mps | Mig, replicas: int, names: list[str]) -> dict[str, Any]:
    return {
        "renameByDefault": profile.rename_by_default,
        "failRequestsGreaterThanOne": profile.fail_requests_greater_than_one,
        "resources": [{"name": name, "replicas": replicas} for name in names],
    }


def profile_of(name: str, spec: Spec) -> Profile:
    """What follows from a profile of the stack file, whatever the hardware."""
    renamed = not isinstance(spec, NoSharing | Hami) and spec.rename_by_default
    pods = {TimeSlicing: "replicas", Mps: "replicas", Mig: "replicas", Hami: "split_count"}.get(type(spec))
    return Profile(
        name=name,
        strategy=spec.strategy,
        pods_per_device=(getattr(spec, pods) or 1) if pods else 1,
        resources=resource_names(spec) if isinstance(spec, Mig) else (f"{GPU}.shared" if renamed else GPU,),
        config=plugin_config(spec),
        mig_strategy=spec.mig_strategy if isinstance(spec, Mig) else "none",
        memory_per_pod_gib=None if isinstance(spec, NoSharing) else spec.memory_per_pod_gib,
    )


def spec_of(pool: Pool, stack: Stack) -> Spec:
    """The sharing profile of a pool as the stack file states it; whole GPUs where it names none."""
    return stack.sharing.get(pool.sharing or UNSHARED) or NoSharing(strategy="none")


def profiles(stack: Stack) -> dict[str, Profile]:
    """All profiles that pools use, by name, sorted; pools that name none use the one called `unshared`."""
    used = {pool.sharing or UNSHARED: spec_of(pool, stack) for pool in stack.pools if serves(pool)}
    return {name: profile_of(name, used[name]) for name in sorted(used)}


def serves(pool: Pool) -> bool:
    """Whether the stack's GPU software runs on this pool at all."""
    return pool.driver not in ("none", "managed")


def check_sharing(stack: Stack) -> list[Finding]:
    """Names that are taken, and methods that exclude each other in one cluster."""
    found = []
    if UNSHARED in stack.sharing and stack.sharing[UNSHARED].strategy != "none":
        found.append(finding("GF304", f"sharing.{UNSHARED}", value=UNSHARED))
    specs = [(i, p, spec_of(p, stack)) for i, p in enumerate(stack_pools(stack)) if serves(p)]
    with_hami = [p.name for _, p, spec in specs if isinstance(spec, Hami)]
    if with_hami and len(with_hami) < len(specs):
        i = next(i for i, _, spec in specs if not isinstance(spec, Hami))
        found.append(finding("GF340", f"pools[{i}].sharing", value=specs[0][1].sharing, pools=", ".join(with_hami)))
    if len({(s.split_count, s.memory_scaling) for _, _, s in specs if isinstance(s, Hami)}) > 1:
        i = next(i for i, _, spec in reversed(specs) if isinstance(spec, Hami))
        found.append(finding("GF341", f"pools[{i}].sharing", value=stack_pools(stack)[i].sharing))
    if isinstance(stack.stack, OperatorRoute) and release_strategy(stack) == "mixed":
        found += [
            finding("GF321", f"pools[{i}].sharing", value=pool.sharing)
            for i, pool, spec in specs
            if isinstance(spec, Mps)
        ]
    return found


def device_memory_gib(spec: Spec, facts: Facts) -> float | None:
    """GiB of the smallest device that pods share: the GPU, or the smallest MIG instance."""
    if isinstance(spec, Mig):
        kinds = [spec.profile] if spec.profile else list(spec.instances)
        return min(memory_per_instance_gib(k) for k in kinds if k)
    return facts.memory_gib


def check_pool_sharing(pool: Pool, facts: Facts, spec: Spec, profile: Profile, path: str) -> list[Finding]:
    """What one pool's hardware and owner say about its profile."""
    return [
        *_check_memory(facts, spec, profile, path),
        *_check_time_slice(pool, spec, path),
        *_check_mps(facts, spec, path),
    ]


def _check_memory(facts: Facts, spec: Spec, profile: Profile, path: str) -> list[Finding]:
    """Memory that pods were promised and that the device does not have."""
    have = device_memory_gib(spec, facts)
    if profile.memory_per_pod_gib is None or have is None:
        return []
    scaled = have * spec.memory_scaling if isinstance(spec, Hami) else have
    most, why, lower = _most_for_one(spec, scaled, profile)
    if most is not None and profile.memory_per_pod_gib > most:
        texts = {"each": f"{profile.memory_per_pod_gib:g}", "most": f"{most:g}", "why": why, "lower": lower}
        return [finding("GF307", f"{path}.sharing", value=profile.name, **texts)]
    promised = profile.pods_per_device * profile.memory_per_pod_gib
    if promised <= scaled:
        return []
    return [
        finding(
            "GF302",
            f"{path}.sharing",
            value=profile.name,
            pods=str(profile.pods_per_device),
            each=f"{profile.memory_per_pod_gib:g}",
            promised=f"{promised:g}",
            memory=f"{scaled:g}",
            fit=str(int(scaled // profile.memory_per_pod_gib)),
            measured=_measured_memory(spec),
        )
    ]


def _measured_memory(spec: Spec) -> str:
    """What becomes of memory promised twice: as measured for time-slicing, of a GPU or inside an instance."""
    if isinstance(spec, TimeSlicing | Mig):
        from gpufleet.measure.isolation import (
            unbounded_memory,  # measurements are read only where something may be said
        )

        return unbounded_memory()
    return "A pod that asks for more than is left is refused it."


def _most_for_one(spec: Spec, device: float, profile: Profile) -> tuple[float | None, str, str]:
    """(GiB that one pod can have at most, why, what else to lower); None where it depends on the instance it gets."""
    if isinstance(spec, Mps):
        # The daemon of k8s-device-plugin sets a pinned memory limit of memory / replicas (its cmd/mps-control-daemon).
        why = f"The MPS daemon limits each of {profile.pods_per_device} clients to its part of the memory."
        return device / profile.pods_per_device, why, " or replicas"
    if isinstance(spec, Mig) and len(spec.instances) > 1:
        return None, "", ""
    return device, "The device that it shares has no more.", ""


def _check_time_slice(pool: Pool, spec: Spec, path: str) -> list[Finding]:
    """Nothing in the cluster sets the length of a turn; the Ansible roles do, on hosts that they look after."""
    if not isinstance(spec, TimeSlicing) or spec.time_slice is None:
        return []
    if isinstance(pool, NodePool) and pool.hosts and pool.driver == "host":
        return []
    return [finding("GF330", f"{path}.sharing", value=spec.time_slice)]


def _check_mps(facts: Facts, spec: Spec, path: str) -> list[Finding]:
    """Clients per GPU: 48, or 16 below compute capability 7.5 (NVIDIA/k8s-device-plugin, MPS control daemon)."""
    if not isinstance(spec, Mps) or facts.model is None or facts.model.compute_capability is None:
        return []
    major, _, minor = facts.model.compute_capability.partition(".")
    most = 48 if (int(major), int(minor or 0)) >= (7, 5) else 16
    if spec.replicas <= most:
        return []
    return [finding("GF320", f"{path}.sharing", value=spec.replicas, gpu=facts.model.id, most=str(most))]
