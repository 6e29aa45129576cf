#!/usr/bin/python
"""Hold and release packages."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: holds
short_description: Hold packages at their version, or release them, in one call
description:
  - Uses the selections of dpkg, or the file of dnf's plugin versionlock.
  - A package that is in the wanted state already is left alone.
options:
  manager: {description: Package manager of the host., type: str, required: true, choices: [apt, dnf]}
  hold:
    description: Names to hold. For dnf the installed version is locked.
    type: list
    elements: str
    default: []
  release:
    description: Names to release.
    type: list
    elements: str
    default: []
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Hold the driver
  gpufleet.hosts.holds:
    manager: apt
    hold: [nvidia-open]
"""
RETURN = r"""
packages:
  description: Names whose state changed.
  returned: always
  type: list
  elements: str
"""

import os
from typing import Any, Iterable

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.hosts.plugins.module_utils import packages

LOCKS = "/etc/dnf/plugins/versionlock.list"


def apt_held(module: Any) -> set[str]:
    """Names that dpkg holds."""
    _rc, text, _err = module.run_command(["dpkg", "--get-selections"], check_rc=True)
    return {line.split()[0].partition(":")[0] for line in text.splitlines() if line.split()[1:] == ["hold"]}


def dnf_locks() -> list[str]:
    """Lines of the lock file."""
    try:
        with open(LOCKS, encoding="utf-8") as handle:
            return handle.read().splitlines()
    except FileNotFoundError:
        return []


def locked_name(line: str) -> str:
    """Name that a line locks, "" for comments and patterns: name-epoch:version-release.arch."""
    match = packages.LOCK.match(line.strip())
    return match.group(1) if match else ""


def dnf_lines(module: Any, names: Iterable[str]) -> dict[str, str]:
    """Name -> the line that locks its installed version; none for a package that is not installed."""
    query = ["rpm", "-q", "--qf", "%{NAME}\t%{NAME}-%|EPOCH?{%{EPOCH}}:{0}|:%{VERSION}-%{RELEASE}.*\n", *sorted(names)]
    _rc, text, _err = module.run_command(query)
    return dict(line.split("\t") for line in text.splitlines() if "\t" in line)


def dnf_change(module: Any, hold: list[str], release: list[str]) -> None:
    """Write the lock file: entries of `release` and old entries of `hold` go, the installed versions of `hold` come."""
    lines = [line for line in dnf_locks() if locked_name(line) not in set(hold) | set(release)]
    if hold:
        wanted = dnf_lines(module, hold)
        missing = sorted(set(hold) - set(wanted))
        if missing:
            module.fail_json(msg="not installed, so no version can be held: " + ", ".join(missing))
        lines += wanted.values()
    os.makedirs(os.path.dirname(LOCKS), mode=0o755, exist_ok=True)
    with open(LOCKS, "w", encoding="utf-8") as handle:
        handle.write("\n".join(lines) + "\n")


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            manager=dict(type="str", required=True, choices=["apt", "dnf"]),
            hold=dict(type="list", elements="str", default=[]),
            release=dict(type="list", elements="str", default=[]),
        ),
        supports_check_mode=True,
    )
    apt = module.params["manager"] == "apt"
    if apt:
        named = held = apt_held(module)
    else:
        lines = dnf_locks()
        named = {locked_name(line) for line in lines}
        wanted = dnf_lines(module, module.params["hold"]) if module.params["hold"] else {}
        held = {name for name, line in wanted.items() if line in lines}  # at the version that is installed
    hold = sorted(set(module.params["hold"]) - held)
    release = sorted(set(module.params["release"]) & named)
    if not module.check_mode:
        if apt:
            for action, names in (("unhold", release), ("hold", hold)):
                if names:
                    module.run_command(["apt-mark", action, *names], check_rc=True)
        elif hold or release:
            dnf_change(module, hold, release)
    module.exit_json(changed=bool(hold or release), packages=hold + release)


if __name__ == "__main__":
    main()
