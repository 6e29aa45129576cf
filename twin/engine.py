"""A whole twin in one object, and projects to run in it: what the tests use, and `python -m twin up` too."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpufleet.stackfile.project import project as find_project
from kubernetes import client as kube

from twin import controlplane, nodes, pulumi_home, toolchain
from twin.controlplane import CHECKOUT, Layout
from twin.errors import TwinError
from twin.toolchain import Say

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """How a command ended. ``seconds`` is wall time."""

    args: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str
    seconds: float

    def require(self) -> Result:
        """Return the result itself. Raises AssertionError with all output when the command failed."""
        if self.rc != 0:
            words = " ".join(self.args)
            raise AssertionError(f"{words} ended with {self.rc}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}")
        return self


class Twin:
    """A running control plane with simulated nodes, and the commands that work on it."""

    def __init__(self, layout: Layout, home: Path | None = None) -> None:
        """``home`` holds Pulumi, its plugins and the stacks' state; by itself a twin keeps them in its own folder."""
        self.layout = layout
        self.home = home or layout.root
        self._stacks: set[tuple[Path, str]] = set()

    @classmethod
    def start(cls, folder: Path, say: Say = print, *, die_with_parent: bool = True) -> Twin:
        """Bring up a twin in a folder of its own, or reuse what runs there. Raises TwinError.

        With ``die_with_parent`` its processes end with the process (strictly: the thread) that started them, even
        when that is killed; for tests.
        """
        layout = Layout(folder.resolve())
        tools = toolchain.ensure(say)
        with controlplane.locked(layout.root):
            controlplane.ensure(layout, tools, say, die_with_parent=die_with_parent)
            pulumi_home.lay(layout.root, tools)
        return cls(layout)

    def stop(self) -> None:
        """End all its processes and remove its folder."""
        with controlplane.locked(self.layout.root):
            controlplane.stop(self.layout)
            shutil.rmtree(self.layout.root)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; its context is ``twin``."""
        return self.layout.kubeconfig

    def client(self) -> kube.ApiClient:
        """Return an API client for the twin's API server."""
        return controlplane.api_client(self.layout)

    @property
    def core(self) -> kube.CoreV1Api:
        """The core/v1 API: nodes, pods, namespaces, ConfigMaps."""
        return kube.CoreV1Api(self.client())

    def env(self, project: Path | None = None) -> dict[str, str]:
        """Return a whole environment for commands of a project; without one, for the checkout's own stacks.

        The state of a project of tests is in its own folder, that of the checkout's stacks in the twin's home.
        """
        own = project is not None and project.resolve() != CHECKOUT
        state = (project.resolve() if project is not None and own else self.home) / "state"
        state.mkdir(parents=True, exist_ok=True)
        return {**os.environ, **pulumi_home.variables(self.home, self.kubeconfig, state)}

    def run(self, command: Sequence[str | Path], project: Path, timeout: float = 300.0, **env: str) -> Result:
        """Run any command in a project's folder with its environment; ``env`` adds to it.

        Raises AssertionError when it still runs after ``timeout`` seconds.
        """
        words = tuple(str(word) for word in command)
        start = time.monotonic()
        process = subprocess.Popen(
            words, cwd=project, env={**self.env(project), **env}, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)  # lets Pulumi write its state
            try:
                stdout, stderr = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                stdout, stderr = process.communicate()
            raise AssertionError(
                f"{' '.join(words)}: still running after {timeout:.0f} s\n{stdout}\n{stderr}"
            ) from None
        return Result(words, process.returncode, stdout, stderr, time.monotonic() - start)

    def pulumi(self, project: Path, stack: str, *args: str, timeout: float = 300.0, **env: str) -> Result:
        """Run ``pulumi ARGS`` on a stack of a project, making the stack first where there is none yet.

        ``up``, ``destroy`` and ``refresh`` get ``--yes --skip-preview`` where they do not say otherwise. The stack file
        stays as it was, unless the command changed more in it than the salt that Pulumi adds by itself.
        """
        self.init_stack(project, stack)
        command = ["pulumi", *args, "--stack", stack, "--non-interactive", "--color", "never"]
        if args[:1] and args[0] in ("up", "destroy", "refresh") and not {"--yes", "--preview-only"} & set(args):
            command += ["--yes", "--skip-preview"]
        with pulumi_home.salt_kept_out(stack_file(project, stack)):
            return self.run(command, project, timeout, **env)

    def init_stack(self, project: Path, stack: str) -> bool:
        """Make the stack where it does not exist; the stack file stays as it was, byte for byte.

        Returns whether it was made.
        """
        key = (project.resolve(), stack)
        if key in self._stacks:
            return False
        with pulumi_home.salt_kept_out(stack_file(project, stack)):
            made = self.run(["pulumi", "stack", "init", stack, "--no-select", "--non-interactive"], project, 60)
        if made.rc != 0 and "already exists" not in made.stderr + made.stdout:
            made.require()
        self._stacks.add(key)
        return made.rc == 0

    def gpufleet(self, project: Path, *args: str, timeout: float = 180.0, **env: str) -> Result:
        """Run the ``gpufleet`` command in a project's folder."""
        return self.run([Path(sys.executable).parent / "gpufleet", *args], project, timeout, **env)

    def add_node(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str] = (),
        gpus: int = 0,
        model: str = "",
        *,
        ready_seconds: float = 30.0,
    ) -> None:
        """Add a simulated node and wait until it is Ready. Taints as ``key=value:Effect``."""
        nodes.apply(self.core, [nodes.Node(name, dict(labels or {}), tuple(taints), gpus, model)])
        self.wait(lambda: self.node_ready(name), ready_seconds, f"node {name} is Ready")

    def node_ready(self, name: str) -> bool:
        """Say whether the node is Ready and free of the taint that new nodes begin with."""
        node = self.core.read_node(name)
        conditions = {item.type: item.status for item in node.status.conditions or []}
        unready = any(item.key == "node.kubernetes.io/not-ready" for item in node.spec.taints or [])
        return conditions.get("Ready") == "True" and not unready

    def remove_node(self, name: str) -> None:
        """Remove a node and the pods on it."""
        nodes.remove(self.core, [name])

    def allocatable(self, name: str, resource: str = "nvidia.com/gpu") -> int:
        """Return how much of a resource the node offers; 0 where it does not know the resource."""
        return int((self.core.read_node(name).status.allocatable or {}).get(resource, "0"))

    def wait(self, predicate: Callable[[], T], seconds: float, what: str) -> T:
        """Return predicate()'s value once it is true. Raises AssertionError naming ``what`` after ``seconds``.

        An answer "not found" from the API counts as "not yet".
        """
        return wait(predicate, seconds, what)


