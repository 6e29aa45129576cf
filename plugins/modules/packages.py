#!/usr/bin/python
"""Documentation of the action plugin `packages`, which does the work."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: packages
short_description: Install and remove packages in one transaction
description:
  - Calls M(ansible.builtin.apt) or M(ansible.builtin.dnf).
  - In check mode the package manager is not asked, because the repository may not be configured yet. What was
    decided is reported as the change.
options:
  manager:
    description: Package manager of the host.
    type: str
    required: true
    choices: [apt, dnf]
  install:
    description: Packages to install. Each has C(name), and C(version) for an exact version.
    type: list
    elements: dict
    default: []
  remove:
    description: Names to remove, after the installation.
    type: list
    elements: str
    default: []
  streams:
    description: Module streams of dnf to enable first.
    type: list
    elements: str
    default: []
  repair:
    description: Finish an interrupted run of dpkg first.
    type: bool
    default: false
  update:
    description: Read the package lists first.
    type: bool
    default: true
  lock_timeout:
    description: Seconds to wait for the lock of the package manager.
    type: int
    default: 300
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Install one exact version and remove the old package
  gpufleet.hosts.packages:
    manager: apt
    install: [{name: nvidia-open, version: 580.126.09-1}]
    remove: [nvidia-open-570]
"""
RETURN = r"""
installed:
  description: Packages as they were asked for, with their versions.
  returned: always
  type: list
  elements: str
removed:
  description: Names that were to be removed.
  returned: always
  type: list
  elements: str
"""
