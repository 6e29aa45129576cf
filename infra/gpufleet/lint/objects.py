"""All checks of objects that are neither configurations of the plugin nor workloads."""

from __future__ import annotations

from gpufleet.device_plugin import NodeLayout
from gpufleet.findings.finding import Finding
from gpufleet.lint.claims import check_claims
from gpufleet.lint.config import Checked
from gpufleet.lint.drivers import check_drivers
from gpufleet.lint.gather import Gathered
from gpufleet.lint.mig_files import check_mig_files
from gpufleet.lint.offered import offered_names
from gpufleet.lint.offers import Offers
from gpufleet.lint.queues import check_queues
from gpufleet.lint.quota import check_quota


def check_objects(
    run: Gathered, checked: list[Checked], offers: Offers, node: NodeLayout | None, *, stack: bool
) -> list[Finding]:
    """MIG layouts, claims, quotas, queues, drivers. `stack`: a stack makes the nodes, so they offer nothing else."""
    offered = offered_names(checked, offers, stack=stack)
    certain = offers.certain or stack
    return [
        *check_mig_files(run, node),
        *check_claims(run, stack),
        *check_quota(run, offered, certain=certain),
        *check_queues(run, offers, offered, certain=certain, stack=stack),
        *check_drivers(run),
    ]
