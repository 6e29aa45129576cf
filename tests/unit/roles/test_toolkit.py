"""The toolkit's plan, by owner of the runtime."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpufleet.hosts import (
    paths,
    toolkit,
)

from . import plans
from .converged import KIT, SET, V2, VERSION, converged, on
from .hosts import answer, codes, file, merged, packages, unit


def kit_plan(reading: dict[str, Any], **variables: Any) -> dict[str, Any]:
    context = on(reading, **variables)
    request = plans.request(toolkit.resolve_request(context))
    return plans.toolkit(on(reading, answer(request["want"]) if request else None, **variables))


def test_four_packages_at_one_version_held() -> None:
    reading = {**converged(), "packages": packages(VERSION, *SET)}
    plan = kit_plan(reading)
    assert [(p["name"], p["version"]) for p in plan["packages"]["install"]] == [
        (n, "1.20.0-1") for n in [w["name"] for w in plans.toolkit_want(on())]
    ]
    assert sorted(plan["hold"]) == sorted(KIT)


def test_policy_knobs_are_set_in_the_toolkits_own_file() -> None:
    text = (
        "#accept-nvidia-visible-devices-envvar-when-unprivileged = true\n[nvidia-container-cli]\n#no-cgroups = false\n"
    )
    plan = kit_plan(converged(files={paths.TOOLKIT_CONFIG: file(text)}), gpu_container_toolkit_no_cgroups=True)
    (written,) = [f["content"] for f in plan["files"] if f["path"] == paths.TOOLKIT_CONFIG]
    assert "\naccept-nvidia-visible-devices-envvar-when-unprivileged = false\n" in "\n" + written
    assert "no-cgroups = true" in written and "#no-cgroups" not in written


def test_an_empty_containerd_file_is_seeded_from_its_defaults() -> None:
    reading = converged(
        files={paths.CONTAINERD_CONFIG: file("")},
        runtime={
            "containerd_default": 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "pause"\n',
            "containerd_dump": V2,
        },
    )
    (written,) = [f["content"] for f in kit_plan(reading)["files"] if f["path"] == paths.CONTAINERD_CONFIG]
    assert 'sandbox_image = "pause"' in written and "runtimes.nvidia]" in written


def test_containerd_restarts_only_for_its_own_configuration() -> None:
    assert kit_plan(converged())["restart"] == []
    stale = merged(converged(), {"files": {paths.CONTAINERD_CONFIG: {"mtime": 11.0}}})  # written, and the run died
    assert kit_plan(stale)["restart"] == [{"name": "containerd.service", "state": "restarted"}]


def test_docker_keeps_its_other_keys_and_is_reloaded() -> None:
    docker = {"docker": True, "containerd": None, "containerd_dump": None, "sockets": ["/run/docker.sock"]}
    text = '{"log-driver": "journald", "runtimes": {"kata": {"path": "kata"}}}'
    reading = converged(
        runtime=docker, files={paths.DOCKER_CONFIG: file(text)}, units={"docker.service": unit(since=60.0)}
    )
    plan = kit_plan(reading, gpu_container_toolkit_default_runtime=True)
    (written,) = [f["content"] for f in plan["files"] if f["path"] == paths.DOCKER_CONFIG]
    assert json.loads(written) == {
        "log-driver": "journald",
        "default-runtime": "nvidia",
        "runtimes": {"kata": {"path": "kata"}, "nvidia": {"args": [], "path": "nvidia-container-runtime"}},
    }
    assert plan["restart"] == [{"name": "docker.service", "state": "reloaded"}]
    again = merged(reading, {"files": {paths.DOCKER_CONFIG: file(written)}})
    assert plans.describe(kit_plan(again, gpu_container_toolkit_default_runtime=True)) == []


def test_crio_gets_an_own_drop_in() -> None:
    crio = {"crio": True, "containerd": None, "containerd_dump": None, "sockets": ["/run/crio/crio.sock"]}
    plan = kit_plan(converged(runtime=crio, units={"crio.service": unit(since=60.0)}))
    (written,) = [f["content"] for f in plan["files"] if f["path"] == paths.CRIO_DROP_IN]
    assert "[crio.runtime.runtimes.nvidia]" in written and plan["restart"][0]["name"] == "crio.service"


@pytest.mark.parametrize(("owner", "running"), [("k3s", "k3s-agent.service"), ("rke2", "rke2-server.service")])
def test_rancher_is_only_restarted(owner: str, running: str) -> None:
    runtime = {"containerd": None, "containerd_dump": None, "sockets": ["/run/k3s/containerd/containerd.sock"]}
    generated = paths.RANCHER_CONTAINERD[owner]
    reading = converged(runtime=runtime, units={running: unit()}, files={generated: file("version = 2\n")})
    plan = kit_plan(reading)
    assert (
        plan["owner"] == owner and plan["files"] == [] and plan["restart"] == [{"name": running, "state": "restarted"}]
    )
    known = merged(reading, {"files": {generated: file("BinaryName = '/usr/bin/nvidia-container-runtime'")}})
    assert plans.describe(kit_plan(known)) == [] and kit_plan(known)["restart"] == []
    default = kit_plan(known, gpu_container_toolkit_default_runtime=True)
    assert default["files"][0]["content"] == "default-runtime: nvidia\n" and default["restart"]


RANCHER: dict[str, Any] = {
    "containerd": None,
    "containerd_dump": None,
    "sockets": ["/run/k3s/containerd/containerd.sock"],
}


@pytest.mark.parametrize("line", ["default-runtime: nvidia\n", 'default-runtime: "nvidia"  # gpus\n'])
def test_a_default_runtime_goes_with_the_runtime(line: str) -> None:
    """k3s whose default runtime has no binary starts no pod at all."""
    config = paths.RANCHER_CONFIG["k3s"]
    reading = converged(
        runtime=RANCHER,
        units={"k3s.service": unit()},
        files={config: file(f"token: x\n{line}node-name: a\n", "0600"), paths.CONTAINERD_CONFIG: file(V2)},
    )
    gone = plans.toolkit(on(reading, gpu_container_toolkit_state="absent"))
    assert gone["files"] == [{"path": config, "content": "token: x\nnode-name: a\n", "mode": "0600"}]
    # It looks for the binary at its start: the restart comes when the packages are gone.
    assert gone["restart"] == [] and gone["afterwards"] == [{"name": "k3s.service", "state": "restarted"}]
    known = merged(reading, {"files": {paths.RANCHER_CONTAINERD["k3s"]: file("nvidia-container-runtime")}})
    plan = kit_plan(known)  # gpu_container_toolkit_default_runtime is false
    assert plan["files"] == gone["files"] and plan["restart"]
    other = merged(known, {"files": {config: file("default-runtime: crun\n")}})
    assert kit_plan(other)["files"] == []


def test_docker_loses_the_default_runtime_when_it_is_not_wanted() -> None:
    runtimes = '{"nvidia": {"path": "nvidia-container-runtime"}}'
    text = f'{{"default-runtime": "nvidia", "log-level": "warn", "runtimes": {runtimes}}}'
    runtime = {"containerd": None, "containerd_dump": None, "docker": True, "sockets": ["/run/docker.sock"]}
    reading = converged(
        runtime=runtime, files={paths.DOCKER_CONFIG: file(text, mtime=5.0)}, units={"docker.service": unit()}
    )
    (written,) = kit_plan(reading)["files"]
    assert json.loads(written["content"]) == {k: v for k, v in json.loads(text).items() if k != "default-runtime"}
    assert kit_plan(reading, gpu_container_toolkit_default_runtime=True)["files"] == []


def test_kubespray_gets_variables_and_no_edit() -> None:
    plan = kit_plan(converged(), gpu_runtime_owner="kubespray", gpu_container_toolkit_default_runtime=True)
    assert plan["files"] == [] and plan["restart"] == []
    assert plan["hints"]["containerd_additional_runtimes"][0]["name"] == "nvidia"
    assert plan["hints"]["containerd_default_runtime"] == "nvidia" and plan["hints"]["enable_cdi"] is True


def test_live_containers_in_legacy_mode_are_not_disturbed() -> None:
    reading = merged(
        converged(),
        {
            "holders": [{"pid": 1, "name": "python3"}],
            "files": {paths.CONTAINERD_CONFIG: file(V2)},
            "runtime": {"containerd_dump": V2},
        },
    )
    assert codes(kit_plan(reading, gpu_container_toolkit_mode="legacy")["problems"]) == ["GF750"]
    assert kit_plan(reading)["problems"] == []  # CDI
    assert kit_plan(reading, gpu_container_toolkit_mode="legacy", gpu_node_drained=True)["problems"] == []
    daemon = merged(reading, {"holders": [{"pid": 1, "name": "nvidia-persiste"}]})
    assert kit_plan(daemon, gpu_container_toolkit_mode="legacy")["problems"] == []


def test_removing_the_toolkit_gives_containerd_its_file_back() -> None:
    plan = plans.toolkit(on(converged(), gpu_container_toolkit_state="absent"))
    (written,) = [f for f in plan["files"] if f["path"] == paths.CONTAINERD_CONFIG]
    assert written["content"].strip() == V2.strip()
    assert sorted(plan["packages"]["remove"]) == sorted(KIT) and plan["restart"]


def test_undo_restores_what_was_read() -> None:
    context = on(converged(files={paths.CONTAINERD_CONFIG: file(V2, mode="0600")}, runtime={"containerd_dump": V2}))
    plan = plans.toolkit(context)
    assert plans.undo(context, plan)["write"] == [{"path": paths.CONTAINERD_CONFIG, "content": V2, "mode": "0600"}]
    bare = on()
    new = plans.driver(bare)
    assert paths.BLACKLIST in plans.undo(bare, new)["remove"]


def test_a_driver_that_was_there_before_gets_its_cdi_specification() -> None:
    without = converged(runtime={"cdi_specs": []})
    start = {"name": "nvidia-cdi-refresh.service", "state": "started"}
    assert start in kit_plan(without)["units"]
    assert start not in kit_plan(without, gpu_container_toolkit_cdi_refresh=False)["units"]
    nouveau = merged(without, {"driver": None, "kernel": {"modules": {"nouveau": 1}}})
    assert start not in kit_plan(nouveau)["units"]


@pytest.mark.parametrize("text", ["[]", "null", '{"runtimes": []}', "{x"])
def test_a_daemon_json_that_is_none_is_left_alone(text: str) -> None:
    runtime = {"containerd": None, "containerd_dump": None, "docker": True, "sockets": ["/run/docker.sock"]}
    reading = converged(runtime=runtime, files={paths.DOCKER_CONFIG: file(text)}, units={"docker.service": unit()})
    plan = kit_plan(reading)
    assert codes(plan["problems"]) == ["GF747"]
    assert [f for f in plan["files"] if f["path"] == paths.DOCKER_CONFIG] == []
    plans.toolkit(on(reading, gpu_container_toolkit_state="absent"))  # does not fail on it
