"""Package repositories of the driver and of the container toolkit: address, key, source file, allowed hosts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from gpufleet.catalog import platforms
from gpufleet.catalog.reading import Tables
from gpufleet.hosts import paths
from gpufleet.hosts.context import Context
from gpufleet.hosts.platform import System
from gpufleet.hosts.reading import Key, Reading, Source
from gpufleet.hosts.settings import Settings
from gpufleet.hosts.work import Index, Keyring, Problem

Kind = Literal["cuda", "container-toolkit"]

_FILES = {
    ("cuda", "apt"): (paths.CUDA_SOURCE_APT, paths.CUDA_KEYRING_APT),
    ("cuda", "dnf"): (paths.CUDA_SOURCE_DNF, paths.CUDA_KEYRING_DNF),
    ("container-toolkit", "apt"): (paths.TOOLKIT_SOURCE_APT, paths.TOOLKIT_KEYRING_APT),
    ("container-toolkit", "dnf"): (paths.TOOLKIT_SOURCE_DNF, paths.TOOLKIT_KEYRING_DNF),
}


@dataclass(frozen=True)
class Repository:
    """One repository as it is to be configured. `url` is None when none is known; `why` says why."""

    id: Kind
    manager: str
    sign: str  # part of an address that says that it is the vendor's repository
    url: str | None
    suite: str = "/"
    components: tuple[str, ...] = ()
    key_text: str = ""
    key_url: str | None = None
    fingerprints: tuple[str, ...] = ()
    why: str = ""
    tree: str | None = None
    key_file: str = ""  # name of the key in the repository
    sha1_end: str | None = None  # day from which apt with sqv refuses the key; None: it takes it

    @property
    def source_path(self) -> str:
        """File of the source."""
        return _FILES[self.id, self.manager][0]

    @property
    def keyring_path(self) -> str:
        """File of the key."""
        return _FILES[self.id, self.manager][1]

    @property
    def key_known(self) -> bool:
        """Whether the key can be installed and checked: its text, or an address with a fingerprint."""
        return bool(self.key_text) or bool(self.key_url and self.fingerprints)

    def source_text(self) -> str:
        """Content of the source file."""
        if self.manager == "apt":
            lines = ["Types: deb", f"URIs: {self.url}", f"Suites: {self.suite}"]
            if self.components:
                lines.append(f"Components: {' '.join(self.components)}")
            return "\n".join([*lines, f"Signed-By: {self.keyring_path}"]) + "\n"
        # The toolkit's rpm tree signs its metadata, the CUDA tree its packages (the vendor's own .repo files).
        signed = "gpgcheck=1\nrepo_gpgcheck=0" if self.id == "cuda" else "gpgcheck=0\nrepo_gpgcheck=1"
        return (
            f"[gpufleet-{self.id}]\nname={self.id}\nbaseurl={self.url}\nenabled=1\n{signed}\n"
            f"gpgkey=file://{self.keyring_path}\nmodule_hotfixes=0\n"
        )


@dataclass(frozen=True)
class Own:
    """What somebody says about a repository of their own; what is empty stays the vendor's."""

    url: str = ""
    suite: str = "/"
    components: tuple[str, ...] = ()
    key: str = ""
    key_url: str = ""
    key_fingerprints: tuple[str, ...] = ()


def fill(url: str, system: System) -> str:
    """An address with directory, architecture and machine filled in."""
    distro, _, machine = (system.tree or "").partition("/")
    return (
        url.replace("<directory>", distro)
        .replace("<architecture directory>", machine)
        .replace("<machine>", system.architecture)
        .replace("<architecture>", system.debian_architecture)
    )


def vendor(kind: Kind, system: System) -> Repository:
    """The vendor's own repository for a system."""
    tables = system.tables
    if kind == "cuda":
        sign = platforms.cuda_sign(tables)
        if system.tree is None:
            return Repository("cuda", system.manager, sign, None, why=system.no_tree)
        url = fill(platforms.cuda_url(tables), system)
        found = Repository("cuda", system.manager, sign, url, tree=system.tree)
        return _with_tree_key(_with_vendor_key(found, system.tree.partition("/")[0], tables))
    row = next(row for row in platforms.toolkit_repositories(tables) if row.manager == system.manager)
    return Repository(
        "container-toolkit", system.manager, row.sign, fill(row.url, system), suite=row.suite or "/",
        key_url=row.key, fingerprints=(platforms.toolkit_key(tables),),
    )  # fmt: skip


