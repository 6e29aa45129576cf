"""From a stack file to its inventory: the one road that the command and Ansible's plugin share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpufleet.compiled import Compiled, MoreRules
from gpufleet.findings.finding import Finding, Severity
from gpufleet.fleet.model import Fleet
from gpufleet.inventory.inventory import Inventory, inventory
from gpufleet.rules.inventory import check_inventory
from gpufleet.stackfile.kubeconfig import kubeconfig_file


def kubeconfig_path(fleet: Fleet, root: Path, environment: Mapping[str, str]) -> str | None:
    """The absolute path. None: it is a secret of the Pulumi stack."""
    ref = fleet.place.kubeconfig(fleet.stack)
    path = kubeconfig_file(ref, root, environment)
    return str(path) if path else None


def inventory_rules(root: Path, environment: Mapping[str, str]) -> MoreRules:
    """The rules of an inventory, for `compile_file`."""

    def rules(fleet: Fleet | None) -> list[Finding]:
        return [] if fleet is None else list(check_inventory(fleet, kubeconfig_path(fleet, root, environment)))

    return rules


def inventory_of(compiled: Compiled, root: Path, environment: Mapping[str, str]) -> Inventory | None:
    """The inventory, None where there are errors."""
    fleet = compiled.fleet
    return None if fleet is None else inventory(fleet, kubeconfig_path(fleet, root, environment))


def warnings(compiled: Compiled) -> list[Finding]:
    """Those that the stack file does not acknowledge."""
    return [d for d in compiled.found if d.severity is Severity.WARNING and d.acknowledged is None]
