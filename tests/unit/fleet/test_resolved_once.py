"""Each question about a pool is asked once, however many rules, artifacts and lines of the plan need the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from gpufleet.fleet import resolve
from gpufleet.methods.mig import Mig
from gpufleet.methods.time_slicing import TimeSlicing
from gpufleet.places import PLACES

from tests.unit.config.samples import compile_base

HALF = {"strategy": "timeSlicing", "replicas": 2}
POOLS = {
    "sharing.half": HALF,
    "sharing.cut": {"strategy": "mig", "profile": "1g.10gb"},
    "pools[0].sharing": "half",
    "pools[1]": {"name": "l4", "hosts": {"n2": {}}, "gpu": "L4", "gpusPerNode": 2, "sharing": "half"},
    "pools[2]": {"name": "a100", "hosts": {"n3": {}}, "gpu": "A100-SXM4-80GB", "gpusPerNode": 8, "sharing": "cut"},
    "teams[0]": {"name": "a", "namespace": "a", "pools": ["t4", "l4", "a100"], "images": ["nvidia/cuda:12.8.1-base"]},
}


@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator"])
def test_three_pools(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        whole: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            asked[name] += 1
            return whole(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    place = type(PLACES["existing"])
    for name in ("hardware", "nodes", "labels", "default_runtime", "own_driver", "cluster_plan", "pool_resource"):
        count(place, name)
    for name in ("method_of", "serves", "known_driver", "profile_of", "predict_node"):
        count(resolve, name)
    for method in (TimeSlicing, Mig):
        count(method, "layout")
    changes = {"teams": [], **POOLS}
    if base == "existing-operator":
        changes |= {f"pools[{i}].driver": "operator" for i in range(3)}
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, compiled.found
    once_per_pool = ("hardware", "nodes", "labels", "method_of", "serves", "known_driver", "layout", "predict_node",
                     "pool_resource")  # fmt: skip
    # Under the operator's toolkit the operator decides on the default runtime.
    assert asked["default_runtime"] == (0 if base == "existing-operator" else 3)
    assert {name: asked[name] for name in once_per_pool} == dict.fromkeys(once_per_pool, 3)
    assert (asked["profile_of"], asked["cluster_plan"]) == (2, 1)  # two profiles, one cluster