def wait(predicate: Callable[[], T], seconds: float, what: str) -> T:
    """See `Twin.wait`."""
    end, pause, last = time.monotonic() + seconds, 0.05, ""
    while True:
        try:
            if value := predicate():
                return value
            last = f"last value: {value!r}"
        except kube.ApiException as error:
            if error.status not in (404, 409, 429, 500, 503, 504):
                raise
            last = f"last answer: {error.status} {error.reason}"
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what} ({last})")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5)


def make_project(folder: Path, stacks: Mapping[str, str]) -> Path:
    """Lay out a Pulumi project in a folder: the checkout's program, and stack files of its own (name -> YAML text)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("__main__.py", "infra", "Pulumi.yaml", ".venv"):
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(CHECKOUT / name)
    (folder / "stacks").mkdir(exist_ok=True)
    for stack, text in stacks.items():
        write_stack(folder, stack, text)
    return folder


def write_stack(project: Path, stack: str, text: str) -> Path:
    """Write a stack file of a project (again); return its path."""
    path = stack_file(project, stack)
    path.write_text(text)
    return path


def stack_file(project: Path, stack: str) -> Path:
    """Return where a stack's file belongs."""
    return find_project(project).stack_file(stack)


__all__ = ["Result", "Twin", "TwinError", "make_project", "wait", "write_stack"]
