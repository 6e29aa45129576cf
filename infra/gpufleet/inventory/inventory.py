"""Stack -> Ansible inventory: hosts, groups, and the variables of the roles. Pure: the same stack gives the same one.

Groups: `gpu_hosts` (the hosts that the playbooks go to), `pool_<name>` per pool and `driver_<owner>` per driver owner.
Variables stand at the pools' groups, so that a pool is one place; hosts have their address only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.catalog import distribution
from gpufleet.catalog.cuda import required_cuda
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.methods.time_slicing import TimeSlicing
from gpufleet.places.existing.hosts import PREPARED_OWNERS, host_driver, listed_pools, mig_layout
from gpufleet.places.existing.model import ExistingStack, existing_stack, node_pool
from gpufleet.stackfile.hosts import Mirror, MirrorRepository, Ssh
from gpufleet.stackfile.model import Stack

GPU_HOSTS = "gpu_hosts"
#: The stack has one mirror; the roles take one of several by name.
MIRROR_PROFILE = "stack"


@dataclass(frozen=True)
class Group:
    """A group of hosts, or of groups. Names of hosts in the order of the stack file."""

    name: str
    hosts: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inventory:
    """Hosts with their own variables, and groups; a child comes after every group that names it."""

    hosts: Mapping[str, Mapping[str, Any]]
    groups: tuple[Group, ...]

    def variables(self) -> dict[str, dict[str, Any]]:
        """Host -> all its variables, those of its groups included, sorted by name."""
        merged = {name: dict(own) for name, own in self.hosts.items()}
        for group in self.groups:
            for name in group.hosts:
                merged[name] = {**group.variables, **merged[name]}
        return {name: dict(sorted(values.items())) for name, values in merged.items()}


def group_name(kind: str, name: str) -> str:
    """`pool_a100_80`: Ansible's group names have no dashes, names of pools no underscores."""
    return f"{kind}_{name.replace('-', '_')}"


def inventory(fleet: Fleet, kubeconfig: str | None = None) -> Inventory:
    """The inventory of a stack without errors (`check_inventory` included).

    `kubeconfig` is the path of the cluster's kubeconfig where Ansible runs; playbooks/upgrade.yml drains with it.
    """
    pools = list(listed_pools(fleet))
    if not pools:
        return Inventory({}, ())
    hosts = {
        name: {"ansible_host": host.address} if host and host.address else {}
        for pool in pools
        for name, host in node_pool(pool).hosts.items()
    }
    owners = list(dict.fromkeys(pool.owner for pool in pools))

    def children(*drivers: str) -> tuple[str, ...]:
        return tuple(group_name("pool", p.name) for p in pools if p.owner in drivers)

    parents = [Group(GPU_HOSTS, children=children(*PREPARED_OWNERS))]
    parents += [Group(group_name("driver", owner), children=children(owner)) for owner in owners]
    own = [
        Group(group_name("pool", p.name), tuple(node_pool(p).hosts), variables=pool_variables(p, fleet, kubeconfig))
        for p in pools
    ]
    return Inventory(hosts, (*parents, *own))


def pool_variables(pool: FleetPool, fleet: Fleet, kubeconfig: str | None = None) -> dict[str, Any]:
    """The roles' variables for the hosts of a pool, sorted by name; for hosts that are left alone only the login."""
    stack = existing_stack(fleet)
    variables = _login(stack.hosts.ssh)
    if pool.owner in PREPARED_OWNERS:
        variables |= _common(stack) | _hardware(pool) | _cluster(stack, kubeconfig)
        variables |= _host(pool, stack) if pool.owner == "host" else _operator()
    return dict(sorted(variables.items()))


def _login(ssh: Ssh) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    if ssh.user is not None:
        variables["ansible_user"] = ssh.user
        variables["ansible_become"] = ssh.user != "root"
    if ssh.port is not None:
        variables["ansible_port"] = ssh.port
    return variables


def _cluster(stack: ExistingStack, kubeconfig: str | None) -> dict[str, Any]:
    """How playbooks/upgrade.yml reaches the API server. Without a kubeconfig it refuses hosts with a kubelet."""
    if kubeconfig is None:
        return {}
    context = stack.cluster.kubeconfig.context
    return {"upgrade_kubeconfig": kubeconfig, **({"upgrade_context": context} if context else {})}


