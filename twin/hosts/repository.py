"""Builds the local package repositories in the cache: CUDA, container toolkit, the distribution's part, run files.

Layout under the served folder, as the vendor has it:

    compute/cuda/repos/<directory>/x86_64/   flat repository, 3bf863cc.pub, 7fa2af80.pub (retired), keyring packages;
                                             debian13 has 8793F200.pub instead of the two keys
    libnvidia-container/stable/deb/amd64/    flat repository; libnvidia-container/gpgkey
    debian/dists/<suite>/{main,non-free}     the distribution's part
    tesla/<version>/NVIDIA-Linux-x86_64-<version>.run
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from twin import toolchain

from . import deb, machine, paths, payloads, runfile, system_payloads
from .errors import TwinError

TABLE = paths.PACKAGE / "data" / "packages.yaml"
TOOLS = paths.PACKAGE / "data" / "tools.yaml"
PAYLOADS = {**payloads.PAYLOADS, **system_payloads.PAYLOADS}
VENDOR_CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"
CUDA_LABEL = "NVIDIA CUDA"
# Signing key -> digest of its own signature.
KEYS = {"cuda": "SHA1", "resigned": "SHA512", "retired": "SHA1", "toolkit": "SHA512", "distribution": "SHA512"}


@dataclass(frozen=True)
class Repository:
    """A finished repository: the folder to serve, and the fingerprints of its keys."""

    folder: Path
    fingerprints: Mapping[str, str]  # cuda, resigned, retired, toolkit, distribution


def table() -> dict[str, Any]:
    """Return the package table."""
    found: dict[str, Any] = yaml.safe_load(TABLE.read_text())
    return found


def expand(name: str, version: str) -> str:
    """Fill a name's placeholders for a driver version."""
    branch = int(version.split(".", maxsplit=1)[0])
    return (
        name.replace("<s>", f"-{branch}" if branch < 590 else "")
        .replace("<f>", f"-{branch}" if branch < 580 else "")
        .replace("<branch>", str(branch))
        .replace("<version>", version)
    )


def relation(text: str, package_version: str) -> str:
    """Turn the table's short form into a relation of a control file: `name =` means this very version."""

    def one(part: str) -> str:
        words = part.split()
        return f"{words[0]} ({words[1]} {package_version})" if len(words) == 2 else words[0]

    return " | ".join(one(part) for part in text.split("|"))


def _package(
    row: Mapping[str, Any], name: str, version: str, context: payloads.Context, expand_for: str
) -> deb.Package:
    package = deb.Package(name, version)
    for key in ("depends", "recommends", "conflicts", "replaces", "provides"):
        values = [relation(expand(text, expand_for) if expand_for else text, version) for text in row.get(key, [])]
        if values:
            package.relations[key.capitalize()] = values
    if row.get("family"):
        for key in ("Provides", "Conflicts", "Replaces"):
            package.relations.setdefault(key, []).append(f"{row['family']}-family")
    if row.get("payload"):
        PAYLOADS[row["payload"]](package, context)
    return package


def driver_packages(data: Mapping[str, Any], context: payloads.Context) -> list[deb.Package]:
    """Return every driver package of every version, the pinning packages, and what is not bound to a version."""
    found = []
    pinned: set[int] = set()
    for driver in data["drivers"]:
        version = driver["version"]
        branch = int(version.split(".")[0])
        own = payloads.Context(version, context.programs, context.nvml, context.toolkit_units)
        for row in data["driver_packages"]:
            if not row.get("min", 0) <= branch <= row.get("max", 9999):
                continue
            if row.get("fabric") and not driver.get("fabric", True):
                continue
            full = f"{version}-{data['revision']}"
            found.append(_package(row, expand(row["name"], version), full, own, version))
        if branch >= data["pinning"]["min"]:
            found.append(_pinning(version, data))
            if branch not in pinned:
                pinned.add(branch)
                found.append(_pinning(str(branch), data))
    for row in data["cuda_others"]:
        found.append(_package(row, row["name"], row["version"], context, ""))
    return found


def _pinning(what: str, data: Mapping[str, Any]) -> deb.Package:
    package = deb.Package(f"nvidia-driver-pinning-{what}", f"{what}-{data['pinning_revision']}", "all")
    names = "*nvidia* cuda-drivers* libnvsdm*"
    package.files["/etc/apt/preferences.d/nvidia-driver-pinning"] = payloads.text(
        f"Package: {names}\nPin: version {what}{'.' if what.isdigit() else '-'}*\nPin-Priority: 1001\n"
    )
    package.conffiles = ["/etc/apt/preferences.d/nvidia-driver-pinning"]
    for key in ("Provides", "Conflicts", "Replaces"):
        package.relations[key] = ["nvidia-driver-pinning"]
    return package


def toolkit_packages(data: Mapping[str, Any], context: payloads.Context) -> list[deb.Package]:
    """Return the four packages of the container toolkit at every version."""
    return [
        _package(row, row["name"], version, context, "")
        for version in data["toolkit"]["versions"]
        for row in data["toolkit"]["packages"]
    ]


