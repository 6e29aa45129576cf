"""``python -m twin up | down | status``: a fleet on this machine, from the stack file to the nodes.

Everything that is not the product itself lives in ``.twin/`` of the checkout and goes with it.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kubernetes import client

from twin import controlplane, nodes, processes, pulumi_home, toolchain
from twin.controlplane import CHECKOUT, Layout
from twin.engine import Twin, stack_file, wait
from twin.errors import TwinError

FOLDER = CHECKOUT / ".twin"


def say(text: str) -> None:
    """Print at once: what follows may take minutes."""
    print(text, flush=True)


def up(stack: str, deploy: bool) -> int:
    """Bring everything up and, unless told otherwise, deploy the stack. Raises TwinError."""
    file = stack_file(CHECKOUT, stack)
    if not file.exists():
        there = sorted(path.stem.removeprefix("Pulumi.") for path in file.parent.glob("Pulumi.*.yaml"))
        raise TwinError(f"there is no stack {stack!r}: no {file.relative_to(CHECKOUT)}. Stacks: {', '.join(there)}")
    config = nodes.read_config(file)
    layout = Layout(FOLDER)
    start = time.monotonic()
    tools = toolchain.ensure(say)
    with controlplane.locked(layout, waiting=lambda: say("Another command works on this twin; waiting for it.")):
        started = controlplane.ensure(layout, tools, say)
        controlplane.add_contexts(layout, nodes.contexts(config))
        pulumi_home.lay(layout, tools)
        twin = Twin(layout, tools)
        environment = twin.env()
        write_environment(layout, environment)
        say(
            f"Control plane: {'started ' + ', '.join(started) if started else 'runs already'}"
            f" ({time.monotonic() - start:.0f} s)."
        )
        _simulate(twin, stack, config)
        if not deploy:
            say(f"Not deployed, as you said. To use it: source {_shown(layout.root / 'env')}")
            return 0
        return _deploy(twin, stack, environment)


def _simulate(twin: Twin, stack: str, config: dict[str, object]) -> None:
    declared = nodes.declared(config, stack)
    nodes.reconcile(twin.core, stack, declared)
    for node in declared:
        wait(lambda name=node.name: twin.node_ready(name), 60, f"node {node.name} is Ready")
    if declared:
        gpus = sum(node.gpus for node in declared)
        say(f"Nodes: {', '.join(node.name for node in declared)} ({gpus} GPUs in all; simulated).")


def _deploy(twin: Twin, stack: str, environment: dict[str, str]) -> int:
    layout = twin.layout
    for lock in pulumi_home.drop_dead_locks(layout.root / "state"):
        say(f"A killed pulumi had left a lock ({lock.name}); removed.")
    twin.init_stack(CHECKOUT, stack)
    say(f"\npulumi up --stack {stack}")
    words = [layout.root / "bin" / "pulumi", "up", "--yes", "--skip-preview", "--stack", stack]
    words += ["--non-interactive", "--suppress-progress"]
    with pulumi_home.salt_kept_out(stack_file(CHECKOUT, stack)):
        code = processes.foreground("pulumi", words, run_dir=layout.run, env=environment, cwd=CHECKOUT)
    if code != 0:
        raise TwinError(
            f"pulumi up ended with {code}; what it said is above. The control plane goes on running.\n"
            f"Change the stack file and run the same command again, or end everything: python -m twin down"
        )
    say(f"\ngpufleet status --stack {stack} --wait 120")
    words = [Path(sys.executable).parent / "gpufleet", "status", "-s", stack, "--wait", "120"]
    code = processes.foreground("gpufleet", words, run_dir=layout.run, env=environment, cwd=CHECKOUT)
    say("\n" + usage(layout, stack))
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


def write_environment(layout: Layout, environment: dict[str, str]) -> None:
    """Write ``env``, a file for a shell to source."""
    wanted = pulumi_home.variables(layout, layout.root / "state", {})
    lines = ["# source this file: pulumi, gpufleet and Kubernetes clients of this shell then work on the twin"]
    for name in wanted:
        if name == "PATH":
            ours = ":".join(shlex.quote(part) for part in wanted[name].split(":") if part)
            lines.append(f'export PATH={ours}:"$PATH"')
        else:
            lines.append(f"export {name}={shlex.quote(environment[name])}")
    controlplane.write_private(layout.root / "env", "\n".join(lines) + "\n")


def down() -> int:
    """End every process that was started and remove ``.twin``; the cache of built programs stays."""
    layout = Layout(FOLDER)
    if not layout.root.exists():
        say("Nothing to do: there is no twin in this checkout.")
        return 0
    ran = controlplane.stop_commands(layout)
    with controlplane.locked(layout):
        ran += controlplane.stop(layout)
        shutil.rmtree(layout.root)
    say(f"Ended: {', '.join(ran) or 'nothing ran'}. Removed {_shown(layout.root)}.")
    return 0


def tools() -> int:
    """Make sure that every program is there and say where."""
    there = toolchain.ensure(say)
    for name, program in (("etcd", there.etcd), ("kwok", there.kwok), ("pulumi", there.pulumi)):
        say(f"{name:20} {program}")
    say(f"{'kubernetes':20} {' '.join(there.kube['apiserver'])} ({there.kubernetes_version})")
    say(f"{'kubernetes provider':20} {there.provider or 'as Pulumi finds it on PATH'}")
    return 0


def status() -> int:
    """Print what runs; 0 when all does, 1 otherwise."""
    layout = Layout(FOLDER)
    if not layout.state.exists():
        say("There is no twin in this checkout. Start one: make up   (or: python -m twin up)")
        return 1
    running, port = controlplane.running(layout), controlplane.state(layout)["ports"]
    complete = True
    for name in controlplane.ORDER:
        where = f"127.0.0.1:{port[name]}" if name in port else ""
        complete &= name in running
        say(f"{name:20} {('pid ' + str(running[name])) if name in running else 'does not run':14} {where}".rstrip())
    if "apiserver" in running:
        api = client.CoreV1Api(controlplane.api_client(layout))
        for node in api.list_node(_request_timeout=10).items:
            notes = node.metadata.annotations or {}
            gpus = f"{notes.get(nodes.GPUS, '0')} x {notes.get(nodes.MODEL, '-')}"
            shows = {k: v for k, v in (node.status.allocatable or {}).items() if k.startswith("nvidia.com/")}
            offers = ", ".join(f"{key}: {value}" for key, value in sorted(shows.items())) or "no GPU resource yet"
            say(f"node {node.metadata.name:24} {gpus:28} {offers}")
    if not complete:
        say("Not all runs; `make up` repairs it.")
    return 0 if complete else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 done, 1 failed (with words), 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m twin", description="A simulated GPU fleet on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start it, or repair it, and deploy a stack")
    starting.add_argument("-s", "--stack", default="local", help="the stack to deploy (default: local)")
    starting.add_argument("--no-deploy", action="store_true", help="control plane and nodes only")
    commands.add_parser("tools", help="build the programs that are missing, so that nothing later has to wait for it")
    commands.add_parser("down", help="end it and remove everything that it made")
    commands.add_parser("status", help="what runs")
    given = parser.parse_args(arguments)
    try:
        if given.command == "up":
            return up(given.stack, not given.no_deploy)
        return {"down": down, "status": status, "tools": tools}[given.command]()
    except (TwinError, AssertionError) as error:
        print(f"twin: {error}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\ntwin: interrupted; run the same command again, or: python -m twin down", file=sys.stderr, flush=True)
    except client.ApiException as error:
        print(f"twin: the API server answered {error.status} {error.reason}", file=sys.stderr, flush=True)
    except OSError as error:
        print(f"twin: {error}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