def owned(found: Repository, own: Own, system: System) -> Repository:
    """The repository with what somebody says about it. A mirror that copies the vendor's tree has its key as well."""
    if own.url:
        found = replace(found, url=fill(own.url, system), why="", suite=own.suite, components=own.components)
        if found.id == "cuda":
            found = _with_vendor_key(found, _known_directory(found, system.tables), system.tables)
    if found.url and not found.url.endswith("/") and found.manager == "apt" and found.suite == "/":
        found = replace(found, url=f"{found.url}/")
    if found.id == "cuda":
        found = _with_tree_key(found)
    if own.key:
        found = replace(found, key_text=own.key, key_url=None, fingerprints=())
    elif own.key_url:
        found = replace(found, key_url=fill(own.key_url, system))
    prints = tuple(p.replace(" ", "").upper() for p in own.key_fingerprints)
    return replace(found, fingerprints=prints or found.fingerprints)


def own_cuda(settings: Settings) -> Own:
    """The driver's repository by its variables, then by the mirror profile."""
    return _first(
        Own(settings.gpu_driver_repo_url, settings.gpu_driver_repo_suite, settings.gpu_driver_repo_components,
            settings.gpu_driver_repo_key, settings.gpu_driver_repo_key_url, settings.gpu_driver_repo_key_fingerprints),
        Own() if not (p := settings.profile) else
        Own(p.cuda_url, p.cuda_suite, p.cuda_components, p.cuda_key, p.cuda_key_url, p.cuda_key_fingerprints),
    )  # fmt: skip


def own_toolkit(settings: Settings) -> Own:
    """The toolkit's repository by its variables, then by the mirror profile."""
    return _first(
        Own(settings.gpu_container_toolkit_repo_url, settings.gpu_container_toolkit_repo_suite,
            settings.gpu_container_toolkit_repo_components, settings.gpu_container_toolkit_repo_key,
            settings.gpu_container_toolkit_repo_key_url, settings.gpu_container_toolkit_repo_key_fingerprints),
        Own() if not (p := settings.profile) else
        Own(p.toolkit_url, p.toolkit_suite, p.toolkit_components, p.toolkit_key, p.toolkit_key_url,
            p.toolkit_key_fingerprints),
    )  # fmt: skip


def _first(own: Own, profile: Own) -> Own:
    where = own if own.url else profile
    return Own(
        where.url, where.suite, where.components,
        own.key or profile.key, own.key_url or profile.key_url, own.key_fingerprints or profile.key_fingerprints,
    )  # fmt: skip


def repository(kind: Kind, context: Context) -> Repository:
    """The repository of a host."""
    own = own_cuda(context.settings) if kind == "cuda" else own_toolkit(context.settings)
    found = owned(vendor(kind, context.system), own, context.system)
    return replace(found, sha1_end=_sha1_end(found, context))


def _sha1_end(repo: Repository, context: Context) -> str | None:
    rows = [row for row in platforms.repository_keys(context.tables) if row.sha1]
    end = max((row.sha1_end for row in rows if row.sha1_end), default=None)
    if repo.key_text:
        return end if any(key.sha1_only for key in _own_keys(repo, context)) else None
    return end if any(row.key.endswith(wanted) for row in rows for wanted in repo.fingerprints) else None


def _own_keys(repo: Repository, context: Context) -> tuple[Key, ...]:
    return context.keys.get(repo.key_text, ())


def _known_directory(repo: Repository, tables: Tables) -> str:
    """The vendor's directory that an address copies: the one in its path, else the platform's own, "" for none."""
    known = {row.directory for row in platforms.repo_directories(tables).values() if row.directory}
    own = (repo.tree or "").partition("/")[0]
    return next((part for part in urlsplit(repo.url or "").path.split("/") if part in known), own)


def _with_vendor_key(repo: Repository, directory: str, tables: Tables) -> Repository:
    """The key that the vendor signs a directory with; none for an address that copies none."""
    if not directory:
        return repo
    keys = [k for k in platforms.repository_keys(tables) if k.manager == repo.manager]
    row = ([k for k in keys if k.directory == directory] or [k for k in keys if k.directory is None])[0]
    return replace(repo, fingerprints=(row.key,), key_file=row.file or "")


