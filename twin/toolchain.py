"""The programs of a twin: found where they already are, else in the user's cache, else built from Go modules.

Order: PATH (for Kubernetes also KUBEBUILDER_ASSETS, for the provider also Pulumi's plugin cache), then
``${XDG_CACHE_HOME:-~/.cache}/gpufleet/tools/<tool>/<version>/<binary>``, then a build of ``twin/tools/<tool>`` into
that cache. The table is ``twin/tools.yaml``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import yaml

from twin.errors import TwinError

HERE = Path(__file__).parent
TABLE = HERE / "tools.yaml"
KUBE_PARTS = ("apiserver", "controller-manager", "scheduler")
BUILD_SECONDS = 5400.0
Say = Callable[[str], None]
Environment = Mapping[str, str]


@dataclass(frozen=True)
class Recipe:
    """One row of the table."""

    tool: str
    version: str
    accept: str
    binary: str
    package: str
    minutes: int
    source: str
    ldflags: str = ""
    tags: str = ""
    cgo: bool = False

    @property
    def module(self) -> Path:
        """The folder of the Go module that pins the build."""
        return HERE / "tools" / self.tool


@dataclass(frozen=True)
class Tools:
    """Where each program is. ``provider`` is None when Pulumi finds the Kubernetes provider by itself (on PATH)."""

    etcd: Path
    kube: Mapping[str, tuple[str, ...]]  # part ("apiserver", ...) -> the words of the command
    kwok: Path
    pulumi: Path
    provider: Path | None
    kubernetes_version: str


def load(table: Path = TABLE) -> tuple[dict[str, Recipe], str]:
    """Return the recipes by tool, and the lowest Go version that builds them."""
    data = yaml.safe_load(table.read_text())
    return {tool: Recipe(tool=tool, **row) for tool, row in data["tools"].items()}, str(data["go"])


def cache_root(env: Environment) -> Path:
    """Return the per-user cache folder of this project (not created)."""
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "gpufleet"


def cached(recipe: Recipe, env: Environment) -> Path:
    """Return where the built program of a recipe belongs."""
    return cache_root(env) / "tools" / recipe.tool / recipe.version / recipe.binary


def number(text: str) -> tuple[int, ...]:
    """Return the first dotted version in a text as numbers, () when there is none."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _version_of(program: Path, *words: str) -> tuple[int, ...]:
    try:
        shown = subprocess.run([program, *words], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return number(shown.stdout + shown.stderr)


def outside_twins(path: str) -> str:
    """Return a PATH without the ``bin/`` of twins: a shell that uses one finds links there to what is looked for."""
    return os.pathsep.join(p for p in path.split(os.pathsep) if Path(p).parent.name != ".twin")


def _on_path(binary: str, recipe: Recipe, env: Environment, version_words: tuple[str, ...]) -> Path | None:
    places = os.pathsep.join(p for p in (env.get("KUBEBUILDER_ASSETS", ""), env.get("PATH", "")) if p)
    found = shutil.which(binary, path=outside_twins(places))
    if found and _version_of(Path(found), *version_words) >= number(recipe.accept):
        return Path(found)
    return None


def _separate_kube(recipe: Recipe, env: Environment) -> tuple[dict[str, tuple[str, ...]], str] | None:
    """Return the three commands when all are there in one accepted minor version: mixed versions are not supported."""
    programs = {part: _on_path(f"kube-{part}", recipe, env, ("--version",)) for part in KUBE_PARTS}
    if not all(programs.values()):
        return None
    versions = {_version_of(program, "--version") for program in programs.values() if program}
    if len({version[:2] for version in versions}) != 1:
        return None
    return {part: (str(program),) for part, program in programs.items()}, ".".join(map(str, min(versions)))


def sdk_version() -> str:
    """Return the version of the Kubernetes SDK for Python: under it Pulumi looks for the provider."""
    return metadata.version("pulumi_kubernetes")


def _installed_provider(env: Environment) -> Path | None:
    home = env.get("PULUMI_HOME") or str(Path(env.get("HOME", "~")).expanduser() / ".pulumi")
    program = Path(home) / "plugins" / f"resource-kubernetes-v{sdk_version()}" / "pulumi-resource-kubernetes"
    # A twin's home holds a link to the program: the link itself is laid out anew, or gone with the other twin.
    return program.resolve() if os.access(program, os.X_OK) else None


def ensure(say: Say, env: Environment = os.environ, table: Path = TABLE) -> Tools:
    """Return where all programs are; build those that are missing. Raises TwinError when that cannot be done."""
    recipes, go = load(table)
    etcd = _on_path("etcd", recipes["etcd"], env, ("--version",))
    separate = _separate_kube(recipes["kubernetes"], env)
    kwok = _on_path("kwok", recipes["kwok"], env, ("--version",))
    pulumi = _on_path("pulumi", recipes["pulumi"], env, ("version",))
    provider = _installed_provider(env)
    provider_by_path = provider is None and shutil.which("pulumi-resource-kubernetes", path=env.get("PATH", ""))
    wanted = [
        tool
        for tool, there in (
            ("etcd", etcd), ("kubernetes", separate), ("kwok", kwok), ("pulumi", pulumi),
            ("pulumi-resource-kubernetes", provider or provider_by_path),
        )
        if not there
    ]  # fmt: skip
    built = build([recipes[tool] for tool in wanted], go, say, env)
    kube: Mapping[str, tuple[str, ...]]
    if separate:
        kube, version = separate
    else:
        kube = {part: (str(built["kubernetes"]), part) for part in KUBE_PARTS}
        version = recipes["kubernetes"].version
    return Tools(
        etcd=etcd or built["etcd"],
        kube=kube,
        kwok=kwok or built["kwok"],
        pulumi=pulumi or built["pulumi"],
        provider=provider or built.get("pulumi-resource-kubernetes"),
        kubernetes_version=version,
    )


def build(recipes: Iterable[Recipe], go: str, say: Say, env: Environment = os.environ) -> dict[str, Path]:
    """Return the cached program of each recipe, building those that the cache lacks. Raises TwinError."""
    recipes = list(recipes)
    missing = [recipe for recipe in recipes if not cached(recipe, env).exists()]
    if missing:
        check_builders(missing, go, env)
        minutes = sum(recipe.minutes for recipe in missing)
        names = ", ".join(f"{recipe.tool} {recipe.version}" for recipe in missing)
        say(f"Building what this machine lacks: {names}.")
        say(f"Once per user and version, about {minutes} minutes on two cores; kept in {cache_root(env) / 'tools'}.")
    for recipe in missing:
        _build(recipe, say, env)
    return {recipe.tool: cached(recipe, env) for recipe in recipes}


def check_builders(missing: list[Recipe], go: str, env: Environment) -> None:
    """Raise TwinError that names what to install when Go or a C compiler is missing."""
    names = "\n".join(f"  {recipe.tool} {recipe.version} ({recipe.source})" for recipe in missing)
    lacks = []
    path = env.get("PATH", "")
    program = shutil.which("go", path=path)
    if not program:
        lacks.append(f"Go {go} or newer (https://go.dev/dl/, or your package manager; `go` has to be on PATH)")
    elif (there := _version_of(Path(program), "version")) < number(go):
        lacks.append(f"Go {go} or newer (found {'.'.join(map(str, there)) or 'an unknown version'} at {program})")
    if any(recipe.cgo for recipe in missing) and not any(shutil.which(c, path=path) for c in ("cc", "gcc", "clang")):
        lacks.append("a C compiler (Debian and Ubuntu: apt-get install gcc libc6-dev)")
    if lacks:
        raise TwinError(
            "These programs are not on this machine and cannot be built:\n"
            f"{names}\nPlease install:\n" + "\n".join(f"  {lack}" for lack in lacks) + "\n"
            "or put the programs themselves on PATH. Then run the same command again."
        )


def _build(recipe: Recipe, say: Say, env: Environment) -> None:
    """Build one program under a lock and put it in place in one step, so that nobody ever sees half a file."""
    target = cached(recipe, env)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / ".lock", lambda: say(f"  {recipe.tool}: another build of it runs; waiting for that")):
        if target.exists():
            return
        unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
        command = ["go", "build", "-v", "-mod=readonly", "-trimpath", "-ldflags", f"-s -w {recipe.ldflags}".strip()]
        if recipe.tags:
            command += ["-tags", recipe.tags]
        command += ["-o", str(unfinished), recipe.package]
        own = {**env, "GOWORK": "off", "CGO_ENABLED": "1" if recipe.cgo else "0"}
        try:
            seconds = _run_build(recipe, command, own, say)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        say(f"  {recipe.tool} {recipe.version}: built in {_clock(seconds)}, {target.stat().st_size >> 20} MiB")


