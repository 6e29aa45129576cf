#!/usr/bin/python
"""Rebuild the initramfs when it is older than a module configuration."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: initramfs
short_description: Rebuild the initramfs images that are older than given files
description:
  - A blacklist that is not in the initramfs has no effect at boot. The rebuild is due while an image is older than
    one of the files, so that a run that was interrupted between the two makes up for it.
options:
  command:
    description: Program and arguments that rebuild all images.
    type: list
    elements: str
    required: true
  newer_than:
    description: Files that the images have to be newer than.
    type: list
    elements: str
    required: true
  force: {description: Rebuild in any case., type: bool, default: false}
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Put the blacklist into the initramfs
  gpufleet.hosts.initramfs:
    command: [update-initramfs, -u, -k, all]
    newer_than: [/etc/modprobe.d/gpufleet-blacklist.conf]
"""
RETURN = r"""
images:
  description: Images that were too old.
  returned: always
  type: list
  elements: str
"""

import glob
import os

from ansible.module_utils.basic import AnsibleModule

PATTERNS = ("/boot/initrd.img-*", "/boot/initramfs-*.img")


def stale(files: list[str]) -> list[str]:
    """Images older than one of the files."""
    times = [os.stat(path).st_mtime for path in files if os.path.exists(path)]
    limit = max(times, default=0)
    return sorted(path for pattern in PATTERNS for path in glob.glob(pattern) if os.stat(path).st_mtime < limit)


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            command=dict(type="list", elements="str", required=True),
            newer_than=dict(type="list", elements="str", required=True),
            force=dict(type="bool", default=False),
        ),
        supports_check_mode=True,
    )
    images = stale(module.params["newer_than"])
    due = bool(images) or module.params["force"]
    if due and not module.check_mode:
        module.run_command(module.params["command"], check_rc=True)
    module.exit_json(changed=due, images=images)


if __name__ == "__main__":
    main()