def distribution_packages(data: Mapping[str, Any], suite: str, kernel: str) -> list[tuple[str, deb.Package]]:
    """Return component and package of a suite's part for a running kernel."""
    found = []
    for row in data["distribution"][suite]["packages"]:
        text = json.loads(json.dumps(row).replace("<kernel>", kernel).replace("<newer>", data["newer_kernel"]))
        package = _package(text, text["name"], text["version"], payloads.Context(text.get("driver", "")), "")
        found.append((text.get("component", "main"), package))
    return found


def archive_packages(data: Mapping[str, Any], context: payloads.Context, kernel: str) -> list[deb.Package]:
    """Return Ubuntu's own driver packages for a running kernel."""
    found = []
    for version in data["archive"]["drivers"]:
        own = payloads.Context(version, context.programs, context.nvml)
        for row in data["archive"]["packages"]:
            name = expand(row["name"], version).replace("<kernel flavour>", kernel.rpartition("-")[2])
            found.append(_package(row, name, f"{version}-{data['archive']['revision']}", own, version))
    return found


def keyring_package(version: str, directory: str, keyring: bytes) -> deb.Package:
    """Return the keyring package of a directory. As the vendor's, it adds the vendor's own source and a pin of 600."""
    package = deb.Package("cuda-keyring", version, "all")
    package.files["/usr/share/keyrings/cuda-archive-keyring.gpg"] = deb.Entry(keyring)
    source = f"/etc/apt/sources.list.d/cuda-{directory}-x86_64.list"
    package.files[source] = payloads.text(
        f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {VENDOR_CUDA}/{directory}/x86_64/ /\n"
    )
    pin = "/etc/apt/preferences.d/cuda-repository-pin-600"
    package.files[pin] = payloads.text(f"Package: *\nPin: release l={CUDA_LABEL}\nPin-Priority: 600\n")
    package.conffiles = [source, pin]
    return package


# -- building ----------------------------------------------------------------------------------------------------------


def kernel_name() -> str:
    """Return the running kernel's release as Debian package names write it."""
    return os.uname().release.lower().replace("_", "-")


def version() -> str:
    """Return a hash over everything that shapes the repository."""
    parts = [TABLE.read_bytes(), TOOLS.read_bytes(), kernel_name().encode()]
    sources = ("payloads.py", "system_payloads.py", "deb.py", "repository.py", "runfile.py", "data/nvml.c")
    parts += [(paths.PACKAGE / name).read_bytes() for name in sources]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:10]


def ensure(progress: bool = True) -> Repository:
    """Return the repository for this kernel, building it when the cache lacks it. Raises TwinError."""
    target = paths.cache_dir() / "hostrepo" / f"packages-{version()}"
    with paths.locked(target.parent / ".lock"):
        if not target.is_dir():
            building = target.with_name(target.name + ".building")
            shutil.rmtree(building, ignore_errors=True)
            _build(building, progress)
            building.rename(target)
    paths.used(target)
    return Repository(target / "www", json.loads((target / "fingerprints.json").read_text()))


def _build(top: Path, progress: bool) -> None:
    if progress:
        print("building the local package repository", flush=True)
    data, www = table(), top / "www"
    www.mkdir(parents=True)
    context = _context(top, progress)
    keys = {name: _make_key(top, name) for name in KEYS}
    (top / "fingerprints.json").write_text(json.dumps(keys))
    home = top / "gnupg"
    drivers = driver_packages(data, context)
    pool = www / "compute/cuda/pool"
    stanzas = _write(pool, drivers, "../../../pool")
    for directory in data["cuda_directories"]:
        folder = www / "compute/cuda/repos" / directory / "x86_64"
        key, files = keys["cuda"], {"3bf863cc.pub": keys["cuda"], "7fa2af80.pub": keys["retired"]}
        if directory in data["resigned"]:
            key, files = keys["resigned"], {"8793F200.pub": keys["resigned"]}
        keyring = _export(home, key, armor=False)
        rings = [keyring_package(number, directory, keyring) for number in data["keyrings"][directory]]
        deb.write_index(folder, [*stanzas, *_write(folder, rings, ".")])
        for name, fingerprint in files.items():
            (folder / name).write_bytes(_export(home, fingerprint))
        deb.write_release(folder, {"Origin": "NVIDIA", "Label": CUDA_LABEL}, home, key)
    toolkit = www / "libnvidia-container/stable/deb/amd64"
    deb.write_index(toolkit, _write(toolkit, toolkit_packages(data, context), "."))
    label = "nvidia-container-toolkit"
    deb.write_release(toolkit, {"Origin": label, "Label": label}, home, keys["toolkit"])
    listing = toolkit.parent / "nvidia-container-toolkit.list"
    listing.write_text("deb https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n")
    (www / "libnvidia-container/gpgkey").write_bytes(_export(home, keys["toolkit"]))
    ubuntu = [("main", package) for package in archive_packages(data, context, kernel_name())]
    more = {"bookworm": (ubuntu, _real_packages(data["real"], progress))}
    for suite, values in data["distribution"].items():
        others, real = more.get(suite, ([], []))
        own = [*distribution_packages(data, suite, kernel_name()), *others]
        fields = {"Suite": values["release"], "Codename": suite}
        _write_distribution(www / "debian", fields, own, real, home, keys["distribution"])
    (www / "debian/archive-keyring.gpg").write_bytes(_export(home, keys["distribution"], armor=False))
    for number in data["runfiles"]:
        file = www / "tesla" / number / f"NVIDIA-Linux-x86_64-{number}.run"
        file.parent.mkdir(parents=True)
        file.write_text(runfile.text(number))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        file.with_name(file.name + ".sha256sum").write_text(f"{digest}  {file.name}\n")


