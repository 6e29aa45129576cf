"""The control plane of a twin: etcd, API server, controller manager, scheduler, kwok and the advertiser, on loopback.

Everything lives in one folder. ``ensure`` brings it to "all runs and answers" from any state: nothing there, all
there, or half of it dead.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from twin import certs, ports, processes
from twin.errors import TwinError
from twin.toolchain import Say, Tools

CHECKOUT = Path(__file__).resolve().parent.parent
STAGES = Path(__file__).with_name("kwok-stages.yaml")
SERVICES, SERVICE_ADDRESS, PODS = "10.0.0.0/24", "10.0.0.1", "10.244.0.0/16"
PORTS = ("etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler", "kwok")
ORDER = ("etcd", "apiserver", "controller-manager", "scheduler", "kwok", "advertiser")
READY_SECONDS = 120.0
# One probe; long enough for an API server that is busy.
PROBE_SECONDS = 5.0
# A part that answers nobody is taken to run when it has lived this long: a program that cannot start ends sooner.
SETTLED_SECONDS = 1.5


@dataclass(frozen=True)
class Layout:
    """Where the files of one twin are; ``root`` is an absolute folder that the twin owns wholly."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    def log(self, name: str) -> Path:
        """Return the log file of a part."""
        return self.logs / f"{name}.log"


@dataclass(frozen=True)
class Part:
    """One process: its command, and the address that answers 200 once it is ready (None: it answers nobody)."""

    name: str
    command: tuple[str, ...]
    probe: str | None


def parts(layout: Layout, tools: Tools, port: Mapping[str, int]) -> dict[str, Part]:
    """Return the processes of a twin by name. Pure."""
    pki, kubeconfig = layout.pki, layout.kubeconfig
    etcd, peer = f"http://127.0.0.1:{port['etcd']}", f"http://127.0.0.1:{port['etcd-peer']}"
    serving = (
        f"--tls-cert-file={pki}/server.crt",
        f"--tls-private-key-file={pki}/server.key",
        "--bind-address=127.0.0.1",
    )
    client = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--profiling=false")
    commands: dict[str, tuple[tuple[str, ...], str | None]] = {
        "etcd": (
            (
                str(tools.etcd),
                f"--data-dir={layout.root}/etcd",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",  # a twin need not survive a power cut; a shared disk's fsync costs seconds
            ),
            f"{etcd}/health",
        ),
        "apiserver": (
            (
                *tools.kube["apiserver"],
                f"--etcd-servers={etcd}",
                f"--secure-port={port['apiserver']}",
                *serving,
                "--advertise-address=127.0.0.1",  # else it looks for a default route
                "--endpoint-reconciler-type=none",  # loopback is refused in Endpoints
                f"--service-cluster-ip-range={SERVICES}",
                f"--client-ca-file={pki}/ca.crt",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={pki}/sa.pub",
                f"--service-account-signing-key-file={pki}/sa.key",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",  # beside the defaults, as kubeadm and AKS have it
                "--allow-privileged=true",
                "--profiling=false",
            ),
            f"https://127.0.0.1:{port['apiserver']}/readyz",
        ),
        "controller-manager": (
            (
                *tools.kube["controller-manager"],
                *client,
                *serving,
                f"--secure-port={port['controller-manager']}",
                f"--service-account-private-key-file={pki}/sa.key",
                f"--root-ca-file={pki}/ca.crt",
                "--use-service-account-credentials=true",
            ),
            f"https://127.0.0.1:{port['controller-manager']}/healthz",
        ),
        "scheduler": (
            (*tools.kube["scheduler"], *client, *serving, f"--secure-port={port['scheduler']}"),
            f"https://127.0.0.1:{port['scheduler']}/healthz",
        ),
        "kwok": (
            (
                str(tools.kwok),
                f"--kubeconfig={kubeconfig}",
                f"--config={STAGES}",
                "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                "--node-lease-duration-seconds=40",
                f"--cidr={PODS}",
                f"--server-address=127.0.0.1:{port['kwok']}",
            ),
            f"http://127.0.0.1:{port['kwok']}/healthz",
        ),
        "advertiser": (
            (
                sys.executable,
                "-m",
                "twin.advertiser",
                f"--kubeconfig={kubeconfig}",
                f"--log={layout.log('advertised')}",
            ),
            None,
        ),
    }
    return {name: Part(name, *commands[name]) for name in ORDER}


def _answers(layout: Layout, url: str) -> bool:
    context = None
    if url.startswith("https"):
        context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),  # loopback never goes through a proxy
        *([urllib.request.HTTPSHandler(context=context)] if context else []),
    )
    try:
        with opener.open(url, timeout=PROBE_SECONDS) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def kubeconfig(layout: Layout, port: int, contexts: tuple[str, ...] = ("twin",)) -> str:
    """Return a kubeconfig with everything inside it, so that it can be copied; one context per name, all the same."""

    def data(name: str) -> str:
        return base64.b64encode((layout.pki / name).read_bytes()).decode()

    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": data("ca.crt")}
    user = {"client-certificate-data": data("admin.crt"), "client-key-data": data("admin.key")}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "twin", "cluster": cluster}],
            "users": [{"name": "twin-admin", "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "twin", "user": "twin-admin"}} for name in contexts],
            "current-context": contexts[0],
        },
        sort_keys=False,
    )


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, in one step."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    new.replace(path)


