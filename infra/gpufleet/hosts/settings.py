"""The variables of the roles in their types. Names, defaults and choices stand in roles/*/meta/argument_specs.yml."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class MirrorProfile(BaseModel):
    """One entry of gpu_mirror_profiles; what it does not say stays as it is."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    cuda_url: str = ""
    cuda_suite: str = "/"
    cuda_components: tuple[str, ...] = ()
    cuda_key: str = ""
    cuda_key_url: str = ""
    cuda_key_fingerprints: tuple[str, ...] = ()
    toolkit_url: str = ""
    toolkit_suite: str = "/"
    toolkit_components: tuple[str, ...] = ()
    toolkit_key: str = ""
    toolkit_key_url: str = ""
    toolkit_key_fingerprints: tuple[str, ...] = ()
    runfile_url: str = ""
    allowed_hosts: tuple[str, ...] = ()


class Settings(BaseModel):
    """Every variable of every role, as it holds for one host."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    gpu_catalog_dir: str
    gpu_sysfs_root: str
    gpu_proc_root: str
    gpu_dev_root: str
    gpu_kernel_log: str
    gpu_lock_timeout: int
    gpu_repo_manage: bool
    gpu_mirror_profile: str
    gpu_mirror_profiles: dict[str, MirrorProfile]
    gpu_runtime_owner: str
    gpu_node_drained: bool
    gpu_reboot_policy: str
    gpu_reboot_timeout: int
    gpu_container_toolkit_state: str
    gpu_container_toolkit_version: str
    gpu_container_toolkit_hold: bool
    gpu_container_toolkit_repo_url: str
    gpu_container_toolkit_repo_suite: str
    gpu_container_toolkit_repo_components: tuple[str, ...]
    gpu_container_toolkit_repo_key: str
    gpu_container_toolkit_repo_key_url: str
    gpu_container_toolkit_repo_key_fingerprints: tuple[str, ...]
    gpu_container_toolkit_runtime_name: str
    gpu_container_toolkit_default_runtime: bool
    gpu_container_toolkit_cdi: bool
    gpu_container_toolkit_mode: str
    gpu_container_toolkit_no_cgroups: bool
    gpu_container_toolkit_unprivileged_envvar: bool
    gpu_container_toolkit_volume_mounts: bool
    gpu_container_toolkit_cdi_refresh: bool
    gpu_driver_state: str
    gpu_driver_method: str
    gpu_driver_branch: str
    gpu_driver_version: str
    gpu_driver_flavour: str
    gpu_driver_components: str
    gpu_driver_extra_packages: tuple[str, ...]
    gpu_driver_kmod: str
    gpu_driver_repo_url: str
    gpu_driver_repo_suite: str
    gpu_driver_repo_components: tuple[str, ...]
    gpu_driver_repo_key: str
    gpu_driver_repo_key_url: str
    gpu_driver_repo_key_fingerprints: tuple[str, ...]
    gpu_driver_runfile_url: str
    gpu_driver_runfile_sha256: str
    gpu_driver_module_options: dict[str, str]
    gpu_driver_persistenced: bool
    gpu_driver_load: bool
    gpu_driver_override: dict[str, Any]
    gpu_driver_hold: bool
    gpu_fabric_mode: str
    gpu_fabric_imex_nodes: tuple[str, ...]
    gpu_fabric_ready_timeout: int
    gpu_health_time_slice: str
    gpu_health_power_limit_watts: int
    gpu_health_lock_clocks: str
    gpu_health_smoke_test: str
    gpu_health_write_facts: bool
    gpu_health_fail: bool
    gpu_mig_layout: str
    gpu_mig_layouts: dict[str, list[dict[str, Any]]]
    gpu_mig_manager_version: str
    gpu_mig_manager_hold: bool
    gpu_mig_start_timeout: int
    gpu_preflight_gpu_model: str
    gpu_preflight_gpu_count: int
    gpu_preflight_cuda_target: str
    gpu_preflight_min_free_mib: int
    gpu_preflight_allow_sha1_key: bool
    gpu_preflight_check_repositories: bool
    gpu_preflight_accept: dict[str, str]
    gpu_preflight_fail: bool

    @property
    def profile(self) -> MirrorProfile | None:
        """The chosen mirror profile, an empty one when none is chosen, None when the name is unknown."""
        if not self.gpu_mirror_profile:
            return MirrorProfile()
        return self.gpu_mirror_profiles.get(self.gpu_mirror_profile)

    @property
    def key_texts(self) -> set[str]:
        """Texts of keys that somebody gave for a repository of their own."""
        own = {self.gpu_driver_repo_key, self.gpu_container_toolkit_repo_key}
        return (own | {k for p in self.gpu_mirror_profiles.values() for k in (p.cuda_key, p.toolkit_key)}) - {""}

    @property
    def wants_driver(self) -> bool:
        """Whether the roles bring a driver."""
        return self.gpu_driver_state == "present" and self.gpu_driver_method != "none"

    @property
    def wants_packages(self) -> bool:
        """Whether the driver comes in packages."""
        return self.wants_driver and self.gpu_driver_method != "runfile"