def _write_distribution(
    folder: Path,
    names: Mapping[str, str],
    own: Iterable[tuple[str, deb.Package]],
    real: Iterable[Path],
    home: Path,
    key: str,
) -> None:
    """Write one suite of the distribution: `names` has its Suite and Codename."""
    suite, pool = folder / "dists" / names["Codename"], f"pool/{names['Codename']}"
    components: dict[str, list[str]] = {"main": [], "non-free": []}
    for component, package in own:
        components[component] += _write(folder / pool / component, [package], f"{pool}/{component}")
    for file in real:
        target = folder / pool / "main" / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        control = machine.run(["dpkg-deb", "-f", str(file)])
        components["main"].append(deb.raw_stanza(control, f"{pool}/main/{file.name}", file.read_bytes()))
    for component, stanzas in components.items():
        deb.write_index(suite / component / "binary-amd64", stanzas)
    fields = {"Origin": "Debian", "Label": "Debian", **names, "Architectures": "amd64", "Components": "main non-free"}
    deb.write_release(suite, fields, home, key)


def _write(folder: Path, packages: Iterable[deb.Package], prefix: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    stanzas = []
    for package in packages:
        content = package.data()
        (folder / package.filename).write_bytes(content)
        stanzas.append(deb.stanza(package, f"{prefix}/{package.filename}", content))
    return stanzas


def _context(top: Path, progress: bool) -> payloads.Context:
    """Build what must be real or compiled: nvidia-ctk with its units, and the NVML stand-in."""
    program, recipe = real_program("nvidia-ctk", progress)
    return payloads.Context("", {"nvidia-ctk": program}, _nvml(top), _toolkit_units(recipe))


def real_program(name: str, progress: bool) -> tuple[Path, toolchain.Recipe]:
    """Return a real program of the tools table, built from its Go module when the cache lacks it. Raises TwinError."""
    recipes, go = toolchain.load(TOOLS)
    say = (lambda line: print(line, flush=True)) if progress else (lambda line: None)
    return toolchain.build([recipes[name]], go, say)[name], recipes[name]


def _nvml(top: Path) -> bytes:
    """Compile the NVML stand-in. One library serves all versions: it learns its version from its file name."""
    target = top / "libnvidia-ml.so"
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), "cc")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-s", "-Wl,-soname,libnvidia-ml.so.1"]
    machine.run([compiler, *options, "-o", str(target), str(paths.PACKAGE / "data/nvml.c"), "-ldl"])
    return target.read_bytes()


def _toolkit_units(recipe: toolchain.Recipe) -> dict[str, str]:
    """Return the toolkit's own units, from the module that nvidia-ctk was built from."""
    name = "github.com/NVIDIA/nvidia-container-toolkit"
    folder = machine.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", name], cwd=recipe.module, env={"GOFLAGS": "-mod=readonly"}
    )
    units = Path(folder.strip()) / "deployments/systemd"
    if not units.is_dir():
        raise TwinError(f"{name} {recipe.version}: no units in {units}")
    return {file.name: file.read_text() for file in units.iterdir()}


def _real_packages(names: list[str], progress: bool) -> list[Path]:
    """Return real Debian packages with what they need beyond the root, from the user's cache."""
    from . import root  # the root decides which dependencies are there already

    folder = paths.cache_dir() / "debs" / f"debian-{root.version(root.root_path().name, names)}"
    if not folder.is_dir():
        if progress:
            print(f"fetching {', '.join(names)} and what they need", flush=True)
        building = folder.with_name(folder.name + ".building")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        root.download(names, building)
        building.rename(folder)
    return sorted(paths.used(folder).glob("*.deb"))


def _make_key(top: Path, name: str) -> str:
    """Make a throw-away signing key and return its fingerprint."""
    home = top / "gnupg"
    home.mkdir(mode=0o700, exist_ok=True)
    base = ["gpg", "--homedir", str(home), "--batch", "--no-tty", "--passphrase", "", "--pinentry-mode", "loopback",
            "--cert-digest-algo", KEYS[name]]  # fmt: skip
    machine.run([*base, "--quick-generate-key", f"gpufleet twin {name} <{name}@localhost>", "rsa2048", "sign", "never"])
    listing = machine.run(["gpg", "--homedir", str(home), "--batch", "--with-colons", "-k", f"{name}@localhost"])
    return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))


def _export(home: Path, key: str, *, armor: bool = True) -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", *(["--armor"] if armor else []), "--export", key]
    return subprocess.run(command, check=True, capture_output=True).stdout
