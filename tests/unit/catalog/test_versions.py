"""The order of versions, against the programs that own it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from gpufleet.catalog.versions import Order, at_least, deb_order, rpm_order, upstream, within
from hypothesis import given, settings
from hypothesis import strategies as st


def sign(a: Order, b: Order) -> int:
    return (a > b) - (a < b)  # type: ignore[operator]


PIECES = st.sampled_from([*"0123456789", *"0019", "a", "b", "rc", "Z", "~", "~~", "+", "."])


def versions(pieces: st.SearchStrategy[str], release: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    text = st.lists(pieces, max_size=6).map("".join)
    return st.tuples(st.sampled_from(["", "0:", "1:", "3:"]), st.sampled_from("0158"), text, release).map("".join)


DEB = versions(PIECES, st.lists(PIECES, max_size=4).map(lambda p: f"-1{''.join(p)}" if p else ""))
RPM = versions(
    st.one_of(PIECES, st.just("^"), st.just("_")), st.lists(PIECES | st.just("^"), max_size=4).map(
        lambda p: f"-1{''.join(p)}"
    )
)  # fmt: skip


def dpkg_says(a: str, b: str) -> int:
    def holds(word: str) -> bool:
        done = subprocess.run(["dpkg", "--compare-versions", a, word, b], capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0

    return -1 if holds("lt") else int(not holds("eq"))


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no dpkg to compare with")
@settings(max_examples=150, deadline=None)
@given(DEB, DEB, st.sampled_from(["~", "0", "+", "a"]))
def test_deb_versions_order_as_dpkg_orders_them(a: str, b: str, end: str) -> None:
    for other in (b, a + end):
        assert sign(deb_order(a), deb_order(other)) == dpkg_says(a, other)


def rpm_says(pairs: list[tuple[str, str]]) -> list[int]:
    """rpm's word on each pair: rpm.vercmp of its Lua, of epoch, then version, then release."""
    each = [words for pair in pairs for words in zip(*map(parts, pair), strict=True)]
    calls = ";".join(f'print(rpm.vercmp("{a}","{b}").." ")' for a, b in each)
    done = subprocess.run(["rpm", "--eval", f"%{{lua: {calls}}}"], capture_output=True, text=True, check=True)
    found = [int(line) for line in done.stdout.split()]
    three = [found[i : i + 3] for i in range(0, len(found), 3)]
    return [next((n for n in answer if n), 0) for answer in three]


def parts(version: str) -> tuple[str, str, str]:
    epoch, _, rest = version.rpartition(":")
    head, _, release = rest.partition("-")
    return epoch or "0", head, release


@pytest.mark.skipif(shutil.which("rpm") is None, reason="no rpm to compare with")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(RPM, RPM), min_size=20, max_size=20))
def test_rpm_versions_order_as_rpm_orders_them(pairs: list[tuple[str, str]]) -> None:
    pairs = [*pairs, *((a, a + "~") for a, _ in pairs), *((a, a + "^1") for a, _ in pairs)]
    assert [sign(rpm_order(a), rpm_order(b)) for a, b in pairs] == rpm_says(pairs)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("580.9-1", "580.10-1"), ("1:1.0", "2:0.1"), ("1.0~rc1-1", "1.0-1"), ("1.0-1", "1.0-1ubuntu1"),
     ("1.0-1", "1.0+b1-1"), ("570.26-0ubuntu1", "570.124.06-0ubuntu1")],
)  # fmt: skip
def test_order_of_deb_versions(older: str, newer: str) -> None:
    assert sign(deb_order(older), deb_order(newer)) == -1


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.0~rc1-1", "1.0-1"), ("1.0-1", "1.0^20260101-1"), ("1.0^a-1", "1.0.1-1"), ("580.9-1.el9", "580.10-1.el9"),
     ("9:1-1", "10:0-1"), ("1.0a-1", "1.0.1-1"), ("1.0-1.el9", "1.0-1.el10")],
)  # fmt: skip
def test_order_of_rpm_versions(older: str, newer: str) -> None:
    assert sign(rpm_order(older), rpm_order(newer)) == -1


def test_versions_compare_by_number() -> None:
    assert not at_least("570.26", "570.124.06") and at_least("1.20.0", "1.9.9") and at_least("v1.20.0", "1.20.0")
    assert not at_least("1.18.0~rc.1", "1.18.0")
    assert upstream("3:580.95.05-1.el9") == upstream("580.95.05-0ubuntu1") == "580.95.05"
    assert within("535.183.01", "535", "535") and not within("536.1", "535", "535")
    assert within("1.18.0", "1.18.0", None, "1.19.1") and not within("1.19.1", "1.18.0", None, "1.19.1")
