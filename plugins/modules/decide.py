#!/usr/bin/python
"""Documentation of the action plugin `decide`, which does the work."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: decide
short_description: Compare what the probe saw with what the variables and the catalogue want
description:
  - Reads the fact C(gpu_probe), the variables of the roles and the catalogue's tables. It does not connect to the host.
  - The plan in the result holds what has to change, and nothing else. An empty plan is a host as wanted.
  - It runs on the controller and needs the Python package C(gpufleet) there.
options:
  subject:
    description: What to decide about.
    type: str
    required: true
    choices: [preflight, driver, fabric, toolkit, runtime_check, kernels, mig, health, facts, last_good, boot_order,
      site, verify]
  before:
    description: Effective configuration of the runtime before a change, for O(subject=runtime_check).
    type: str
    default: ""
  kernels:
    description: Kernel packages before a change, for O(subject=kernels).
    type: list
    elements: str
    default: []
  exchange:
    description: Whether a loaded module may be exchanged, for O(subject=driver).
    type: bool
    default: true
  smoke:
    description: Result of the smoke test, for O(subject=facts).
    type: dict
    default: {}
  healthy:
    description: Whether the health check passed, for O(subject=facts).
    type: bool
    default: true
seealso:
  - module: gpufleet.hosts.probe
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Read the host
  gpufleet.hosts.probe:

- name: See what the driver needs
  gpufleet.hosts.decide:
    subject: driver
  register: driver

- name: Show it
  ansible.builtin.debug:
    msg: "{{ driver.plan.changes or 'nothing to do' }}"
"""
RETURN = r"""
plan:
  description: What to do. Further keys depend on the subject.
  returned: always
  type: dict
  contains:
    changes:
      description: What will change, in words.
      returned: always
      type: list
      elements: str
    due:
      description: Whether anything is to be done.
      returned: always
      type: bool
    findings:
      description: What is wrong with the host. Each has code, severity, title, message, reason and remedy.
      returned: always
      type: list
      elements: dict
    errors:
      description: How many findings are errors.
      returned: always
      type: int
    report:
      description: The findings as text.
      returned: always
      type: str
    undo:
      description: How the files get back to what they are now, as options of M(gpufleet.hosts.files).
      returned: always
      type: dict
    may_reboot:
      description: Whether the host may be rebooted, because it is not in use.
      returned: always
      type: bool
ansible_facts:
  description: C(gpu_reboot_required) and C(gpu_reboot_reasons).
  returned: for subjects that may need a reboot
  type: dict
"""
