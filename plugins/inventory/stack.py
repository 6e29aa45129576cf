"""Inventory plugin `stack`: the hosts of a gpufleet stack file, with the variables that its plan gives the roles."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import needs

DOCUMENTATION = r"""
---
name: stack
short_description: Hosts of a gpufleet stack file
description:
  - Reads the hosts of a stack file, and derives groups and the roles' variables from its plan.
  - The source is a file that ends in C(.gpufleet.yml) or C(.gpufleet.yaml), or the stack file itself
    (C(Pulumi.<stack>.yaml)).
  - An input with errors gives the findings that C(gpufleet plan) prints, and no hosts at all.
  - Groups are C(gpu_hosts), C(pool_<name>) for each pool and C(driver_<owner>) for each driver owner.
options:
  plugin:
    description: Name of the plugin.
    type: str
    required: true
    choices: [gpufleet.hosts.stack]
  stack:
    description: A stack of the project, the nearest directory upwards that holds C(Pulumi.yaml). Not with O(file).
    type: str
  file:
    description: A stack file anywhere; relative to the source. Not with O(stack).
    type: str
notes:
  - It needs the Python package C(gpufleet) where Ansible runs.
  - A file that names a stack works as it is. A stack file as the source has to be allowed in C(ansible.cfg), by
    C(enable_plugins = gpufleet.hosts.stack, ...) in the section C(inventory).
author: gpufleet maintainers
"""

EXAMPLES = r"""
# inventories/idc.gpufleet.yml, used as: ansible-playbook gpufleet.hosts.site -i inventories/idc.gpufleet.yml
plugin: gpufleet.hosts.stack
stack: idc
"""

# Sources whose errors have been shown.
_REPORTED: set[str] = set()


class InventoryModule(BaseInventoryPlugin):
    """Adds what the plan says; decides nothing."""

    NAME = "gpufleet.hosts.stack"
    # No value of a stack file that comes here can be a template: the models allow no braces (stackfile/hosts.py).
    trusted_by_default = True

    def verify_file(self, path: str) -> bool:
        """Whether the source is ours, by its name; of a stack file also by what it holds."""
        if not super().verify_file(path):
            return False
        name = Path(path).name
        return name.endswith((".gpufleet.yml", ".gpufleet.yaml")) or _is_stack_file(Path(path))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Adds groups, hosts and variables of the stack.

        Raises:
            AnsibleParserError: with everything that is wrong; nothing has been added then.
            SystemExit: the same for a stack file as the source. Ansible goes on to its next plugin after an error, its
                YAML plugin takes any mapping for an inventory, and a play over no hosts would end well.
        """
        super().parse(inventory, loader, path, cache)
        if path in _REPORTED:  # the plugin `auto` tries at once what this one refused
            _REPORTED.remove(path)
            raise AnsibleParserError("the errors are shown above")
        try:
            self._add(Path(path) if _is_stack_file(Path(path)) else self._configured(path))
        except AnsibleParserError as error:
            _REPORTED.add(path)
            if not _is_stack_file(Path(path)):
                raise
            self.display.error(str(error), wrap_text=False)
            raise SystemExit(4) from None

    def _configured(self, path: str) -> Path:
        """The stack file that a configuration names."""
        self._read_config_data(path)
        stack, file = self.get_option("stack"), self.get_option("file")
        folder = Path(path).resolve().parent
        if (stack is None) == (file is None):
            raise AnsibleParserError(f"{path}: give stack or file")
        if file is not None:
            return (folder / str(file)).resolve()
        project = _product("gpufleet.stackfile.project").project(folder)
        try:
            return Path(project.find(stack))
        except LookupError as error:
            raise AnsibleParserError(f"{path}: {error}") from None

    def _add(self, file: Path) -> None:
        planned = _planned(file, lambda text: self.display.warning(text, formatted=True))
        for group in planned.groups:
            self.inventory.add_group(group.name)
            for key, value in group.variables.items():
                self.inventory.set_variable(group.name, key, value)
            for host in group.hosts:
                self.inventory.add_host(host, group=group.name)
        for group in planned.groups:
            for child in group.children:
                self.inventory.add_child(group.name, child)
        for host, variables in planned.hosts.items():
            for key, value in variables.items():
                self.inventory.set_variable(host, key, value)


def _planned(file: Path, warn: Callable[[str], None]) -> Any:
    """The inventory of a stack file. Raises AnsibleParserError with the diagnostics that `gpufleet plan` prints."""
    load, told = _product("gpufleet.inventory.load"), _product("gpufleet.findings.render")
    project = _product("gpufleet.stackfile.project").project(file.parent)
    root, shown = project.root, project.shown(file)
    try:
        compiled = _product("gpufleet.compiled").compile_file(file, None, shown, load.inventory_rules(root, os.environ))
    except OSError as error:
        raise AnsibleParserError(f"cannot read {file}: {error.strerror}") from None
    inventory = load.inventory_of(compiled, root, os.environ)
    if inventory is None:
        lines = [f"{shown}:", *map(told.text, compiled.found), told.summary(compiled.found)]
        raise AnsibleParserError("\n\n".join(lines))
    for warning in load.warnings(compiled):
        warn(told.text(warning))
    return inventory


def _is_stack_file(path: Path) -> bool:
    """`Pulumi.<stack>.yaml` with a key of gpufleet in it."""
    if not (path.name.startswith("Pulumi.") and path.suffix in (".yaml", ".yml") and path.stem != "Pulumi"):
        return False
    try:
        return "gpufleet:" in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _product(module: str) -> Any:
    """A module of gpufleet, which has to be installed beside Ansible."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise AnsibleParserError(f"{error}. {needs.GPUFLEET}") from None
