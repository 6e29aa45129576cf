"""Where a Debian suite comes from: the machine's own apt sources, or the archives that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.plays import Names
from twin.hosts import machine, root
from twin.hosts.errors import UnavailableError
from twin.hosts.machine import AptSource

MAIN, SECURITY = "http://d.example/debian", "http://s.example/debian-security"
KNOWN = [
    AptSource("http://other.example/tools", "stable"),
    AptSource(SECURITY, "bookworm-security"),
    AptSource(MAIN, "bookworm-updates"),
    AptSource(MAIN, "bookworm"),
]


def served(monkeypatch: pytest.MonkeyPatch, *suites: str, own: str = "bookworm") -> None:
    """A machine of a suite, whose archives hold these suites."""
    monkeypatch.delenv(machine.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(machine, "_known_sources", lambda: KNOWN)
    monkeypatch.setattr(machine, "_own_suite", lambda: own)
    monkeypatch.setattr(machine, "_missing", lambda s: "" if s.suite in suites else f"{s.uri} has no {s.suite}: 404")


def test_the_machines_own_suite_is_as_apt_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    assert machine.debian_sources("bookworm") == [KNOWN[3], KNOWN[1], KNOWN[2]]


def test_another_suite_is_in_the_same_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch, "trixie", "trixie-security")
    assert machine.debian_sources("trixie") == [AptSource(MAIN, "trixie"), AptSource(SECURITY, "trixie-security")]


def test_an_archive_without_the_suite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch, "trixie-security")
    with pytest.raises(
        UnavailableError, match=r"^http://d\.example/debian has no trixie: 404; set GPUFLEET_DEBIAN_MIRROR"
    ):
        machine.debian_sources("trixie")


def test_a_machine_of_something_else_has_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch, "trixie", own="noble")
    with pytest.raises(UnavailableError, match="no source for Debian trixie"):
        machine.debian_sources("trixie")


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_a_mirror_replaces_them_when_it_has_the_suite(monkeypatch: pytest.MonkeyPatch, suite: str) -> None:
    served(monkeypatch, "bookworm")
    monkeypatch.setenv(machine.MIRROR_VARIABLE, "http://m.example/debian/")
    if suite == "bookworm":
        assert machine.debian_sources(suite) == [AptSource("http://m.example/debian", "bookworm")]
        return
    with pytest.raises(UnavailableError, match=r"^http://m\.example/debian has no trixie: 404$"):
        machine.debian_sources(suite)


def test_an_archive_is_asked_for_the_suites_release_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "proxy_environment", dict)
    (tmp_path / "dists/trixie").mkdir(parents=True)
    (tmp_path / "dists/trixie/Release").touch()
    assert machine._missing(AptSource(tmp_path.as_uri(), "trixie")) == ""
    assert machine._missing(AptSource(tmp_path.as_uri(), "forky")).startswith(
        f"{tmp_path.as_uri()} has no Debian forky: "
    )
    assert "unknown url type" in machine._missing(AptSource("mirror+odd://x", "trixie"))


def test_a_test_of_a_kind_without_root_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure_root(progress: bool = True, suite: str = "") -> Path:
        raise UnavailableError(f"no Debian {suite}")

    monkeypatch.setattr(root, "ensure_root", ensure_root)
    names = Names({"old": "t4", "new": "debian13"})
    assert list(names) == ["old"], "the others are started all the same"
    with pytest.raises(pytest.skip.Exception, match="no Debian trixie"):
        names["new"]
