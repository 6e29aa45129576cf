"""Labels that a stack file may not set, because somebody else owns them."""

from __future__ import annotations

from infra.config.diagnostics import Diagnostic, diagnostic
from infra.config.pools import AksPool, Pool
from infra.config.source import join_path
from infra.plan.names import DEPLOY_LABEL, OPERATOR_CONFIG_LABEL, POOL_LABEL
from infra.plan.taints import SPOT_KEY

#: AKS refuses user labels under these prefixes (AKS documentation: use-labels).
AKS_RESERVED = ("kubernetes.azure.com/", "kubernetes.io/")
#: Derived by the plan, or written by feature discovery and the operator.
DERIVED = (POOL_LABEL, OPERATOR_CONFIG_LABEL, DEPLOY_LABEL, "nvidia.com/gpu.", "nvidia.com/mig.", "nvidia.com/mps.")


def check_labels(pool: Pool, path: str) -> list[Diagnostic]:
    """Reserved and derived keys; the spot label may be restated with the value that AKS gives it."""
    found = []
    for key, value in pool.labels.items():
        where = join_path((*_parts(path), "labels", key))
        if key == SPOT_KEY and isinstance(pool, AksPool) and pool.spot and value == "spot":
            continue
        if isinstance(pool, AksPool) and key.startswith(AKS_RESERVED):
            found.append(
                diagnostic("GF403", where, value=key, why="AKS keeps this prefix for itself and refuses the pool.")
            )
        elif key.startswith(DERIVED):
            found.append(
                diagnostic(
                    "GF403", where, value=key, why="gpufleet or NVIDIA's software writes it from what is declared."
                )
            )
    return found


def _parts(path: str) -> tuple[str | int, ...]:
    from infra.config.source import split_path

    return split_path(path)
