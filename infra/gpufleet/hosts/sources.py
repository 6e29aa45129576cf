"""Package repositories of the driver and of the container toolkit: address, key, source file, allowed hosts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.gpufleet.hosts.plugins.module_utils import openpgp, paths

from .catalog import Catalog
from .platforms import Platform, repository_directory

_FILES = {
    ("cuda", "apt"): (paths.CUDA_SOURCE_APT, paths.CUDA_KEYRING_APT),
    ("cuda", "dnf"): (paths.CUDA_SOURCE_DNF, paths.CUDA_KEYRING_DNF),
    ("container-toolkit", "apt"): (paths.TOOLKIT_SOURCE_APT, paths.TOOLKIT_KEYRING_APT),
    ("container-toolkit", "dnf"): (paths.TOOLKIT_SOURCE_DNF, paths.TOOLKIT_KEYRING_DNF),
}
_PREFIX = {"cuda": "gpu_driver_repo", "container-toolkit": "gpu_container_toolkit_repo"}


@dataclass
class Repository:
    """One repository as it is to be configured. `url` is None when none is known; `why` says why."""

    id: str
    manager: str
    url: str | None
    suite: str = "/"
    components: list[str] = field(default_factory=list)
    key_text: str = ""
    key_url: str | None = None
    fingerprints: list[str] = field(default_factory=list)
    why: str = ""
    directory: str | None = None
    key_file: str = ""  # name of the key in the repository
    sha1_end: str | None = None

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


def profile_of(settings: dict[str, Any]) -> dict[str, Any] | None:
    """The chosen mirror profile, {} when none is chosen, None when the name is unknown."""
    name = str(settings["gpu_mirror_profile"])
    if not name:
        return {}
    profile = settings["gpu_mirror_profiles"].get(name)
    return dict(profile) if isinstance(profile, dict) else None


def _own(settings: dict[str, Any], repository: str, name: str) -> Any:
    return settings[f"{_PREFIX[repository]}_{name}"]


def repository(kind: str, platform: Platform, settings: dict[str, Any], tables: Catalog) -> Repository:
    """The repository `cuda` or `container-toolkit` for a host: own variable, then mirror profile, then catalogue."""
    manager = platform.manager or "apt"
    profile = profile_of(settings) or {}
    result = _vendor_cuda(platform, tables) if kind == "cuda" else _vendor_toolkit(platform, tables)
    short = "cuda" if kind == "cuda" else "toolkit"
    for url in (profile.get(f"{short}_url"), _own(settings, kind, "url")):
        if url:
            result.url, result.why = _fill(str(url), platform, result.directory), ""
            if kind == "cuda":
                _key_of(result, _known_directory(result.url, result.directory, tables), tables)
    result.manager = manager
    if _own(settings, kind, "url"):
        result.suite = str(_own(settings, kind, "suite"))
        result.components = list(_own(settings, kind, "components"))
    elif profile.get(f"{short}_url"):
        result.suite = str(profile.get(f"{short}_suite", result.suite))
        result.components = list(profile.get(f"{short}_components", []))
    text = _own(settings, kind, "key") or profile.get(f"{short}_key", "")
    url = _own(settings, kind, "key_url") or profile.get(f"{short}_key_url", "")
    prints = _own(settings, kind, "key_fingerprints") or profile.get(f"{short}_key_fingerprints", [])
    if text:
        result.key_text, result.key_url, result.fingerprints = str(text), None, []
    elif url:
        result.key_url = _fill(str(url), platform, result.directory)
    if prints:
        result.fingerprints = [str(p).replace(" ", "").upper() for p in prints]
    if result.url and not result.url.endswith("/") and manager == "apt" and result.suite == "/":
        result.url += "/"
    if kind == "cuda" and result.url and result.key_file and not text and not url:
        result.key_url = (
            f"{result.url.rstrip('/')}/{result.key_file}"  # a mirror that copies the tree has the key as well
        )
    result.sha1_end = _sha1_end(result, tables)
    return result


def _sha1_end(repo: Repository, tables: Catalog) -> str | None:
    """Day from which apt with sqv refuses the repository's key, None for a key that it takes."""
    rows = [row for row in tables.rows("host_repositories", "repository_keys") if row["sha1"]]
    end = max((row["sha1_end"] for row in rows), default=None)
    if repo.key_text:
        return end if any(key["sha1_only"] for key in openpgp.keys(repo.key_text.encode())) else None
    return end if any(row["key"].endswith(wanted) for row in rows for wanted in repo.fingerprints) else None


def _fill(url: str, platform: Platform, directory: str | None) -> str:
    distro, _, machine = (directory or "").partition("/")
    return (
        url.replace("<directory>", distro)
        .replace("<architecture directory>", machine)
        .replace("<machine>", platform.architecture)
        .replace("<architecture>", platform.debian_architecture)
    )


def _vendor_cuda(platform: Platform, tables: Catalog) -> Repository:
    manager = platform.manager or "apt"
    directory, why = repository_directory(platform, tables)
    result = Repository("cuda", manager, None, why=why, directory=directory)
    if directory is None:
        return result
    base = tables.row("repositories", "repositories", "id", "cuda")
    assert base is not None
    result.url = _fill(base["url"], platform, directory)
    _key_of(result, directory.partition("/")[0], tables)
    return result


