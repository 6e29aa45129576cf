"""Rules about the registry that images come from."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet

GF243 = rule(
    "GF243", Severity.WARNING,
    title="Nothing makes the Secret {value}, and this stack makes the cluster.",
    reason="Pods that pull with a Secret wait until it is there, and the release is taken back when they wait too "
    "long. A new cluster cannot have it before the first `pulumi up`.",
    remedy="Set `images: {{pullSecrets: [NAME], makePullSecret: true}}` and "
    "`pulumi config set --secret gpufleet:pullSecret < ~/.docker/config.json`.",
    source="K8S-DOC (pull-image-private-registry); HELM-DOC (helm_upgrade)",
    wrong="gpufleet:stack: {kind: plugin, images: {pullSecrets: [login]}}",
    right="""
        gpufleet:stack: {kind: plugin, images: {pullSecrets: [login], makePullSecret: true}}
        gpufleet:pullSecret: {secure: v1:abc}
    """,
)


@check("stack", GF243)
def secrets_of_a_new_cluster(fleet: Fleet) -> Iterator[Finding]:
    """Where the stack makes the cluster, it has to make what its pods need there."""
    images = fleet.stack.stack.images
    if fleet.place.kubeconfig(fleet.stack) is None:
        for i, name in enumerate(images.pull_secrets):
            if name != images.made_secret:
                yield GF243.at(f"stack.images.pullSecrets[{i}]", value=name)