def _common(stack: ExistingStack) -> dict[str, Any]:
    hosts, known = stack.hosts, distribution(stack.cluster.distribution)
    variables: dict[str, Any] = {
        "gpu_reboot_policy": hosts.reboot_policy,
        "gpu_repo_manage": hosts.manage_repositories,
        "gpu_runtime_owner": hosts.runtime_owner or (known.host_runtime_owner if known else "auto"),
    }
    if hosts.mirror is not None:
        variables["gpu_mirror_profile"] = MIRROR_PROFILE
        variables["gpu_mirror_profiles"] = {MIRROR_PROFILE: mirror_profile(hosts.mirror)}
    return variables


def mirror_profile(mirror: Mirror) -> dict[str, Any]:
    """One entry of the roles' gpu_mirror_profiles; what the stack file does not say is left out."""
    profile = {**_repository("cuda", mirror.cuda), **_repository("toolkit", mirror.toolkit)}
    if mirror.runfile_url is not None:
        profile["runfile_url"] = mirror.runfile_url
    if mirror.allowed_hosts:
        profile["allowed_hosts"] = list(mirror.allowed_hosts)
    return profile


def _repository(name: str, repository: MirrorRepository | None) -> dict[str, Any]:
    if repository is None:
        return {}
    entries = {
        "url": repository.url,
        "suite": repository.suite,
        "components": list(repository.components),
        "key": repository.key,
        "key_url": repository.key_url,
        "key_fingerprints": list(repository.key_fingerprints),
    }
    return {f"{name}_{key}": value for key, value in entries.items() if value}


def _hardware(pool: FleetPool) -> dict[str, Any]:
    """What preflight compares with the host. A short name that fits several models is no model to compare with."""
    model = pool.hardware.model
    exact = model.id if model is not None and not model.members else ""
    return {"gpu_preflight_gpu_model": exact, "gpu_preflight_gpu_count": pool.hardware.gpus}


def cuda_target(pool: FleetPool, stack: Stack) -> str | None:
    """The highest CUDA version that the driver has to reach for the pool's teams, or None.

    Left out are images that run on older drivers through cuda-compat: those of teams that say so, and base images of
    CUDA, which carry it for the branches that they list.
    """
    images = [i for t in stack.teams if pool.name in t.pools and not t.cuda_compat for i in t.images]
    versions = [(n.major, n.minor) for i in images if (n := required_cuda(i, {})) and n.branches is None]
    return "{}.{}".format(*max(versions)) if versions else None


def _host(pool: FleetPool, stack: ExistingStack) -> dict[str, Any]:
    """The roles bring driver, fabric manager and toolkit, and cut the GPUs."""
    spec, method, model = node_pool(pool), pool.method, pool.hardware.model
    wanted = host_driver(spec)
    modules = model.modules if model is not None and model.modules != "both" else "auto"
    variables: dict[str, Any] = {
        "gpu_driver_method": wanted.method,
        "gpu_driver_flavour": wanted.flavour or modules,
        "gpu_fabric_mode": "auto",
        "gpu_container_toolkit_state": "present",
        "gpu_container_toolkit_cdi": pool.runtime is not None and pool.runtime.host_cdi,
        "gpu_container_toolkit_default_runtime": spec.nvidia_default_runtime,
        # The toolkit ignores NVIDIA_VISIBLE_DEVICES in unprivileged containers unless it is told so.
        "gpu_container_toolkit_unprivileged_envvar": pool.runtime is not None and pool.runtime.strategy == "envvar",
        "gpu_health_time_slice": (method.time_slice or "") if isinstance(method, TimeSlicing) else "",
        "gpu_mig_layout": "",
    }
    if spec.driver_branch is not None:
        variables["gpu_driver_branch"] = spec.driver_branch
    if spec.driver_version is not None:
        variables["gpu_driver_version"] = spec.driver_version
    if wanted.runfile_sha256 is not None:
        variables["gpu_driver_runfile_sha256"] = wanted.runfile_sha256
    if (cuda := cuda_target(pool, stack)) is not None:
        variables["gpu_preflight_cuda_target"] = cuda
    return variables | _mig(pool)


def _operator() -> dict[str, Any]:
    """The operator's containers bring driver, fabric manager and toolkit, and its MIG manager cuts the GPUs."""
    return {"gpu_driver_method": "none", "gpu_fabric_mode": "none", "gpu_container_toolkit_state": "absent"}


def _mig(pool: FleetPool) -> dict[str, Any]:
    wanted = mig_layout(pool)
    if wanted is None:
        return {}
    name, instances = wanted
    if name.startswith("all-"):
        return {"gpu_mig_layout": name}
    own = [{"devices": "all", "mig-enabled": True, "mig-devices": instances}]
    return {"gpu_mig_layout": name, "gpu_mig_layouts": {name: own}}
