"""Rules about what Ansible needs to reach the hosts."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

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
