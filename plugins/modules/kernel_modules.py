#!/usr/bin/python
"""Unload and load kernel modules in order."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_modules
short_description: Unload and load kernel modules in the given order
description:
  - A module that is in the wanted state already is left alone. Unlike a list of single steps, the order is kept and a
    failure names what holds the module.
options:
  unload:
    description: Modules to unload, in this order.
    type: list
    elements: str
    default: []
  load:
    description: Modules to load, in this order.
    type: list
    elements: str
    default: []
  proc_root: {description: Where procfs is mounted., type: path, default: /proc}
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Load the driver
  gpufleet.hosts.kernel_modules:
    load: [nvidia, nvidia_uvm]
"""
RETURN = r"""
modules:
  description: Modules that were loaded or unloaded.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.hosts.plugins.module_utils import hardware


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            unload=dict(type="list", elements="str", default=[]),
            load=dict(type="list", elements="str", default=[]),
            proc_root=dict(type="path", default="/proc"),
        ),
        supports_check_mode=True,
    )
    root = module.params["proc_root"]
    loaded = hardware.loaded_modules(root)
    unload = [name for name in module.params["unload"] if name in loaded]
    load = [name for name in module.params["load"] if name not in loaded or name in unload]
    if not module.check_mode:
        for flag, names in (("-r", unload), ("", load)):
            for name in names:
                command = ["modprobe", flag, name] if flag else ["modprobe", name]
                status, _out, err = module.run_command(command)
                present = name in hardware.loaded_modules(root)
                word = "unloaded" if flag else "loaded"
                if status != 0 or present == bool(flag):
                    holders = hardware.device_holders()
                    listed = ", ".join("{name} ({pid})".format(**holder) for holder in holders[:10])
                    msg = "{} cannot be {}: {}".format(name, word, err.strip() or "no reason")
                    module.fail_json(
                        msg=msg + (f"; processes with a GPU open: {listed}" if listed else ""),
                        holders=holders,
                        modules=hardware.loaded_modules(root),
                    )
    module.exit_json(changed=bool(unload or load), modules=unload + load)


if __name__ == "__main__":
    main()
