"""RP-10: hosts whose container runtime has to resolve CDI devices."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from gpufleet.catalog.packages import cdi_runtimes, embedded_containerd
from gpufleet.hosts import cdi, containerd, paths, preflight, runtime, verify

from . import plans
from .converged import V2, converged, on
from .hosts import codes, file, merged, unit
from .test_containerd import DEFAULTS, V3, edit
from .test_toolkit import kit_plan

CRI = '[plugins."io.containerd.grpc.v1.cri"]\n'
OTHERS = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/x/nvidia-container-runtime"
"""
ROOTS = {
    "no table": V2,
    "table": f'version = 2\n{CRI}  sandbox_image = "pause"\n',
    "false": f"version = 2\n{CRI}  enable_cdi = false\n",
    "commented out": f"version = 2\n{CRI}  # enable_cdi = false\n",
    "runtime of somebody else": V2 + OTHERS,
    "runtime of somebody else, false": f"version = 2\n{CRI}  enable_cdi = false\n{OTHERS}",
    "version 1": "[plugins.cri.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n",
}


@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
def test_rp_10_enable_cdi_stands_in_the_table_of_the_files_version(root: str) -> None:
    changes, why = edit(root, dump=root if "nvidia" in root else DEFAULTS, version="1.7.24", cdi=True)
    new = changes[paths.CONTAINERD_CONFIG]
    document = tomllib.loads(new)
    assert why == "" and containerd.resolves_cdi(document) is True and "nvidia" in containerd.runtimes(document)
    again = edit(new, dump=new, version="1.7.24", cdi=True)[0]
    assert again.get(paths.CONTAINERD_CONFIG, new) == new
    assert containerd.remove(new).strip() == root.strip()  # removal gives back what was there


def test_cdi_stays_on_when_nobody_asks_for_it_any_more() -> None:
    """Pods that got their GPU by CDI would start without it."""
    for root in (ROOTS["no table"], ROOTS["false"]):
        on_ = edit(root, version="1.7.24", cdi=True)[0][paths.CONTAINERD_CONFIG]
        assert edit(on_, dump=on_, version="1.7.24")[0][paths.CONTAINERD_CONFIG] == on_
    drop_in = edit(V3, version="2.2.1", cdi=True)[0][paths.CONTAINERD_DROP_IN]
    assert edit(V3, version="2.2.1", drop_in=drop_in)[0][paths.CONTAINERD_DROP_IN] == drop_in


def test_what_others_set_is_left_alone_without_need() -> None:
    root = f"version = 2\n{CRI}enable_cdi = true\n{OTHERS}"
    assert edit(root, version="1.7.24", cdi=True) == ({}, "")
    assert "enable_cdi = false" in edit(ROOTS["false"], dump=DEFAULTS, version="1.7.24")[0][paths.CONTAINERD_CONFIG]


def test_a_drop_in_beats_a_false_of_the_root_file() -> None:
    root = V3 + "[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n"
    changes, why = edit(root, version="2.2.1", cdi=True)
    document = tomllib.loads(changes[paths.CONTAINERD_DROP_IN])
    assert why == "" and changes[paths.CONTAINERD_CONFIG] == root
    assert document["version"] == 3 and containerd.resolves_cdi(document) is True


def test_a_drop_in_keeps_the_runtime_when_the_root_file_gets_a_newer_version() -> None:
    old = V2.replace("version = 2", 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]')
    drop_in = edit(old, dump=V2, version="2.2.1", cdi=True)[0][paths.CONTAINERD_DROP_IN]
    effective = V3 + OTHERS.replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
    new = edit(V3, dump=effective, version="2.2.1", drop_in=drop_in, cdi=True)[0][paths.CONTAINERD_DROP_IN]
    assert "nvidia" in containerd.runtimes(tomllib.loads(new))


def rancher(owner: str, text: str, **more: Any) -> dict[str, Any]:
    """A k3s or RKE2 node with the containerd file that it wrote."""
    socket = "/run/k3s/containerd/containerd.sock"
    return converged(
        runtime={"containerd": None, "containerd_dump": None, "sockets": [socket], **more},
        units={"k3s.service" if owner == "k3s" else "rke2-server.service": unit()},
        files={paths.RANCHER_CONTAINERD[owner]: file(text + "# nvidia-container-runtime\n")},
    )


def other(name: str, **more: Any) -> dict[str, Any]:
    """A host of CRI-O or Docker."""
    socket = {"crio": "/run/crio/crio.sock", "docker": "/run/docker.sock"}[name]
    seen = {"containerd": None, "containerd_dump": None, "sockets": [socket], name: True, **more}
    return converged(runtime=seen, units={f"{name}.service": unit()})