def _run_build(recipe: Recipe, command: list[str], env: Environment, say: Say) -> float:
    start = time.monotonic()
    log = cached(recipe, env).parent / "build.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=recipe.module, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    step = 15.0
    say(f"  {recipe.tool} {recipe.version}: building (log: {log})")
    try:
        while True:
            try:
                code = process.wait(timeout=step)
                break
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - start
                lines = log.read_text(errors="replace").splitlines()
                fetched = sum(line.startswith("go: downloading") for line in lines)
                built = len(lines) - fetched
                say(f"  {recipe.tool}: {_clock(seconds)}, {fetched} modules fetched, {built} packages built")
                if seconds > BUILD_SECONDS:
                    raise TwinError(f"{recipe.tool}: still not built after {_clock(seconds)}; see {log}") from None
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if code != 0:
        last = "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-12:])
        raise TwinError(f"{recipe.tool} {recipe.version} could not be built (go build ended with {code}):\n{last}")
    return time.monotonic() - start


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"


@contextlib.contextmanager
def _locked(path: Path, waiting: Callable[[], None], seconds: float = BUILD_SECONDS) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel drops it with the process, so no stale lock can stay."""
    with path.open("w") as lock:
        end = time.monotonic() + seconds
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    waiting()
                    told = True
                if time.monotonic() > end:
                    raise TwinError(f"{path} has been locked for more than {_clock(seconds)}") from None
                time.sleep(0.5)
        yield
