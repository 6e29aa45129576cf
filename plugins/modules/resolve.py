#!/usr/bin/python
"""Find the exact versions of packages before anything is changed. Changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: resolve
short_description: Find exact package versions in a repository or in the package manager's cache
description:
  - Reads the index of repositories over the network, without configuring them, and the package manager's cache.
  - Changes nothing and behaves the same in check mode. The result becomes the fact C(gpu_resolved).
options:
  repositories:
    description: Repositories to read, each with id, manager, url, suite, components and architecture.
    type: list
    elements: dict
    default: []
  want:
    description:
      - Packages, each with name, version (upstream or empty), repository and optional. Without a repository the
        host's own are asked, then those that are given.
    type: list
    elements: dict
    required: true
  urls:
    description: Further addresses that have to answer.
    type: list
    elements: str
    default: []
  names:
    description: Shell patterns of packages that wanted ones may bring along at their own version.
    type: list
    elements: str
    default: []
  timeout: {description: Seconds to wait for an address., type: int, default: 20}
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Find the driver's packages
  gpufleet.hosts.resolve:
    repositories: [{id: cuda, manager: apt, url: "https://mirror.example.com/cuda/", suite: /, architecture: amd64}]
    want: [{name: nvidia-open, version: 580.126.09, repository: cuda}]
"""
RETURN = r"""
ansible_facts:
  description: The fact gpu_resolved with packages, missing, available, unknown, errors and the request it answers.
  returned: always
  type: dict
"""

import glob
import gzip
import io
import lzma
import re
from typing import Any, Iterable

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url
from ansible_collections.gpufleet.hosts.plugins.module_utils import index, order, packages