@contextmanager
def locked(folder: Path, seconds: float = 300.0, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Make a twin's folder where there is none, and hold it alone. While one waits it may be removed and made anew."""
    end, told = time.monotonic() + seconds, False
    while True:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = (folder / "lock").open("w")
        except FileNotFoundError:
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    waiting()
                    told = True
                if time.monotonic() > end:
                    raise TwinError(f"another command has been working on {folder} for {seconds:.0f} s") from None
                time.sleep(0.2)
                continue
            if os.path.exists(lock.name) and os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name)):  # noqa: PTH110, PTH116
                yield
                return


def ensure(layout: Layout, tools: Tools, say: Say, *, die_with_parent: bool = False) -> list[str]:
    """Make everything run and answer; return the names of the parts that had to be started.

    Raises TwinError with the last lines of the log of the part that failed.
    """
    for attempt in (1, 2, 3):
        port = _ports(layout, tools, fresh=attempt > 1)
        try:
            return _start_missing(layout, parts(layout, tools, port), say, die_with_parent)
        except TwinError as error:
            if "address already in use" not in str(error) or attempt == 3:
                raise
            say("Somebody took one of the ports meanwhile; once more with others.")
    raise AssertionError("unreachable")


def add_contexts(layout: Layout, names: tuple[str, ...]) -> None:
    """Add contexts by these names to the kubeconfig: a stack file may ask for one of its own cluster's name."""
    there = yaml.safe_load(layout.kubeconfig.read_text())
    have = tuple(item["name"] for item in there["contexts"])
    if set(names) - set(have):
        port = state(layout)["ports"]["apiserver"]
        write_private(layout.kubeconfig, kubeconfig(layout, port, tuple(dict.fromkeys(have + names))))


def _ports(layout: Layout, tools: Tools, *, fresh: bool) -> dict[str, int]:
    """Return the twin's ports; choose them (and stop what listened on the old ones) where they cannot be had."""
    port: dict[str, int] = {}
    if layout.state.exists() and not fresh:
        port = state(layout)["ports"]
        running = {name for name, record in processes.read(layout.run).items() if processes.alive(record)}
        lost = [name for name in PORTS if name.removesuffix("-peer") not in running and not ports.is_free(port[name])]
        if not lost and layout.kubeconfig.exists():
            return port
    stop(layout)
    layout.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    port = ports.choose(PORTS)
    if not (layout.pki / "sa.pub").exists():
        shutil.rmtree(layout.pki, ignore_errors=True)
        certs.create(layout.pki, SERVICE_ADDRESS)
    write_private(layout.kubeconfig, kubeconfig(layout, port["apiserver"]))
    about = {"ports": port, "checkout": str(CHECKOUT), "kubernetes": tools.kubernetes_version}
    write_private(layout.state, json.dumps(about, indent=2) + "\n")
    return port


def _start_missing(layout: Layout, wanted: Mapping[str, Part], say: Say, die_with_parent: bool) -> list[str]:
    started: list[str] = []
    for name, part in wanted.items():
        if name == "advertiser" and not (CHECKOUT / "twin" / "advertiser" / "__main__.py").exists():
            continue
        record = processes.read(layout.run).get(name)
        if record and processes.alive(record):
            if record.command == part.command and _becomes_ready(layout, part, 10.0 if part.probe else 0.0):
                continue
            say(f"{name} runs but does not answer as it should; starting it anew.")
            processes.stop([record])
        log = layout.log(name)
        if log.exists():
            log.replace(log.with_suffix(".log.old"))
        record = processes.spawn(
            name, part.command, run_dir=layout.run, log=log, cwd=CHECKOUT, die_with_parent=die_with_parent
        )
        started.append(name)
        if name in ("apiserver",):  # the others give up when it is not there
            _wait_ready(layout, [wanted["etcd"], part])
    _wait_ready(layout, [part for part in wanted.values() if part.name in started])
    return started


def _becomes_ready(layout: Layout, part: Part, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while part.probe and not _answers(layout, part.probe):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _wait_ready(layout: Layout, awaited: list[Part]) -> None:
    for part in awaited:
        log = layout.log(part.name)

        def runs(name: str = part.name) -> bool:
            record = processes.read(layout.run).get(name)
            return record is not None and processes.alive(record)

        def ready(part: Part = part, runs: Callable[[], bool] = runs) -> bool:
            if part.probe is None:
                return runs() and time.time() - (layout.run / f"{part.name}.json").stat().st_mtime > SETTLED_SECONDS
            return runs() and _answers(layout, part.probe)

        def message(part: Part = part, log: Path = log, runs: Callable[[], bool] = runs) -> str:
            how = "does not answer" if runs() else "ended at once"
            return f"{part.name} {how}; the last lines of {log}:\n{processes.tail(log)}"

        def gone(runs: Callable[[], bool] = runs) -> bool:
            return not runs()

        processes.until(ready, READY_SECONDS, message, gone)


def state(layout: Layout) -> dict[str, Any]:
    """Return what the twin keeps about itself: its ports, the version of Kubernetes."""
    return dict(json.loads(layout.state.read_text()))


def api_client(layout: Layout) -> client.ApiClient:
    """Return an API client for the twin's API server."""
    return config.new_client_from_config(str(layout.kubeconfig), context="twin")


def running(layout: Layout) -> dict[str, int]:
    """Return the pid of each part that runs."""
    return {name: record.pid for name, record in processes.read(layout.run).items() if processes.alive(record)}


def stop(layout: Layout) -> list[str]:
    """End every process of the twin, commands first, then the last started first; say which ran."""
    records = processes.read(layout.run)
    names = [name for name in records if name not in ORDER] + [name for name in reversed(ORDER) if name in records]
    ran = [name for name in names if processes.alive(records[name])]
    processes.stop(records[name] for name in names)
    return ran