def _known_directory(url: str, directory: str | None, tables: Catalog) -> str:
    """The vendor's directory that an address copies: the one in its path, else the platform's own, "" for none."""
    known = {row["directory"] for row in tables.rows("repositories", "repo_directories") if row["directory"]}
    return next((part for part in urlsplit(url).path.split("/") if part in known), (directory or "").partition("/")[0])


def _key_of(repo: Repository, directory: str, tables: Catalog) -> None:
    """The key that the vendor signs a directory with; none for an address that copies none."""
    if not directory:
        return
    keys = [k for k in tables.rows("host_repositories", "repository_keys") if k["manager"] == repo.manager]
    rows = [k for k in keys if k["directory"] == directory] or [k for k in keys if k["directory"] is None]
    repo.fingerprints, repo.key_file = [rows[0]["key"]], rows[0]["file"] or ""


def _vendor_toolkit(platform: Platform, tables: Catalog) -> Repository:
    manager = platform.manager or "apt"
    row = tables.row("host_toolkit", "toolkit_repositories", "manager", manager)
    assert row is not None
    key = next(k for k in tables.rows("repositories", "signing_keys") if k["use"].startswith("container toolkit"))
    return Repository(
        "container-toolkit", manager, _fill(row["url"], platform, None), suite=row["suite"] or "/",
        key_url=row["key"], fingerprints=[key["short_id"]],
    )  # fmt: skip


def key_installed(repo: Repository, probe: dict[str, Any]) -> bool:
    """Whether the keyring file holds the wanted key and no other."""
    found = [key["fingerprint"] for key in probe["keyrings"].get(repo.keyring_path, [])]
    wanted = wanted_keys(repo)
    return bool(found) and all(any(f.endswith(w) for w in wanted) for f in found)


def wanted_keys(repo: Repository) -> list[str]:
    """Fingerprints, or their last digits, that the repository's key may have."""
    return repo.fingerprints or [key["fingerprint"] for key in openpgp.keys(repo.key_text.encode())]


def _rivals(repo: Repository, probe: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """File -> its sources that name the same repository, or the vendor's. Our own file is none of them."""
    vendor = "/compute/cuda/repos/" if repo.id == "cuda" else "/libnvidia-container/"
    found: dict[str, list[dict[str, Any]]] = {}
    for source in probe["sources"]:
        if source["file"] != repo.source_path and (vendor in source["uri"] or _same(source, repo)):
            found.setdefault(source["file"], []).append(source)
    return found


def _same(source: dict[str, Any], repo: Repository) -> bool:
    return bool(repo.url) and source["uri"].rstrip("/") == str(repo.url).rstrip("/")


def foreign_sources(repo: Repository, probe: dict[str, Any]) -> list[str]:
    """Source files of others that name the same repository, or the vendor's, and nothing else.

    They go: apt refuses two keys for one address. A file that holds other sources as well is somebody's, and stays.
    """
    rivals = _rivals(repo, probe)
    sizes = {file: sum(1 for s in probe["sources"] if s["file"] == file) for file in rivals}
    return sorted(f for f, found in rivals.items() if len(found) == sizes[f] and f != "/etc/apt/sources.list")


def shared_sources(repo: Repository, probe: dict[str, Any]) -> list[str]:
    """Files that name the same address beside other sources. apt refuses it with another key; dnf takes both."""
    if repo.manager != "apt":
        return []
    alone, key = foreign_sources(repo, probe), repo.keyring_path
    return sorted(
        file for file, found in _rivals(repo, probe).items()
        if file not in alone and any(s["enabled"] and _same(s, repo) and s["signed_by"] != key for s in found)
    )  # fmt: skip


def shared_problems(repo: Repository, probe: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What `shared_sources` finds, as problems."""
    return [("GF761", {"file": file, "url": repo.url}) for file in shared_sources(repo, probe)]


def retired_keyrings(probe: dict[str, Any], tables: Catalog) -> list[tuple[str, str, str, bool]]:
    """(file, key, day, alone) for each trusted keyring that holds a retired key."""
    found = []
    for path, keys in sorted(probe["keyrings"].items()):
        for row in tables.rows("host_repositories", "retired_keys"):
            if any(key["fingerprint"].endswith(row["key"].upper()) for key in keys):
                found.append((path, row["key"], row["retired"], len(keys) == 1))
    return found


def outside_hosts(settings: dict[str, Any], probe: dict[str, Any], removed: list[str]) -> list[tuple[str, str]]:
    """(file, host) of every enabled source that the mirror profile does not allow; none without a profile.

    `removed` names source files that are about to go.
    """
    profile = profile_of(settings)
    allowed = {str(name).lower() for name in (profile or {}).get("allowed_hosts", [])}
    if not allowed:
        return []
    found = set()
    for source in probe["sources"]:
        host = urlsplit(source["uri"]).hostname
        if source["enabled"] and host and host not in allowed and source["file"] not in removed:
            found.add((source["file"], host))
    return sorted(found)


def resolve_repository(repo: Repository, platform: Platform) -> dict[str, Any]:
    """What the module `resolve` has to know to read the repository's index."""
    return {
        "id": repo.id, "manager": repo.manager, "url": repo.url, "suite": repo.suite, "components": repo.components,
        "architecture": platform.debian_architecture,
    }  # fmt: skip


def canonical(value: Any) -> str:
    """JSON with sorted keys, for files whose content must not depend on the order of a mapping."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
