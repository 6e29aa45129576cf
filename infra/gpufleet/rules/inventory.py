"""Rules about what Ansible needs to reach the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.path import join_path
from gpufleet.findings.registry import rule
from gpufleet.fleet.model import Fleet
from gpufleet.places.existing.hosts import PREPARED_OWNERS, listed_pools
from gpufleet.places.existing.model import node_pool

#: Names that mean something else to Ansible.
RESERVED_NAMES = ("all", "localhost", "ungrouped")

GF810 = rule(
    "GF810", Severity.ERROR,
    title="This stack lists no hosts that the roles could prepare.",
    reason="An inventory needs pools with `hosts:` and `driver: host` or `operator`. Nodes of AKS and nodes by "
    "nodeSelector are not listed, those of `driver: none` are left alone.",
    remedy="List the hosts with their addresses in the pool.",
    source="docs/inventory.md",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools:
          - {name: t4, nodeSelector: {rack: a}, gpu: T4}
    """,
    fix=("nodeSelector: {rack: a", "hosts: {gpu01: {address: 10.0.0.11}"),
)

GF811 = rule(
    "GF811", Severity.ERROR,
    title="Host {value} has no address.",
    reason="Ansible connects to it; the name of a node need not resolve where Ansible runs.",
    remedy="Write `{value}: {{address: ...}}`.",
    source="docs/inventory.md",
    wrong="""
        gpufleet:pools:
          - {name: t4, hosts: {gpu01: {}}, gpu: T4}
    """,
    fix=("gpu01: {", "gpu01: {address: 10.0.0.11"),
)

GF812 = rule(
    "GF812", Severity.ERROR,
    title="{value} means something else to Ansible.",
    reason="A host of this name would take the place of Ansible's own: tasks for the controller would run on it.",
    remedy="Give the node another name.",
    source="ANSIBLE-DOC (intro_inventory)",
    wrong="""
        gpufleet:pools:
          - {name: t4, hosts: {localhost: {address: 10.0.0.11}}, gpu: T4}
    """,
    fix=("localhost:", "gpu01:"),
)

GF813 = rule(
    "GF813", Severity.WARNING,
    title="The inventory holds no kubeconfig, so playbooks/upgrade.yml would drain nothing.",
    reason="The kubeconfig is a secret of the Pulumi stack; Ansible's modules read it from a file.",
    remedy="Set GPUFLEET_KUBECONFIG to a file, or pass `-e upgrade_kubeconfig=FILE` to the playbook.",
    source="docs/inventory.md",
    wrong="""
        gpufleet:cluster: {kind: existing, kubeconfig: {secret: true}}
        gpufleet:pools:
          - {name: t4, hosts: {gpu01: {address: 10.0.0.11}}, gpu: T4}
    """,
    fix=("secret: true", "path: idc.conf"),
)


def check_inventory(fleet: Fleet, kubeconfig: str | None) -> Iterator[Finding]:
    """What keeps Ansible from reaching the hosts, or their cluster; asked when an inventory is."""
    pools = [pool for pool in listed_pools(fleet) if pool.owner in PREPARED_OWNERS]
    if not pools:
        yield GF810.at("pools")
        return
    for pool in pools:
        for name, host in node_pool(pool).hosts.items():
            path = join_path(("pools", pool.index, "hosts", name))
            if host is None or host.address is None:
                yield GF811.at(path, value=name)
            if name in RESERVED_NAMES:
                yield GF812.at(path, value=name)
    if kubeconfig is None:
        yield GF813.at("cluster.kubeconfig")
