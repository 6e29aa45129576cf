"""A T4 host on which every role has done its work, and ways to ask for plans."""

from __future__ import annotations

from typing import Any

from gpufleet.hosts import containerd, driver, driver_config, paths, toolkit
from gpufleet.hosts.context import Answer, Context

from . import plans
from .hosts import answer, file, gpu, host, merged, packages, probe, unit

VERSION = "580.126.09"
SET = ("nvidia-open", "nvidia-dkms-580-open", "libnvidia-compute-580", "nvidia-utils-580")
KIT = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1")
DRIVER = {"version": VERSION, "flavour": "open"}
V2 = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def smi(*gpus_state: dict[str, Any], version: str = VERSION) -> dict[str, Any]:
    base = {
        "bus_id": "0",
        "name": "T4",
        "mig_current": None,
        "mig_pending": None,
        "ecc_uncorrectable": 0,
        "remap_failed": False,
        "recovery_action": None,
        "fabric_state": None,
        "fabric_status": None,
        "power_limit_w": 70.0,
        "mig_devices": 0,
    }
    return {"driver_version": version, "gpus": [{**base, **state} for state in gpus_state or ({},)]}


def converged(**changes: Any) -> dict[str, Any]:
    """A T4 host on which every role has done its work."""
    bare = host(gpu_driver_version=VERSION)
    repo, kit = driver.repository_of(bare), toolkit.repository_of(bare)
    keyrings = {
        r.keyring_path: [
            {
                "fingerprint": "0" * 24 + r.fingerprints[0][-16:] if len(r.fingerprints[0]) < 40 else r.fingerprints[0],
                "sha1_only": False,
            }
        ]
        for r in (repo, kit)
    }
    config, _why = containerd.edit(V2, None, V2, "1.7.20", name="nvidia", default=False)
    root = config[paths.CONTAINERD_CONFIG]
    assert root
    kit_text = "".join(
        f["content"] for f in plans.toolkit(host(probe()))["files"] if f["path"] == paths.TOOLKIT_CONFIG
    )
    base = probe(
        driver=DRIVER,
        library=VERSION,
        smi=smi(),
        hardware={"gpus": [gpu("1eb8", driver="nvidia")], "device_files": ["nvidia0", "nvidiactl", "nvidia-uvm"]},
        kernel={"modules": {"nvidia": 3, "nvidia_uvm": 0}, "module_file": "/lib/modules/x/updates/dkms/nvidia.ko"},
        packages={**packages(VERSION, *SET), **packages("1.20.0", *KIT)},
        keyrings=keyrings,
        files={
            repo.source_path: file(repo.source_text()),
            kit.source_path: file(kit.source_text()),
            paths.PREFERENCES: file(driver_config.preferences(bare)),
            paths.UNATTENDED: file(driver_config.unattended(bare)),
            paths.BLACKLIST: file(driver_config.blacklist(bare)),
            paths.MODULES_LOAD: file("# Written by the role gpu_driver.\nnvidia\nnvidia-uvm\n"),
            paths.CONTAINERD_CONFIG: file(root, mtime=5.0),
            paths.TOOLKIT_CONFIG: file(kit_text),
            paths.FACTS: file("{}"),
        },
        units={
            "nvidia-persistenced.service": unit(),
            "nvidia-cdi-refresh.path": unit(),
            "containerd.service": unit(since=10.0),
        },
        runtime={
            "containerd": "1.7.20",
            "containerd_dump": root,
            "sockets": ["/run/containerd/containerd.sock"],
            "cdi_specs": ["/var/run/cdi/nvidia.yaml"],
        },
    )
    return merged(base, changes)


def on(reading: dict[str, Any] | None = None, resolved: dict[str, Any] | None = None, **variables: Any) -> Context:
    return host(reading, resolved, **{"gpu_driver_version": VERSION, **variables})


def resolved_driver(context: Context, **more: Any) -> plans.Plan:
    answered = Answer.model_validate(answer(plans.driver_want(context), **more))
    return plans.driver(Context(context.probe, context.settings, context.tables, answered))
