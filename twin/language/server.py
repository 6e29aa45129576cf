"""The Python language host: a gRPC server that the Pulumi engine starts and asks to run programs.

Test equipment. A released Pulumi CLI brings ``pulumi-language-python``, and where that is found it is used; this one
takes its place only beside a CLI that was built from modules. It answers what ``pulumi up``, ``preview``, ``refresh``,
``destroy``, ``about`` and Python policy packs need; installing dependencies and generating code are not among it.

The protocol is the engine's: the address of the engine is an argument (flags may stand before it), the port is the
first line on stdout, what a program prints afterwards reaches the user through this process's own stdout and stderr.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

EXECUTOR = Path(__file__).with_name("executor.py")
# The executor ends with this when it has already told the user what is wrong; the engine then adds nothing.
ALREADY_REPORTED = 32
MESSAGE_BYTES = 400 * 1024 * 1024


def interpreter(root: str, options: Any) -> str:
    """Return the Python that runs a program: of the project's ``virtualenv`` option, else the one that runs this."""
    venv = options["virtualenv"] if options is not None and "virtualenv" in options else ""
    if not venv:
        return sys.executable
    return str(Path(root, str(venv)) / "bin" / "python")  # an absolute virtualenv replaces root


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs programs and policy packs in child processes and ends them with itself."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.engine = request.engine_address or self.engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802
        # The engine would fetch them beforehand. A twin has what it needs, and resources name their own plugins.
        return language_pb2.GetRequiredPackagesResponse()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPluginsResponse()

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.RuntimeOptionsResponse()

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802
        python = interpreter(request.info.root_directory, request.info.options)
        return language_pb2.AboutResponse(executable=python, version=sys.version.split()[0])

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetProgramDependenciesResponse()

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        python = interpreter(request.info.root_directory, request.info.options)
        if not os.access(python, os.X_OK):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"no Python at {python}; make the virtual environment")
        yield from ()

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.end_children()
        return empty_pb2.Empty()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802
        python = interpreter(request.info.root_directory, request.info.options)
        given = {
            "monitor": request.monitor_address,
            "engine": self.engine,
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization,
            "root_directory": request.info.root_directory,
            "dry_run": request.dryRun,
            "parallel": request.parallel,
        }
        program = Path(
            request.info.program_directory or request.pwd, request.info.entry_point or request.program or "."
        )
        command = [python, "-u", str(EXECUTOR), json.dumps(given), str(program), *request.args]
        env = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        try:
            child = self._start(command, cwd=request.pwd or None, env=env)
        except OSError as error:
            return language_pb2.RunResponse(error=f"{python} could not be started: {error.strerror}")
        code = self._finish(child)
        if code == 0:
            return language_pb2.RunResponse()
        if code == ALREADY_REPORTED:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program ended with exit code {code}")

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        """Run a policy pack, or another plugin written in Python, and pass on what it prints until it ends."""
        python = interpreter(request.info.root_directory, request.info.options)
        folder = request.info.program_directory or request.pwd
        if request.kind == "analyzer":
            command = [python, "-u", "-m", "pulumi.policy", *request.args, folder]
        else:
            command = [python, "-u", folder, *request.args]
        env = {**os.environ, **dict(entry.split("=", 1) for entry in request.env)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = self._start(command, cwd=request.pwd or None, env=env, **pipes)
        lines: queue.Queue[Any] = queue.Queue()

        def pump(kind: str) -> None:
            for chunk in iter(lambda: getattr(child, kind).read1(65536), b""):
                lines.put(language_pb2.RunPluginResponse(**{kind: chunk}))
            lines.put(None)

        for kind in pipes:
            threading.Thread(target=pump, args=(kind,), daemon=True).start()
        context.add_callback(child.terminate)
        open_pipes = len(pipes)
        while open_pipes:
            item = lines.get()
            if item is None:
                open_pipes -= 1
            else:
                yield item
        yield language_pb2.RunPluginResponse(exitcode=self._finish(child))

    def _start(self, command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **how)
        with self._lock:
            self._children.add(child)
        return child

    def _finish(self, child: subprocess.Popen[bytes]) -> int:
        code = child.wait()
        with self._lock:
            self._children.discard(child)
        return code

    def end_children(self) -> None:
        """Ask every program that still runs to end."""
        with self._lock:
            for child in self._children:
                child.terminate()


def _follow_parent(parent: int, leave: Callable[[], None]) -> None:
    """Leave when the engine is gone without having said so (it was killed)."""
    while os.getppid() == parent:
        time.sleep(1)
    leave()


def main(arguments: list[str]) -> None:
    """Serve until told to stop; the first line on stdout is the port."""
    engine = next((word for word in reversed(arguments) if not word.startswith("-")), "")
    limits = [("grpc.max_receive_message_length", MESSAGE_BYTES), ("grpc.max_send_message_length", MESSAGE_BYTES)]
    server = grpc.server(futures.ThreadPoolExecutor(16), options=limits)
    host = LanguageHost(engine)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def leave(*_: Any) -> None:
        host.end_children()
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    threading.Thread(target=_follow_parent, args=(os.getppid(), leave), daemon=True).start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1:])
