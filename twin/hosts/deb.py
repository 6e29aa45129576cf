"""Writes Debian packages and apt repositories: the binary package format, Packages and a signed Release."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

from . import machine


@dataclass(frozen=True)
class Entry:
    """One file of a package: its content and mode, or the target when it is a link."""

    content: bytes = b""
    mode: int = 0o644
    target: str | None = None


@dataclass
class Package:
    """A binary package before it is written. `scripts` are maintainer scripts by name (postinst, prerm, postrm)."""

    name: str
    version: str
    architecture: str = "amd64"
    files: dict[str, Entry] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    conffiles: list[str] = field(default_factory=list)
    relations: dict[str, list[str]] = field(default_factory=dict)
    description: str = "stand-in package of the gpufleet host twin"
    section: str = "non-free/devel"

    @property
    def filename(self) -> str:
        """The usual file name; the epoch is left out."""
        return f"{self.name}_{self.version.partition(':')[2] or self.version}_{self.architecture}.deb"

    def control(self) -> str:
        """Return the control stanza."""
        size = sum(len(entry.content) for entry in self.files.values()) // 1024 + 1
        lines = [
            f"Package: {self.name}",
            f"Version: {self.version}",
            f"Architecture: {self.architecture}",
            "Maintainer: gpufleet host twin <root@localhost>",
            f"Installed-Size: {size}",
        ]
        for key in ("Pre-Depends", "Depends", "Recommends", "Conflicts", "Breaks", "Replaces", "Provides"):
            if self.relations.get(key):
                lines.append(f"{key}: {', '.join(self.relations[key])}")
        lines += [f"Section: {self.section}", "Priority: optional", f"Description: {self.description}"]
        return "\n".join(lines) + "\n"

    def data(self) -> bytes:
        """Return the package file. The same input gives the same bytes."""
        control: dict[str, Entry] = {"control": Entry(self.control().encode())}
        for name, text in self.scripts.items():
            control[name] = Entry(text.encode(), 0o755)
        if self.conffiles:
            control["conffiles"] = Entry("".join(f"{path}\n" for path in self.conffiles).encode())
        members = (
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", _tar(control)),
            ("data.tar.gz", _tar(self.files)),
        )
        return b"!<arch>\n" + b"".join(_member(name, content) for name, content in members)


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
    return head + content + (b"\n" if len(content) % 2 else b"")


def _tar(files: Mapping[str, Entry]) -> bytes:
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        _folder(archive, "./")
        seen: set[str] = set()
        for path in sorted(files):
            parts = path.strip("/").split("/")
            for depth in range(1, len(parts)):
                folder = "/".join(parts[:depth])
                if folder not in seen:
                    seen.add(folder)
                    _folder(archive, f"./{folder}/")
            _file(archive, "./" + "/".join(parts), files[path])
    return buffer.getvalue()


def _folder(archive: tarfile.TarFile, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    archive.addfile(info)


def _file(archive: tarfile.TarFile, name: str, entry: Entry) -> None:
    info = tarfile.TarInfo(name)
    if entry.target is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
        archive.addfile(info)
        return
    info.size, info.mode = len(entry.content), entry.mode
    archive.addfile(info, io.BytesIO(entry.content))


def stanza(package: Package, location: str, data: bytes) -> str:
    """Return a package's entry of a Packages file."""
    return (
        package.control()
        + f"Filename: {location}\nSize: {len(data)}\n"
        + f"MD5sum: {hashlib.md5(data, usedforsecurity=False).hexdigest()}\n"
        + f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
    )


def raw_stanza(control: str, location: str, data: bytes) -> str:
    """Return the entry of a package file made by somebody else, from its control text."""
    return (
        control.rstrip("\n")
        + f"\nFilename: {location}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
    )


def write_index(folder: Path, stanzas: Sequence[str]) -> None:
    """Write Packages and Packages.gz into a folder."""
    text = "\n".join(stanzas).encode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Packages").write_bytes(text)
    (folder / "Packages.gz").write_bytes(gzip.compress(text, 6, mtime=0))


def write_release(folder: Path, fields: Mapping[str, str], home: Path, key: str) -> None:
    """Write Release, InRelease and Release.gpg over all index files below `folder`, signed with `key`."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"Date: {formatdate(0, usegmt=True)}", "SHA256:"]
    for file in sorted(folder.rglob("Packages*")):
        content = file.read_bytes()
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {file.relative_to(folder)}")
    release = folder / "Release"
    release.write_text("\n".join(lines) + "\n")
    base = ["gpg", "--homedir", str(home), "--batch", "--yes", "--no-tty", "-u", key, "--digest-algo", "SHA256"]
    machine.run([*base, "--clearsign", "-o", str(folder / "InRelease"), str(release)])
    machine.run([*base, "-a", "--detach-sign", "-o", str(folder / "Release.gpg"), str(release)])
