"""The driver's plan."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from ansible_collections.gpufleet.hosts.plugins.action.packages import ActionModule
from ansible_collections.gpufleet.hosts.plugins.module_utils import index, order
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import settings
from gpufleet.hosts import (
    driver_config,
    health,
    paths,
    preflight,
    verify,
)
from gpufleet.hosts import packages as packages_of

from . import plans
from .converged import SET, VERSION, converged, on, resolved_driver
from .hosts import codes, file, gpu, gpus, interesting, merged, package, packages, probe, unit


def test_nothing_is_left_to_do_on_a_converged_host() -> None:
    context = on(converged())
    for plan in (
        plans.driver(context),
        plans.toolkit(context),
        plans.fabric(context),
        plans.health(context),
    ):
        assert (plan["problems"], plans.describe(plan), plan.get("resolve", {})) == ([], [], {})
    assert verify.verify(context)[0] == []


def test_a_bare_host_asks_first_and_then_has_an_exact_set() -> None:
    context = on()
    plan = plans.driver(context)
    assert plan["packages"]["install"] == [] and plan["resolve"]["want"]
    plan = resolved_driver(context)
    assert [(p["name"], p["version"]) for p in plan["packages"]["install"]] == [("nvidia-open", f"{VERSION}-1")]
    assert plan["hold"] == ["nvidia-open"] and plan["load"] == ["nvidia", "nvidia_uvm"] and plan["initramfs"]
    written = {f["path"]: f["content"] for f in plan["files"]}
    assert f"Pin: version {VERSION}-*" in written[paths.PREFERENCES]
    assert "^nvidia-" in written[paths.UNATTENDED]
    assert {"nouveau", "nova_core", "nova_drm", "nova"} <= set(written[paths.BLACKLIST].split())
    assert "options nouveau modeset=0" in written[paths.BLACKLIST]
    assert plan["units"] == [{"name": "nvidia-persistenced.service", "enabled": True, "state": "started"}]


def test_driver_and_fabric_come_in_one_transaction() -> None:
    hardware = {"gpus": gpus("2330", 8), "nvswitches": [{"slot": "s", "device": "22a3"}]}
    plan = resolved_driver(on(probe(hardware=hardware)))
    assert {p["name"] for p in plan["packages"]["install"]} == {"nvidia-open", "nvidia-fabricmanager", "libnvidia-nscq"}
    assert {p["version"] for p in plan["packages"]["install"]} == {f"{VERSION}-1"}


def test_a_missing_package_stops_the_plan_before_anything_is_touched() -> None:
    hardware = {"gpus": gpus("2330", 8), "nvswitches": [{"slot": "s", "device": "22a3"}]}
    context = on(probe(hardware=hardware))
    assert codes(resolved_driver(context, missing=("nvidia-fabricmanager",))["problems"]) == ["GF737"]


def test_leftovers_of_another_version_go_after_the_installation() -> None:
    old = {
        **packages("570.158.01", "nvidia-open", "libnvidia-compute-570"),
        "nvidia-driver-pinning-570": package("570-2"),
    }
    plan = resolved_driver(on(probe(packages=old)))
    assert plan["packages"]["remove"] == ["libnvidia-compute-570", "nvidia-driver-pinning-570"]
    assert plan["release"] == ["libnvidia-compute-570"]
    assert plans.driver(on(probe(packages=old)))["packages"]["remove"] == []  # not before the new set is known


def test_changing_the_flavour_takes_the_other_modules_away() -> None:
    names = (
        "nvidia-open",
        "nvidia-dkms-580-open",
        "nvidia-kernel-source-580-open",
        "nvidia-driver-580-open",
        "libnvidia-gl-580",
    )
    open_host = on(probe(packages=packages(VERSION, *names)), gpu_driver_flavour="proprietary")
    plan = resolved_driver(open_host)
    assert plan["packages"]["remove"] == sorted(names[:4]) == plan["release"]
    assert [p["name"] for p in plan["packages"]["install"]] == ["cuda-drivers-580"]
    again = on(probe(packages=packages(VERSION, "cuda-drivers-580", "nvidia-dkms-580", "nvidia-driver-580")))
    assert "nvidia-dkms-580" in resolved_driver(again)["packages"]["remove"]


def test_a_package_that_changes_loses_its_hold_and_gets_it_back() -> None:
    reading = probe(packages=packages("580.95.05", "nvidia-open"))
    assert reading["packages"]["nvidia-open"]["hold"] is True
    assert resolved_driver(on(reading))["hold"] == ["nvidia-open"]


def test_packages_that_only_look_like_a_driver_stay() -> None:
    others = {
        "cuda-compat-13-0": package("580.65.06-1"),
        "nvidia-container-toolkit": package("1.20.0-1"),
        "nvidia-mig-manager": package("0.15.0-1"),
        "libnvidia-container1": package("1.20.0-1"),
    }
    assert on(probe(packages=others)).driver_family == {}


def test_a_node_in_use_keeps_its_driver() -> None:
    reading = merged(converged(), {"system": {"in_cluster": True}})
    assert codes(plans.driver(on(reading, gpu_driver_version="580.178.04"))["problems"]) == ["GF756"]
    drained = on(reading, gpu_driver_version="580.178.04", gpu_node_drained=True)
    assert codes(plans.driver(drained)["problems"]) == []


def test_a_loaded_module_of_another_version_is_exchanged_when_nobody_uses_it() -> None:
    modules = {"nvidia": 3, "nvidia_uvm": 0, "nvidia_modeset": 1, "nvidia_drm": 0}
    reading = merged(
        converged(), {"driver": {"version": "580.95.05", "flavour": "open"}, "kernel": {"modules": modules}}
    )
    plan = plans.driver(on(reading))
    assert plan["unload"] == ["nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia"]
    assert plan["stop"] == [{"name": "nvidia-persistenced.service", "state": "stopped"}]
    assert plan["load"] == ["nvidia", "nvidia_uvm"] and plan["reboot"] == []
    busy = merged(reading, {"holders": [{"pid": 1, "name": "python3"}]})
    plan = plans.driver(on(busy))
    assert plan["unload"] == [] and "580.95.05 is loaded" in plan["reboot"][0]


@pytest.mark.parametrize("module", ["nouveau", "nova_core"])
def test_another_driver_means_a_reboot_and_no_load(module: str) -> None:
    plan = plans.driver(on(merged(converged(), {"driver": None, "kernel": {"modules": {module: 1}}})))
    assert plan["load"] == [] and module in plan["reboot"][0]


def test_an_initramfs_older_than_the_blacklist_is_rebuilt() -> None:
    reading = merged(converged(), {"kernel": {"initramfs": {"path": "/boot/x", "mtime": 49.0}}})
    plan = plans.driver(on(reading))
    assert plan["initramfs"] == ["update-initramfs", "-u", "-k", "all"] and plan["files"] == []


def test_a_masked_daemon_is_unmasked_and_none_is_started_without_a_gpu() -> None:
    masked = merged(converged(), {"units": {"nvidia-persistenced.service": unit("inactive", "masked", load="masked")}})
    assert plans.driver(on(masked))["units"] == [
        {"name": "nvidia-persistenced.service", "masked": False, "enabled": True, "state": "started"}
    ]
    plan = resolved_driver(on(probe(hardware={"gpus": []})))
    assert plan["units"] == [] and plan["load"] == []


def test_removal_takes_bare_names_and_our_files_alone() -> None:
    plan = plans.driver(on(converged(), gpu_driver_state="absent"))
    assert plan["packages"]["remove"] == sorted(SET) and plan["release"] == sorted(SET)
    assert all("=" not in name for name in plan["packages"]["remove"])
    assert paths.BLACKLIST in plan["absent"] and paths.CUDA_KEYRING_APT in plan["absent"]
    assert paths.CONTAINERD_CONFIG not in plan["absent"] and plan["unload"] == ["nvidia_uvm", "nvidia"]
    gone = plans.driver(on(gpu_driver_state="absent"))
    assert plans.describe(gone) == []


def test_an_operators_host_gets_nothing() -> None:
    plan = plans.driver(on(gpu_driver_method="none"))
    assert plans.describe(plan) == [] and plan["resolve"] == {} and plan["problems"] == []


def test_runfile_wants_a_checksum_and_dkms() -> None:
    context = on(gpu_driver_method="runfile", gpu_driver_runfile_sha256="ab" * 32)
    plan = plans.driver(context)
    assert plan["runfile"]["checksum"] == "sha256:" + "ab" * 32
    assert plan["runfile"]["arguments"] == ["--silent", "--dkms", "-m=kernel-open"]
    assert plan["runfile"]["url"].endswith(f"/tesla/{VERSION}/NVIDIA-Linux-x86_64-{VERSION}.run")
    assert [w["name"] for w in plan["resolve"]["want"]] == ["dkms"]
    there = on(probe(runfile=True, library=VERSION), gpu_driver_method="runfile")
    assert plans.driver(there)["runfile"] == {} and plans.driver(there)["problems"] == []


def test_modular_systems_enable_the_stream_of_the_branch() -> None:
    el9 = {"id": "rocky", "version_id": "9.4", "manager": "dnf"}
    assert resolved_driver(on(probe(system=el9)))["streams"] == ["nvidia-driver:580-open"]
    assert resolved_driver(on(probe(system={**el9, "version_id": "10.0"})))["streams"] == []
    volta = probe(system=el9, hardware={"gpus": [gpu("1db4")]})
    assert resolved_driver(on(volta))["streams"] == ["nvidia-driver:580-dkms"]


def test_grace_gets_its_memory_mode_and_own_options_win() -> None:
    grace = probe(system={"architecture": "aarch64"}, hardware={"gpus": gpus("2941", 4)})
    assert driver_config.module_options(on(grace)) == {"nvidia": "NVreg_CoherentGPUMemoryMode=driver"}
    own = on(grace, gpu_driver_module_options={"nvidia": "NVreg_X=1"})
    assert driver_config.module_options(own) == {"nvidia": "NVreg_X=1"}


def test_no_switch_of_provider_leaves_two_kernel_modules() -> None:
    el9 = {"id": "rocky", "version_id": "9.4", "manager": "dnf"}
    both = {"kmod-nvidia-open-dkms": package("3:580.126.09-1"), "dnf-plugin-nvidia": package("2.0-1")}
    assert packages_of.other_kmods(on(probe(system=el9, packages=both))) == ["dnf-plugin-nvidia"]
    assert packages_of.other_kmods(on(probe(system=el9, packages=both), gpu_driver_kmod="precompiled")) == [
        "kmod-nvidia-open-dkms"
    ]


DEBIAN = {"id": "debian", "version_id": "12", "manager": "apt"}
DEBIAN_NAMES = ("nvidia-driver-libs", "libnvidia-ml1", "nvidia-smi", "nvidia-alternative", "nvidia-kernel-support")


def test_on_debian_the_cuda_repository_uses_the_archives_names() -> None:
    ours = packages(VERSION, "nvidia-open", "nvidia-kernel-open-dkms", "nvidia-driver", "libcuda1", *DEBIAN_NAMES)
    context = on(probe(system=DEBIAN, packages=ours, library=VERSION))
    assert "GF730" not in codes(preflight.findings(context))
    assert plans.driver(context)["packages"]["remove"] == []
    theirs = packages("535.216.01", *DEBIAN_NAMES, revision="-1~deb12u1")
    assert "GF730" in codes(preflight.findings(on(probe(system=DEBIAN, packages=theirs))))
    assert "GF730" in codes(preflight.findings(on(probe(system=DEBIAN, packages={**ours, **theirs}))))


def test_every_library_of_debian_is_pinned_at_the_drivers_version() -> None:
    names = ["libcuda1", "libegl-nvidia0", "libgl1-nvidia-glvnd-glx", "libnvcuvid1", "libglx-nvidia0"]
    stanzas = [f"Package: {n}\nVersion: {v}-1\n" for n in names for v in (VERSION, "595.91.07")]
    meta = f"Package: nvidia-open\nVersion: {VERSION}-1\nDepends: {', '.join(names)}\n"
    known = index.parse_packages("\n".join([meta, *stanzas]), interesting)
    found = index.closure(known, [{"name": "nvidia-open", "version": VERSION}], order.comparison("apt"))["packages"]
    assert {p["name"]: p["version"] for p in found} == dict.fromkeys(["nvidia-open", *names], f"{VERSION}-1")
    listed = driver_config.preferences(on()).splitlines()[1].removeprefix("Package: ").split()
    assert all(any(fnmatch.fnmatch(name, pattern) for pattern in listed) for name in names)
    assert set(on(probe(packages=packages(VERSION, *names))).driver_family) == set(names)


def test_a_library_that_is_gone_is_asked_for_again() -> None:
    gone = on(converged(library=None))
    assert plans.driver(gone)["resolve"]["want"]
    assert "GF779" in codes(verify.verify(gone)[0])


def test_the_way_back_to_a_runfile_has_its_checksum() -> None:
    variables = {"gpu_driver_method": "runfile", "gpu_driver_runfile_sha256": "ab" * 32}
    there = on(converged(runfile=True), **variables)
    last = health.facts(there, healthy=True)["last_good"]
    assert last == {"version": VERSION, "branch": 580, "flavour": "open", "runfile_sha256": "ab" * 32}
    other = {"gpu_driver_runfile_sha256": "cd" * 32, "gpu_driver_override": last}
    back = settings.overridden({**there.settings.model_dump(), **other})
    assert back["gpu_driver_runfile_sha256"] == "ab" * 32
    assert "runfile_sha256" not in health.facts(on(converged()), healthy=True)["last_good"]


def test_a_source_that_made_way_comes_back_when_the_transaction_fails() -> None:
    path, uri = "/etc/apt/sources.list.d/cuda.list", "https://developer.download.nvidia.com/compute/cuda/repos/x/"
    source = {"file": path, "uri": uri, "suite": "/", "components": [], "signed_by": None, "enabled": True}
    context = on(probe(sources=[source], files={path: file(f"deb {uri} /\n")}))
    plan = plans.driver(context)
    assert plan["absent"] == [path]
    assert plans.undo(context, plan)["write"] == [{"path": path, "content": f"deb {uri} /\n", "mode": "0644"}]


@pytest.mark.parametrize(
    ("reading", "variables", "code"),
    [
        ({"packages": packages(VERSION, *SET)}, {"gpu_driver_method": "runfile"}, "GF730"),
        ({"packages": packages("535.216.01", *DEBIAN_NAMES), "system": DEBIAN}, {}, "GF730"),
        ({"runfile": True}, {}, "GF729"),
        ({"system": {"id": "rocky", "version_id": "8.10", "manager": "dnf"}}, {}, "GF701"),
    ],
)
def test_no_driver_is_put_on_top_of_another_kind_by_the_role_alone(
    reading: dict[str, Any], variables: dict[str, Any], code: str
) -> None:
    """Without preflight before it the role refuses as well, and plans no change."""
    context = on(probe(**reading), gpu_driver_runfile_sha256="ab" * 32, **variables)
    plan = plans.driver(context)
    assert code in codes(plan["problems"]) and plans.describe(plan) == [] and plan["runfile"] == {}
    assert code in codes(preflight.findings(context))


def test_a_fact_file_that_is_gone_is_drift() -> None:
    reading = converged()
    del reading["files"][paths.FACTS]
    (found,) = verify.verify(on(reading))[0]
    assert found == ("GF779", {"role": "gpu_health", "what": f"{paths.FACTS} is missing"})


def test_drift_names_what_is_missing_and_nothing_else() -> None:
    lacking = converged()
    del lacking["packages"]["nvidia-open"]
    words = [v["what"] for code, v in verify.verify(on(lacking))[0] if code == "GF779"]
    assert words == [f"packages are not installed as wanted: nvidia-open {VERSION}"]
    words = [v["what"] for code, v in verify.verify(on(converged(library=None)))[0] if code == "GF779"]
    assert words == ["a package that the named ones need is gone: there is no libnvidia-ml.so.1"]


def test_what_is_not_available_is_named_with_its_version() -> None:
    ((code, values),) = resolved_driver(on(), missing=("nvidia-open",))["problems"]
    assert (code, values["missing"]) == ("GF736", f"nvidia-open {VERSION}")


def test_packages_wait_for_cloud_init_where_it_runs() -> None:
    ((module, options),) = ActionModule._waits({"lock_timeout": 60}, {"cloud_init_running": True})
    assert (module, options["path"], options["timeout"]) == (
        "ansible.builtin.wait_for",
        "/run/cloud-init/result.json",
        60,
    )
    assert "gpu_lock_timeout" in options["msg"]
    assert ActionModule._waits({}, {"cloud_init_running": False}) == ActionModule._waits({}, {}) == []
