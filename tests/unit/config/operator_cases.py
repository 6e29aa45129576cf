"""Rules about raw Helm values, and about nodes that somebody else labels."""

from __future__ import annotations

from typing import Any

from tests.unit.config.case import Case
from tests.unit.config.samples import REMOVE

MIG = "nvidia.com/mig.config"
WHERE = "pools[0].nodeSelector"


def by_selector(labels: dict[str, str], sharing: dict[str, Any] | None = None, **pool: Any) -> dict[str, Any]:
    """The first pool finds its nodes by these labels (and one of its own)."""
    changes: dict[str, Any] = {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "b", **labels}}
    if sharing is not None:
        changes |= {"sharing.own": sharing, "pools[0].sharing": "own"}
    return {**changes, **{f"pools[0].{key}": value for key, value in pool.items()}}


CUT = {"strategy": "mig", "instances": {"1g.10gb": 2}}
A100 = {"driver": "operator", "gpu": "A100-SXM4-80GB"}
TWICE = {"strategy": "timeSlicing", "replicas": 2}
CONFIG = {"nvidia.com/device-plugin.config": "own"}

OPERATOR = [
    # ---- NV-10: null and empty values
    Case(
        "GF224",
        "stack.values.toolkit.installDir",
        value="null",
    ),
    Case(
        "GF224",
        "stack.values.validator.plugin",
        "aks-operator",
        {"stack.values": {"validator": {"plugin": ""}}},
        {"stack.values": {"validator": {"version": ""}}},
        value='""',
    ),
    Case(
        "GF224",
        "stack.values.driver.manager.env[0].value",
        "aks-operator",
        {"stack.values": {"driver": {"manager": {"env": [{"name": "A", "value": None}]}}}},
        {"stack.values": {"driver": {"manager": {"env": [{"name": "A", "value": "b"}]}}}},
    ),
    # ---- NV-22: HAMi's label on nodes that somebody else labels
    Case(
        "GF225",
        WHERE,
        says='{"gpu": "on"}',
    ),
    Case(
        "GF225",
        WHERE,
        "existing-operator",
        by_selector({"gpu": "off"}, {"strategy": "hami"}),
        by_selector({"gpu": "on"}, {"strategy": "hami"}),
    ),
    # ---- the MIG manager's label
    Case(
        "GF225",
        WHERE,
        "existing-operator",
        by_selector(CONFIG, CUT, **A100),
        by_selector({MIG: "2x1g.10gb", **CONFIG}, CUT, **A100),
        says=f'{{"{MIG}": "2x1g.10gb"}}',
    ),
    # ---- NV-40: a label that cuts what is to be shared
    Case(
        "GF317",
        WHERE,
        value=f"{MIG}=all-balanced",
        says="timeSlicing",
    ),
    Case(
        "GF317",
        WHERE,
        "existing-plugin",
        by_selector({MIG: "all-1g.10gb"}, gpu="A100-SXM4-80GB"),
        by_selector({MIG: "all-1g.10gb"}, {**CUT}, gpu="A100-SXM4-80GB"),
        says="none",
    ),
]
