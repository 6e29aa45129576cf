"""An inventory as `ansible-inventory` prints it, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpufleet.inventory.inventory import Group, Inventory

#: How ansible-core 2.19 marks the form of its JSON.
_PROFILE = "inventory_legacy"


def as_json(value: Any) -> str:
    """JSON in the form of ansible-inventory."""
    return json.dumps(value, sort_keys=True, indent=4)


def listing(inventory: Inventory) -> dict[str, Any]:
    """What `ansible-inventory --list` holds."""
    content: dict[str, Any] = {"all": {"children": ["ungrouped", *_tops(inventory)]}}
    for group in inventory.groups:
        parts = {"hosts": list(group.hosts), "children": list(group.children)}
        content[group.name] = {key: value for key, value in parts.items() if value}
    variables = {name: values for name, values in inventory.variables().items() if values}
    return {**{k: v for k, v in content.items() if v}, "_meta": {"hostvars": variables, "profile": _PROFILE}}


def _tops(inventory: Inventory) -> list[str]:
    """Groups that are in no other one."""
    children = {child for group in inventory.groups for child in group.children}
    return [group.name for group in inventory.groups if group.name not in children]


def graph(inventory: Inventory) -> str:
    """What `ansible-inventory --graph` prints."""
    groups = {group.name: group for group in inventory.groups}
    lines = ["@all:", "  |--@ungrouped:"]
    for name in _tops(inventory):
        lines += _branch(groups[name], groups, 1)
    return "\n".join(lines)


def _branch(group: Group, groups: dict[str, Group], depth: int) -> Iterator[str]:
    yield f"{'  |' * depth}--@{group.name}:"
    for child in group.children:
        yield from _branch(groups[child], groups, depth + 1)
    for host in group.hosts:
        yield f"{'  |' * (depth + 1)}--{host}"
