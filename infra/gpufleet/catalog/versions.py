"""The order of versions: of NVIDIA's own, of Debian packages and of rpm packages. Never as text.

NVIDIA's versions are numbers between dots: "570.26" is older than "570.124.06". Package versions have an epoch, marks
for pre-releases (`~`) and, with rpm, for snapshots (`^`); their orders are those of dpkg and of rpm.
"""

import re
from typing import NamedTuple

_NUMBERS = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)")
#: A branch, and a full version, of the driver.
BRANCH = re.compile(r"\d{3}")
VERSION = re.compile(r"\d{3}(?:\.\d+){1,2}")


class DriverVersion(NamedTuple):
    """A driver version such as 580.126.09. Orders by number: 570.26 < 570.124.06.

    A tuple of its fields; a version with fewer fields sorts before its longer forms, so 580 <= 580.65.06.
    """

    fields: tuple[int, ...]

    @property
    def branch(self) -> int:
        """The first field: 580 of 580.126.09."""
        return self.fields[0]


def driver_version(text: str) -> DriverVersion:
    """Read `580`, `580.126.09` or `v1.20.0`. Raises ValueError on anything else, also on a package revision."""
    match = _NUMBERS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a version: {text!r}")
    return DriverVersion(tuple(int(field) for field in match[1].split(".")))


def fields(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with; what follows them is left out. Empty when there are none."""
    match = _NUMBERS.match(text.strip())
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def branch_of(text: str) -> int:
    """580 of 580.126.09; 0 when the text is no version."""
    numbers = fields(text)
    return numbers[0] if numbers else 0


def at_least(version: str, minimum: str) -> bool:
    """Whether `version` is `minimum` or newer. A pre-release such as 1.18.0~rc.1 is older than its release."""
    return deb_order(version.strip().removeprefix("v")) >= deb_order(minimum)


def within(version: str, first: str | None, last: str | None, fixed_in: str | None = None) -> bool:
    """Whether a version lies in a range: both ends included, a short end stands for all that begin with it (535)."""
    numbers = fields(version)
    if first is not None and numbers < fields(first):
        return False
    if last is not None and numbers[: len(fields(last))] > fields(last):
        return False
    return fixed_in is None or numbers < fields(fixed_in)


def upstream(package_version: str) -> str:
    """The vendor's version in a package version: 580.95.05 of 580.95.05-0ubuntu1 and of 3:580.95.05-1.el9."""
    return re.split(r"[-~+]", package_version.rpartition(":")[2], maxsplit=1)[0]


#: What sorts package versions; compares with others of the same kind only.
Order = tuple[object, ...]


def deb_order(version: str) -> Order:
    """Sorts Debian package versions as `dpkg --compare-versions` does."""
    epoch, _, rest = version.rpartition(":")
    head, dash, revision = rest.rpartition("-")
    return (int(epoch or 0), _deb_parts(head if dash else rest), _deb_parts(revision if dash else ""))


def _deb_parts(text: str) -> Order:
    """Text and number in turn. `~` sorts before the end of the text, letters after it, other signs last."""
    found: list[object] = []
    for word, number in re.findall(r"([^0-9]*)([0-9]*)", text):
        signs = [-1 if c == "~" else ord(c) if c.isalpha() else ord(c) + 256 for c in word]
        found += [(*signs, 0), int(number or 0)]
    while len(found) > 2 and found[-2:] == [(0,), 0]:
        del found[-2:]
    return (*found, (0,), 0)


def rpm_order(version: str) -> Order:
    """Sorts rpm versions (`epoch:version-release`) as rpm's own comparison does."""
    epoch, _, rest = version.rpartition(":")
    head, _, release = rest.partition("-")
    return (int(epoch or 0), _rpm_parts(head), _rpm_parts(release))


def _rpm_parts(text: str) -> Order:
    """Words and numbers; every other sign only separates. `~` sorts before the end of the text, `^` just after it."""
    found: list[object] = []
    for part in re.findall(r"~|\^|[0-9]+|[A-Za-z]+", text):
        if part in "~^":
            found.append((-1 if part == "~" else 1, 0, ""))
        elif part.isdigit():
            found.append((3, int(part), ""))
        else:
            found.append((2, 0, part))
    return (*found, (0, 0, ""))
