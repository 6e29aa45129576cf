"""All rules over a fleet, in the order of the stack file."""

from __future__ import annotations

from gpufleet.findings.finding import Finding
from gpufleet.fleet.model import Fleet
from gpufleet.places.aks.checks import check_aks_pool, check_aks_stack
from gpufleet.places.existing.checks import check_existing_pool, check_existing_stack
from gpufleet.plan.hosts import check_hosts
from gpufleet.rules.check_advice import check_advice
from gpufleet.rules.check_images import check_images
from gpufleet.rules.check_labels import check_labels
from gpufleet.rules.check_mig import check_mig
from gpufleet.rules.check_owner import check_owner, check_release
from gpufleet.rules.check_selectors import check_selectors
from gpufleet.rules.check_sharing import check_pool_sharing, check_sharing
from gpufleet.rules.check_software import check_operator, check_plugin
from gpufleet.rules.check_taints import check_taints
from gpufleet.rules.check_teams import check_namespace, check_teams, check_workload_tolerations


def check(fleet: Fleet) -> list[Finding]:
    """Everything that is wrong with a stack, or worth a warning."""
    found: list[Finding] = []
    for pool in fleet.pools:
        found += check_aks_pool(pool, fleet)
        found += check_existing_pool(pool, fleet)
        found += check_owner(pool, fleet)
        found += check_taints(pool, fleet)
        found += check_labels(pool, fleet)
        found += check_pool_sharing(pool, fleet)
        found += check_mig(pool, fleet)
    found += check_hosts(fleet.stack)
    found += check_aks_stack(fleet)
    found += check_existing_stack(fleet)
    found += check_release(fleet)
    found += check_operator(fleet)
    found += check_selectors(fleet)
    found += check_plugin(fleet)
    found += check_sharing(fleet)
    found += check_namespace(fleet)
    found += check_teams(fleet)
    found += check_workload_tolerations(fleet)
    found += check_images(fleet)
    found += check_advice(fleet)
    return found
