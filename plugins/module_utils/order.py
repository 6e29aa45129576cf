"""The order of package versions, as the host's own package manager has it: its Python module, else its program."""

from __future__ import annotations

import subprocess
from typing import Callable

Compare = Callable[[str, str], int]


def comparison(manager: str) -> Compare:
    """A function for cmp_to_key that compares versions as `manager` (apt or dnf) does."""
    return _deb() if manager == "apt" else _rpm()


def _deb() -> Compare:
    try:
        import apt_pkg
    except ImportError:
        return _dpkg
    apt_pkg.init_system()
    compare: Compare = apt_pkg.version_compare
    return compare


def _dpkg(one: str, other: str) -> int:
    for word, answer in (("lt", -1), ("gt", 1)):
        if subprocess.call(["dpkg", "--compare-versions", one, word, other]) == 0:
            return answer
    return 0


def _rpm() -> Compare:
    try:
        import rpm
    except ImportError:
        return _rpm_program
    return lambda one, other: rpm.labelCompare(_label(one), _label(other))


def _rpm_program(one: str, other: str) -> int:
    calls = ";".join('print(rpm.vercmp("{}","{}").." ")'.format(*pair) for pair in zip(_label(one), _label(other)))
    found = subprocess.check_output(["rpm", "--eval", "%{lua: " + calls + "}"]).split()
    return next((int(answer) for answer in found if int(answer)), 0)


def _label(version: str) -> tuple[str, str, str]:
    """(epoch, version, release) of "epoch:version-release"."""
    epoch, _, rest = version.rpartition(":")
    head, _, release = rest.partition("-")
    return epoch or "0", head, release