class Resolver:
    """One request."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.timeout = module.params["timeout"]
        self.errors: list[dict[str, str]] = []
        asked = {item["name"] for item in module.params["want"]}
        brought = packages.named(module.params["names"])
        self.brought = brought
        self.wanted = lambda name: name in asked or brought(name)

    def fetch(self, url: str) -> bytes | None:
        """The body of an address, or None with the error noted."""
        try:
            body: bytes = open_url(url, timeout=self.timeout).read()
            return body
        except Exception as error:
            self.errors.append({"url": url, "answer": str(error)[:200]})
            return None

    def check(self, url: str) -> None:
        """Ask for the head of an address."""
        try:
            open_url(url, method="HEAD", timeout=self.timeout)
        except Exception as error:
            self.errors.append({"url": url, "answer": str(error)[:200]})

    def packages_text(self, repository: dict[str, Any]) -> str:
        """The index of an apt repository."""
        base = repository["url"].rstrip("/")
        if repository["suite"].endswith("/"):
            folders = [base if repository["suite"] == "/" else "{}/{}".format(base, repository["suite"].strip("/"))]
        else:
            folders = [
                "{}/dists/{}/{}/binary-{}".format(base, repository["suite"], component, repository["architecture"])
                for component in repository["components"]
            ]
        texts = []
        for folder in folders:
            before = len(self.errors)
            for name, unpack in (
                ("Packages.gz", gzip.decompress),
                ("Packages.xz", lzma.decompress),
                ("Packages", bytes),
            ):
                data = self.fetch(f"{folder}/{name}")
                if data is not None:
                    del self.errors[before:]
                    texts.append(unpack(data).decode("utf-8", "replace"))
                    break
            else:
                del self.errors[before + 1 :]
        return "\n\n".join(texts)

    def rpm_index(self, repository: dict[str, Any]) -> dict[str, Any]:
        """The index of a dnf repository."""
        base = repository["url"].rstrip("/")
        listing = self.fetch(base + "/repodata/repomd.xml")
        match = re.search(rb'<data type="primary">.*?<location href="([^"]+)"', listing or b"", re.S)
        if match is None:
            return {}
        path = match.group(1).decode()
        data = self.fetch(f"{base}/{path}")
        if data is None:
            return {}
        if path.endswith(".gz"):
            data = gzip.decompress(data)
        elif path.endswith(".xz"):
            data = lzma.decompress(data)
        elif path.endswith(".zst"):
            data = self.unzstd(data)
        elif not path.endswith(".xml"):
            data = None
        if data is None:
            hint = "its compression cannot be read here: install zstd on the host, or make the index with gz"
            self.errors.append({"url": f"{base}/{path}", "answer": hint})
            return {}
        return index.parse_primary(io.BytesIO(data), self.wanted)

    def unzstd(self, data: bytes) -> bytes | None:
        """What newer createrepo writes by default; Python has no reader for it. None without the program zstd."""
        program = self.module.get_bin_path("zstd")
        if program is None:
            return None
        status, out, _err = self.module.run_command([program, "-dc"], data=data, binary_data=True, encoding=None)
        return out if status == 0 else None

    def native(self, names: Iterable[str], levels: int = 6) -> dict[str, Any] | None:
        """The package manager's own knowledge: versions and, for apt, dependencies. None when it has none."""
        if self.module.get_bin_path("apt-cache"):
            if not glob.glob("/var/lib/apt/lists/*Packages*"):
                return None
            found: dict[str, Any] = {}
            seen: set[str] = set()
            ask = set(names)
            for _level in range(levels):
                ask -= seen
                if not ask:
                    break
                seen |= ask
                _rc, text, _err = self.module.run_command(["apt-cache", "show", "--all-versions", *sorted(ask)])
                part = index.parse_packages(text, self.wanted)
                found.update(part)
                groups = [group for versions in part.values() for depends in versions.values() for group in depends]
                ask = {name for group in groups for name in group if self.brought(name)}
            return found
        if self.module.get_bin_path("dnf"):
            # A locked version hides the others.
            query = [
                "dnf",
                "-q",
                "--disableplugin=versionlock",
                "repoquery",
                "--qf",
                "%{name}\t%{epoch}\t%{version}-%{release}\n",
                *sorted(names),
            ]
            _rc, text, _err = self.module.run_command(query)
            found = {}
            for line in text.splitlines():
                name, _tab, rest = line.partition("\t")
                epoch, _tab, version = rest.partition("\t")
                if version:
                    found.setdefault(name, {})[version if epoch == "0" else f"{epoch}:{version}"] = []
            return found
        return None

    def result(self) -> dict[str, Any]:
        params = self.module.params
        want = params["want"]
        answer = {"packages": [], "missing": [], "available": {}, "unknown": [], "request": want}
        everything = {}
        for repository in params["repositories"]:
            part = [item for item in want if item.get("repository") == repository["id"]]
            before = len(self.errors)
            if repository["manager"] == "apt":
                known = index.parse_packages(self.packages_text(repository), self.wanted)
            else:
                known = self.rpm_index(repository)
            everything.update(known)
            if len(self.errors) > before:
                answer["unknown"] += [item["name"] for item in part]
            else:
                self.add(answer, known, part)
        own = [item for item in want if not item.get("repository")]
        if own:
            native = self.native([item["name"] for item in own])
            there = [item for item in own if item["name"] in everything and item["name"] not in (native or {})]
            rest = [item for item in own if item not in there]
            self.add(answer, everything, there)
            if native is None:
                answer["unknown"] += [item["name"] for item in rest]
            else:
                self.add(answer, native, rest)
        for url in params["urls"]:
            self.check(url)
        return dict(answer, errors=self.errors)

    def add(self, answer: dict[str, Any], known: dict[str, Any], part: list[dict[str, Any]]) -> None:
        manager = "apt" if self.module.get_bin_path("dpkg") else "dnf"
        found = index.closure(known, part, order.comparison(manager))
        answer["packages"] += found["packages"]
        answer["missing"] += found["missing"]
        answer["available"].update(found["available"])


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            repositories=dict(type="list", elements="dict", default=[]),
            want=dict(type="list", elements="dict", required=True),
            urls=dict(type="list", elements="str", default=[]),
            names=dict(type="list", elements="str", default=[]),
            timeout=dict(type="int", default=20),
        ),
        supports_check_mode=True,
    )
    module.exit_json(changed=False, ansible_facts={"gpu_resolved": Resolver(module).result()})


if __name__ == "__main__":
    main()