V1 = ROOTS["version 1"]
V2_FILE, FALSE = "version = 2\n", f"version = 2\n{CRI}enable_cdi = false\n"
HOSTS: dict[str, tuple[dict[str, Any], str]] = {
    "containerd 1.6": (converged(runtime={"containerd": "1.6.20"}), "GF791"),
    "containerd 1.7.15": (converged(runtime={"containerd": "1.7.15"}), "GF791"),
    "containerd 1.7.16": (converged(runtime={"containerd": "1.7.16"}), ""),
    "containerd 2": (converged(runtime={"containerd": "2.2.1"}), ""),
    "containerd 2, file of version 1": (
        converged(runtime={"containerd": "2.2.1"}, files={paths.CONTAINERD_CONFIG: file(V1)}), "GF795",
    ),
    "containerd 1.7, file of version 1": (converged(files={paths.CONTAINERD_CONFIG: file(V1)}), ""),
    "CRI-O 1.29": (other("crio", crio_version="1.29.4"), "GF791"),
    "CRI-O 1.30": (other("crio", crio_version="1.30.0"), ""),
    "CRI-O of an unknown version": (other("crio"), ""),
    "Docker": (other("docker"), "GF794"),
    "k3s with containerd 1.7": (rancher("k3s", V2_FILE, embedded_containerd="1.7.23"), "GF792"),
    "k3s with containerd 2": (rancher("k3s", "version = 3\n"), ""),
    "k3s, file of version 2 for containerd 2": (rancher("k3s", V2_FILE, embedded_containerd="2.0.2"), ""),
    "k3s, file of version 2, containerd unknown": (rancher("k3s", V2_FILE), ""),
    "k3s, a template says true": (rancher("k3s", FALSE.replace("false", "true"), embedded_containerd="1.7.23"), ""),
    "RKE2, a template says false": (rancher("rke2", FALSE, embedded_containerd="2.0.2"), "GF792"),
}


@pytest.mark.parametrize(("reading", "code"), HOSTS.values(), ids=HOSTS)
def test_rp_10_preflight_refuses_a_runtime_that_cannot(reading: dict[str, Any], code: str) -> None:
    wanted = on(reading, gpu_container_toolkit_cdi=True)
    assert [c for c in codes(preflight.findings(wanted)) if "GF791" <= c <= "GF799"] == ([code] if code else [])
    assert codes(kit_plan(reading, gpu_container_toolkit_cdi=True)["problems"]) == ([code] if code else [])
    assert cdi.problems(on(reading)) == []  # nobody needs it


def test_the_operators_toolkit_switches_cdi_on_but_no_old_containerd() -> None:
    absent = {"gpu_container_toolkit_cdi": True, "gpu_container_toolkit_state": "absent"}
    assert codes(preflight.findings(on(HOSTS["containerd 1.6"][0], **absent)))[-1] == "GF791"
    assert cdi.problems(on(HOSTS["k3s with containerd 1.7"][0], **absent)) == []


def test_rp_10_the_role_writes_it_once() -> None:
    reading = converged()
    plan = kit_plan(reading, gpu_container_toolkit_cdi=True)
    (written,) = [f["content"] for f in plan["files"] if f["path"] == paths.CONTAINERD_CONFIG]
    assert containerd.resolves_cdi(tomllib.loads(written)) is True and plan["restart"]
    after = converged(files={paths.CONTAINERD_CONFIG: file(written, mtime=5.0)}, runtime={"containerd_dump": written})
    for wanted in (True, False):
        assert plans.describe(kit_plan(after, gpu_container_toolkit_cdi=wanted)) == []
    assert verify.verify(on(after, gpu_container_toolkit_cdi=True))[0] == []


OFF = V2 + CRI + "enable_cdi = false\n"
RUNNING = '{{"config": {{"containerd": {{"runtimes": {{"nvidia": {{}}}}}}, "enableCDI": {}}}}}'


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (converged(runtime={"containerd_dump": OFF}), "enable_cdi = false in plugins.io.containerd.grpc.v1.cri"),
        (converged(runtime={"containerd_dump": V2}), "no enable_cdi in plugins.io.containerd.grpc.v1.cri"),
        (converged(runtime={"containerd_dump": OFF.replace("false", "true"), "cri_runtimes": RUNNING.format("false")}),
         "crictl info: enableCDI is false, although containerd config dump: enable_cdi = true in "
         "plugins.io.containerd.grpc.v1.cri: restart containerd"),
        (rancher("k3s", FALSE), "/var/lib/rancher/k3s/agent/etc/containerd/config.toml: enable_cdi = false"),
    ],
)  # fmt: skip
def test_rp_10_verify_reads_what_is_in_effect(reading: dict[str, Any], said: str) -> None:
    found = cdi.drift(on(reading, gpu_container_toolkit_cdi=True))
    assert [(p.code, p.values["what"]) for p in found] == [("GF793", found[0].values["what"])]
    assert said in found[0].values["what"]
    assert "GF793" in codes(verify.verify(on(reading, gpu_container_toolkit_cdi=True))[0])
    assert cdi.drift(on(reading)) == []


def test_a_file_that_wins_over_the_roles_is_seen_before_any_restart() -> None:
    after = edit(V2, version="1.7.24", cdi=True)[0][paths.CONTAINERD_CONFIG].replace("cdi = true", "cdi = false")
    reading = merged(converged(), {"runtime": {"containerd_dump": after}})
    assert codes(runtime.verify_runtime(on(reading, gpu_container_toolkit_cdi=True), V2)) == ["GF793"]


def test_runtimes_of_the_table_are_those_of_the_roles() -> None:
    assert {row.runtime for row in cdi_runtimes()} == set(runtime.UNITS)
    assert {row.owner for row in embedded_containerd()} == set(runtime.RANCHER_UNITS)
