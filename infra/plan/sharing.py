"""Sharing profiles: the device plugin's configuration text, and what each pool offers with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from infra.config.diagnostics import Diagnostic, diagnostic
from infra.config.model import Stack
from infra.config.pools import Pool
from infra.config.software import NoSharing, TimeSlicing
from infra.plan.facts import Facts
from infra.plan.names import UNSHARED

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Profile:
    """One sharing profile: `config` is the file that the plugin reads, `resource` what a pod asks for."""

    name: str
    strategy: str
    replicas: int
    resource: str
    config: str
    memory_per_pod_gib: float | None = None


def plugin_config(profile: TimeSlicing | NoSharing) -> str:
    """The text of the plugin's configuration file (API version v1)."""
    content: dict[str, Any] = {"version": "v1"}
    if isinstance(profile, TimeSlicing):
        content["sharing"] = {
            "timeSlicing": {
                "renameByDefault": profile.rename_by_default,
                "failRequestsGreaterThanOne": profile.fail_requests_greater_than_one,
                "resources": [{"name": GPU, "replicas": profile.replicas}],
            }
        }
    return yaml.safe_dump(content, sort_keys=False)


def profiles(stack: Stack) -> dict[str, Profile]:
    """All profiles that pools use, by name, sorted; pools that name none use the one called `unshared`."""
    used = {pool.sharing or UNSHARED for pool in stack.pools if serves(pool)}
    out = {}
    for name in sorted(used):
        spec = stack.sharing.get(name) or NoSharing(strategy="none")
        shared = isinstance(spec, TimeSlicing)
        renamed = isinstance(spec, TimeSlicing) and spec.rename_by_default
        out[name] = Profile(
            name=name,
            strategy=spec.strategy,
            replicas=spec.replicas if isinstance(spec, TimeSlicing) else 1,
            resource=f"{GPU}.shared" if renamed else GPU,
            config=plugin_config(spec),
            memory_per_pod_gib=spec.memory_per_pod_gib if isinstance(spec, TimeSlicing) and shared else None,
        )
    return out


def serves(pool: Pool) -> bool:
    """Whether the stack's GPU software runs on this pool at all."""
    return pool.driver not in ("none", "managed")


def check_sharing(stack: Stack) -> list[Diagnostic]:
    """Names that are taken."""
    if UNSHARED in stack.sharing and stack.sharing[UNSHARED].strategy != "none":
        return [diagnostic("GF304", f"sharing.{UNSHARED}", value=UNSHARED)]
    return []


def check_pool_sharing(pool: Pool, facts: Facts, profile: Profile | None, path: str) -> list[Diagnostic]:
    """Memory that pods were promised and that the GPU does not have."""
    if profile is None or profile.memory_per_pod_gib is None or facts.memory_gib is None:
        return []
    promised = profile.replicas * profile.memory_per_pod_gib
    if promised <= facts.memory_gib:
        return []
    return [
        diagnostic(
            "GF302",
            f"{path}.sharing",
            value=profile.name,
            pods=str(profile.replicas),
            each=f"{profile.memory_per_pod_gib:g}",
            promised=f"{promised:g}",
            memory=f"{facts.memory_gib:g}",
            fit=str(int(facts.memory_gib // profile.memory_per_pod_gib)),
        )
    ]
