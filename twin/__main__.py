"""``python -m twin up | down | status | tools``: a fleet on this machine, from the stack file to the nodes.

Each stack has a cluster of its own, as in life: ``.twin/clusters/<stack>/``. Pulumi with the state of all stacks, and
the stand-in for Azure, are shared by the checkout: ``.twin/``. ``.twin/env`` and ``.twin/kubeconfig`` are those of the
stack that came up last.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes import client
from urllib3.exceptions import HTTPError

from twin import controlplane, nodes, processes, pulumi_home, toolchain
from twin.controlplane import CHECKOUT, Layout
from twin.engine import Twin, stack_file, wait
from twin.errors import TwinError

FOLDER = CHECKOUT / ".twin"
HOSTS = FOLDER / "hosts"  # of `python -m twin.hosts`, which ends and removes them itself


def say(text: str) -> None:
    """Print at once: what follows may take minutes."""
    print(text, flush=True)


def cluster(stack: str) -> Layout:
    """Return where the cluster of a stack lives."""
    return Layout(FOLDER / "clusters" / stack)


def up(stack: str, deploy: bool) -> int:
    """Bring everything up and, unless told otherwise, deploy the stack. Raises TwinError."""
    file = stack_file(CHECKOUT, stack)
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", stack) or not file.exists():
        there = sorted(path.stem.removeprefix("Pulumi.") for path in file.parent.glob("Pulumi.*.yaml"))
        raise TwinError(f"there is no stack {stack!r}: no {file.relative_to(CHECKOUT)}. Stacks: {', '.join(there)}")
    config = nodes.read_config(file)
    start = time.monotonic()
    tools = toolchain.ensure(say)
    with controlplane.locked(FOLDER, waiting=lambda: say("Another command works on this twin; waiting for it.")):
        layout = cluster(stack)
        empty = not layout.state.exists()
        started = controlplane.ensure(layout, tools, say)
        controlplane.add_contexts(layout, nodes.contexts(config))
        pulumi_home.lay(FOLDER, tools)
        twin = Twin(layout, FOLDER)
        write_environment(twin)
        how = f"started {', '.join(started)}" if started else "runs already"
        say(f"Control plane of {stack}: {how} ({time.monotonic() - start:.0f} s).")
        _simulate(twin, stack, config)
        if not deploy:
            say(f"Not deployed, as you said. To use it: source {_shown(layout.root / 'env')}")
            return 0
        return _deploy(twin, stack, refresh=empty)


def _simulate(twin: Twin, stack: str, config: dict[str, Any]) -> None:
    declared = nodes.declared(config, stack)
    nodes.reconcile(twin.core, stack, declared)
    for node in declared:
        wait(partial(twin.node_ready, node.name), 60, f"node {node.name} is Ready")
    if declared:
        gpus = sum(node.gpus for node in declared)
        say(f"Nodes: {', '.join(node.name for node in declared)} ({gpus} GPUs in all; simulated).")


def _deploy(twin: Twin, stack: str, *, refresh: bool) -> int:
    """``refresh`` for a cluster that has just been made: what Pulumi remembers in one before it is gone."""
    for lock in pulumi_home.drop_dead_locks(FOLDER / "state"):
        say(f"A killed pulumi had left a lock ({lock.name}); removed.")
    environment, run_dir = twin.env(), twin.layout.run
    made = twin.init_stack(CHECKOUT, stack)
    pulumi = FOLDER / "bin" / "pulumi"
    quietly = ["--stack", stack, "--yes", "--skip-preview", "--non-interactive", "--suppress-progress"]
    words: list[str | Path]
    with pulumi_home.salt_kept_out(stack_file(CHECKOUT, stack)):
        if refresh and not made:
            # A command of its own: in `up` the program would make the variable an input of the provider, and the next
            # preview, without it, would show a change.
            say(f"\npulumi refresh --stack {stack}: what was in the cluster that is gone is forgotten.")
            words = [pulumi, "refresh", *quietly]
            forgetting = {**environment, "PULUMI_K8S_DELETE_UNREACHABLE": "true"}
            processes.foreground("pulumi", words, run_dir=run_dir, env=forgetting, cwd=CHECKOUT)
        say(f"\npulumi up --stack {stack}")
        words = [pulumi, "up", *quietly, "--refresh"]  # what was deleted by hand, or with a node, comes back
        code = processes.foreground("pulumi", words, run_dir=run_dir, env=environment, cwd=CHECKOUT)
    if code != 0:
        raise TwinError(
            f"pulumi up ended with {code}; what it said is above. The control plane goes on running.\n"
            f"Change the stack file and run the same command again, or end everything: make down"
        )
    say(f"\ngpufleet status --stack {stack} --wait 120")
    words = [Path(sys.executable).parent / "gpufleet", "status", "-s", stack, "--wait", "120"]
    code = processes.foreground("gpufleet", words, run_dir=run_dir, env=environment, cwd=CHECKOUT)
    say("\n" + usage(twin.layout, stack))
    return code


def usage(layout: Layout, stack: str) -> str:
    """Return what a user has now and how to go on, in words."""
    port = controlplane.state(layout)["ports"]["apiserver"]
    return "\n".join(
        [
            f"A fleet runs on this machine: stack {stack}, Kubernetes API at https://127.0.0.1:{port}.",
            f"  Use it in this shell    source {_shown(layout.root / 'env')}",
            f"  Change something        edit stacks/Pulumi.{stack}.yaml, then: pulumi preview -s {stack};"
            f" pulumi up -s {stack}",
            f"  Declared and observed   gpufleet status -s {stack}",
            f"  Logs                    {_shown(layout.logs)}",
            "  End it and remove all   make down   (or: python -m twin down)",
        ]
    )


def _shown(path: Path) -> str:
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)


def write_environment(twin: Twin) -> None:
    """Write the cluster's ``env``, a file for a shell to source; it and the kubeconfig become the checkout's latest."""
    wanted = pulumi_home.variables(twin.home, twin.kubeconfig, twin.home / "state", {})
    path = ":".join(shlex.quote(part) for part in wanted.pop("PATH").split(":") if part)
    lines = [
        "# source this file: pulumi, gpufleet and Kubernetes clients of this shell then work on the twin",
        f'export PATH={path}:"$PATH"',
        *(f"export {name}={shlex.quote(value)}" for name, value in wanted.items()),
    ]
    controlplane.write_private(twin.layout.root / "env", "\n".join(lines) + "\n")
    for name in ("env", "kubeconfig"):
        latest = twin.home / name
        latest.unlink(missing_ok=True)
        latest.symlink_to((twin.layout.root / name).relative_to(twin.home))


def down() -> int:
    """End every process that was started and remove what is in ``.twin``; the cache of built programs stays."""
    if not FOLDER.exists():
        say("Nothing to do: there is no twin in this checkout.")
        return 0
    clusters = [Layout(path.parent) for path in FOLDER.rglob("run") if not path.is_relative_to(HOSTS)]
    ran = []
    for layout in clusters:  # a command that holds the lock has to end first
        commands = [record for name, record in processes.read(layout.run).items() if name not in controlplane.ORDER]
        ran += [record.name for record in commands if processes.alive(record)]
        processes.stop(commands)
    with controlplane.locked(FOLDER):
        for layout in clusters:
            ran += controlplane.stop(layout)
        for path in FOLDER.iterdir():
            if path == HOSTS:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
        if HOSTS.exists():
            say("Simulated hosts are left as they are; they go with: make hosts-down")
        else:
            shutil.rmtree(FOLDER)
    names = ", ".join(sorted(set(ran))) or "none ran"
    say(f"Ended {len(ran)} processes ({names}). Removed what was in {_shown(FOLDER)}.")
    return 0


def tools() -> int:
    """Make sure that every program is there and say where."""
    there = toolchain.ensure(say)
    for name, program in (("etcd", there.etcd), ("kwok", there.kwok), ("pulumi", there.pulumi)):
        say(f"{name:20} {program}")
    say(f"{'kubernetes':20} {there.kube['apiserver'][0]} ({there.kubernetes_version})")
    say(f"{'kubernetes provider':20} {there.provider or 'as Pulumi finds it on PATH'}")
    return 0


def status() -> int:
    """Print what runs; 0 when all of it does, 1 otherwise."""
    layouts = [cluster(path.parent.name) for path in sorted(FOLDER.glob("clusters/*/state.json"))]
    if not layouts:
        say("There is no twin in this checkout. Start one: make up   (or: python -m twin up)")
        return 1
    complete = [_print_cluster(layout) for layout in layouts]
    if not all(complete):
        say("Not all runs; the same `make up` as before repairs it.")
    return 0 if all(complete) else 1


def _print_cluster(layout: Layout) -> bool:
    running, port = controlplane.running(layout), controlplane.state(layout)["ports"]
    say(f"stack {layout.root.name}")
    for name in controlplane.ORDER:
        where = f"127.0.0.1:{port[name]}" if name in port else ""
        say(f"  {name:20} {('pid ' + str(running[name])) if name in running else 'does not run':14} {where}".rstrip())
    if "apiserver" in running:
        api = client.CoreV1Api(controlplane.api_client(layout))
        for node in api.list_node(_request_timeout=10).items:
            notes = node.metadata.annotations or {}
            gpus = f"{notes[nodes.GPUS]} x {notes.get(nodes.MODEL)}" if nodes.GPUS in notes else "no GPU"
            shows = {k: v for k, v in (node.status.allocatable or {}).items() if k.startswith("nvidia.com/")}
            offers = ", ".join(f"{key}: {value}" for key, value in sorted(shows.items())) or "offers none"
            say(f"  node {node.metadata.name:36} {gpus:24} {offers}")
    return set(running) >= set(controlplane.ORDER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 done, 1 failed (with words), 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m twin", description="A simulated GPU fleet on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start it, or repair it, and deploy a stack")
    starting.add_argument("-s", "--stack", default="local", help="the stack to deploy (default: local)")
    starting.add_argument("--no-deploy", action="store_true", help="control plane and nodes only")
    commands.add_parser("down", help="end it and remove everything that it made")
    commands.add_parser("status", help="what runs")
    commands.add_parser("tools", help="build the programs that are missing, so that nothing later has to wait for it")
    given = parser.parse_args(arguments)
    try:
        if given.command == "up":
            return up(given.stack, not given.no_deploy)
        return {"down": down, "status": status, "tools": tools}[given.command]()
    except KeyboardInterrupt:
        print("\ntwin: interrupted; run the same command again, or: make down", file=sys.stderr, flush=True)
    except client.ApiException as error:
        print(f"twin: the API server answered {error.status} {error.reason}", file=sys.stderr, flush=True)
    except HTTPError as error:
        print(f"twin: the API server cannot be reached: {error}", file=sys.stderr, flush=True)
    except (TwinError, AssertionError, OSError) as error:
        print(f"twin: {error}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