def _with_tree_key(repo: Repository) -> Repository:
    if not repo.url or not repo.key_file:
        return repo
    return replace(repo, key_url=f"{repo.url.rstrip('/')}/{repo.key_file}")


def key_installed(repo: Repository, context: Context) -> bool:
    """Whether the keyring file holds the wanted key and no other."""
    found = [key.fingerprint for key in context.probe.keyrings.get(repo.keyring_path, ())]
    wanted = wanted_keys(repo, context)
    return bool(found) and all(any(f.endswith(w) for w in wanted) for f in found)


def wanted_keys(repo: Repository, context: Context) -> tuple[str, ...]:
    """Fingerprints, or their last digits, that the repository's key may have."""
    return repo.fingerprints or tuple(key.fingerprint for key in _own_keys(repo, context))


def keyring(repo: Repository) -> Keyring:
    """The key as it is to be installed."""
    return Keyring(repo.keyring_path, repo.key_text, repo.key_url or "", repo.fingerprints)


def urls(repo: Repository, context: Context) -> tuple[str, ...]:
    """Addresses that have to answer beside the index: the key's, while it is not installed."""
    return () if not repo.key_url or key_installed(repo, context) else (repo.key_url,)


def _rivals(repo: Repository, probe: Reading) -> dict[str, list[Source]]:
    """File -> its sources that name the same repository, or the vendor's. Our own file is none of them."""
    found: dict[str, list[Source]] = {}
    for source in probe.sources:
        if source.file != repo.source_path and (repo.sign in source.uri or _same(source, repo)):
            found.setdefault(source.file, []).append(source)
    return found


def _same(source: Source, repo: Repository) -> bool:
    return bool(repo.url) and source.uri.rstrip("/") == str(repo.url).rstrip("/")


def foreign_sources(repo: Repository, probe: Reading) -> list[str]:
    """Source files of others that name the same repository, or the vendor's, and nothing else.

    They go: apt refuses two keys for one address. A file that holds other sources as well is somebody's, and stays.
    """
    rivals = _rivals(repo, probe)
    sizes = {file: sum(1 for s in probe.sources if s.file == file) for file in rivals}
    return sorted(f for f, found in rivals.items() if len(found) == sizes[f] and f != "/etc/apt/sources.list")


def shared_problems(repo: Repository, probe: Reading) -> list[Problem]:
    """Files that name the same address beside other sources. apt refuses it with another key; dnf takes both."""
    if repo.manager != "apt":
        return []
    alone, key = foreign_sources(repo, probe), repo.keyring_path
    shared = sorted(
        file for file, found in _rivals(repo, probe).items()
        if file not in alone and any(s.enabled and _same(s, repo) and s.signed_by != key for s in found)
    )  # fmt: skip
    return [Problem("GF761", {"file": file, "url": repo.url}) for file in shared]


def retired_keyrings(context: Context) -> list[tuple[str, str, str, bool]]:
    """(file, key, day, alone) for each trusted keyring that holds a retired key."""
    return [
        (path, row.key, row.retired, len(keys) == 1)
        for path, keys in sorted(context.probe.keyrings.items())
        for row in platforms.retired_keys(context.tables)
        if any(key.fingerprint.endswith(row.key.upper()) for key in keys)
    ]


def outside_hosts(settings: Settings, probe: Reading, removed: Iterable[str]) -> list[tuple[str, str]]:
    """(file, host) of every enabled source that the mirror profile does not allow; none without a profile.

    `removed` names source files that are about to go.
    """
    allowed = {name.lower() for name in (settings.profile.allowed_hosts if settings.profile else ())}
    if not allowed:
        return []
    found = {(s.file, urlsplit(s.uri).hostname) for s in probe.sources if s.enabled and s.file not in removed}
    return sorted((file, host) for file, host in found if host and host not in allowed)


def index_of(repo: Repository, system: System) -> tuple[Index, ...]:
    """What the module `resolve` has to know to read the repository's index; none without an address."""
    if repo.url is None:
        return ()
    return (Index(repo.id, repo.manager, repo.url, repo.suite, repo.components, system.debian_architecture),)
