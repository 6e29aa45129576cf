"""Package indexes: which exact versions exist, and which packages a driver pulls in at its own version.

The arithmetic here is pure; the module `resolve` fetches the texts.
"""

from __future__ import annotations

import functools
import re
import xml.etree.ElementTree as ElementTree
from typing import Any, Callable

_RPM = "{http://linux.duke.edu/metadata/common}"


def upstream(version: str) -> str:
    """580.95.05 of 580.95.05-0ubuntu1 and of 3:580.95.05-1.el9."""
    return re.split(r"[-~+]", version.rpartition(":")[2], maxsplit=1)[0]


def parse_packages(text: str, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """Stanzas of a Debian index -> name -> version -> names of what it depends on or recommends,
    alternatives as tuples.

    `wanted(name)` says which packages to read.
    """
    found: dict[str, Any] = {}
    for stanza in re.split(r"\n\s*\n", text):
        match = re.search(r"^Package: (\S+)$", stanza, re.M)
        if match is None or not wanted(match.group(1)):
            continue
        version = re.search(r"^Version: (\S+)$", stanza, re.M)
        if version is None:
            continue
        depends = []
        for field in re.findall(r"^(?:Pre-Depends|Depends|Recommends): (.*)$", stanza, re.M):
            for group in field.split(","):
                names = tuple(re.split(r"[\s(:]", part.strip(), maxsplit=1)[0] for part in group.split("|"))
                depends.append(names)
        found.setdefault(match.group(1), {})[version.group(1)] = depends
    return found


def parse_primary(data: Any, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """primary.xml of an rpm repository -> name -> "epoch:version-release" -> []; rpm's own dependencies are exact."""
    found: dict[str, Any] = {}
    for _event, element in ElementTree.iterparse(data):
        if element.tag != _RPM + "package":
            continue
        name = element.findtext(_RPM + "name", "")
        version = element.find(_RPM + "version")
        if version is not None and wanted(name):
            epoch = version.get("epoch", "0")
            full = "{}-{}".format(version.get("ver"), version.get("rel"))
            found.setdefault(name, {})[full if epoch == "0" else f"{epoch}:{full}"] = []
        element.clear()
    return found


def pick(index: dict[str, Any], name: str, version: str | None, compare: Callable[[str, str], int]) -> str | None:
    """The newest package version of `name` whose upstream version is `version` (any when None), or None."""
    versions = [v for v in index.get(name, {}) if version is None or v == version or upstream(v) == version]
    return max(versions, key=functools.cmp_to_key(compare)) if versions else None


def closure(index: dict[str, Any], want: list[dict[str, Any]], compare: Callable[[str, str], int]) -> dict[str, Any]:
    """The exact set for a list of {"name", "version", "optional", "part"}; `compare` orders package versions.

    Packages that a wanted one depends on or recommends, and that exist in the index at the same upstream version, join
    the set: a meta package depends on its siblings with >=, so pinning it alone would install newer ones.

    Returns {"packages": [{"name", "version", "part"}], "missing": [names], "available": {name: [upstream versions]}}.
    """
    chosen = {}
    missing = []
    queue = []
    for item in want:
        version = pick(index, item["name"], item.get("version"), compare)
        if version is not None:
            queue.append((item["name"], version, item.get("version"), item.get("part", "")))
        elif not item.get("optional"):
            missing.append(item["name"])
    while queue:
        name, version, bound, part = queue.pop(0)
        if name in chosen:
            continue
        chosen[name] = (version, part)
        if bound is None:
            continue
        for group in index.get(name, {}).get(version, []):
            if any(other in chosen for other in group):
                continue
            for other in group:
                match = pick(index, other, bound, compare)
                if match is not None:
                    queue.append((other, match, bound, part))
                    break
    available = {name: sorted({upstream(v) for v in index.get(name, {})}) for name in missing}
    return {
        "packages": [{"name": n, "version": chosen[n][0], "part": chosen[n][1]} for n in sorted(chosen)],
        "missing": missing,
        "available": available,
    }
