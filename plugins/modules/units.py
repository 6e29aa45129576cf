#!/usr/bin/python
"""Documentation of the action plugin `units`, which does the work."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: units
short_description: Bring several systemd units into a state
description:
  - Calls M(ansible.builtin.systemd_service) for each unit, in the given order, and stops at the first that fails.
  - In check mode systemd is not asked, because the package that brings the unit may not be installed yet. What
    was decided is reported as the change.
options:
  units:
    description: Units. Each has C(name), and any of C(enabled), C(state) and C(masked).
    type: list
    elements: dict
    required: true
  daemon_reload:
    description: Let systemd read its unit files first.
    type: bool
    default: false
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Start the persistence daemon, now and at boot
  gpufleet.hosts.units:
    units:
      - name: nvidia-persistenced.service
        enabled: true
        state: started
"""
RETURN = r"""
units:
  description: Names of the units.
  returned: always
  type: list
  elements: str
"""
