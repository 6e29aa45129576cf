"""Who does what lint says about labels, resources and taints has a pod that lint is quiet about, in one round."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from gpufleet.findings.finding import Finding
from gpufleet.lint.place import PoolNode
from gpufleet.lint.stack import of_fleet
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.config.samples import compile_data
from tests.unit.lint.fleets import errors, host_pool, lint_pools, sections
from tests.unit.lint.test_fleet import affinity, cuda_pod, wants

SHARING = {
    "half": {"strategy": "timeSlicing", "replicas": 2},
    "named": {"strategy": "timeSlicing", "replicas": 4, "renameByDefault": True},
}
TAINT = ["team=ml:NoSchedule"]


def fleet(route: str) -> tuple[PoolNode, ...]:
    compiled = compile_data(
        sections(
            host_pool("t4", gpus=4, sharing="half"),
            host_pool("plain", gpus=2, taints=TAINT),
            host_pool("a100", "A100-SXM4-80GB", 8, sharing="named", labels={"tier": "gold"}),
            route=route,
            cluster={"kind": "existing", "name": "lab", "site": "lab", "kubeconfig": {"path": "k.conf"},
                     "distribution": "kubeadm"},
            sharing=SHARING,
        )
    )  # fmt: skip
    assert compiled.fleet is not None, [(d.code, d.path, d.reason) for d in compiled.found]
    return of_fleet(compiled.fleet)


FLEETS = {route: fleet(route) for route in ("operator", "plugin")}

VALUES = {
    "gpufleet.dev/pool": ["t4", "plain", "a100", "a10O", "other"],
    "nvidia.com/gpu.product": [
        "Tesla-T4", "Tesla-T4-SHARED", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB-SHARED", "NVIDIA-H100-PCIe",
        "T4",
    ],
    "nvidia.com/gpu.count": ["1", "2", "4", "8", "32"],
    "nvidia.com/gpu.replicas": ["1", "2", "4", "8"],
    "nvidia.com/gpu.memory": ["15360", "81920", "40960"],
    "nvidia.com/gpu.sharing-strategy": ["none", "time-slicing", "mps"],
    "tier": ["gold", "silver"],
    "rack": ["r7"],
}  # fmt: skip
SELECTORS = st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=3).flatmap(
    lambda keys: st.fixed_dictionaries({key: st.sampled_from(VALUES[key]) for key in keys})
)
EXPRESSION = st.one_of(
    st.sampled_from(sorted(VALUES)).flatmap(
        lambda key: st.builds(
            lambda operator, value: wants(key, operator, value),
            st.sampled_from(["In", "NotIn", "Gt", "Lt"] if key.endswith(("count", "memory")) else ["In", "NotIn"]),
            st.sampled_from(VALUES[key]),
        )
    ),
    st.builds(wants, st.sampled_from(sorted(VALUES)), st.sampled_from(["Exists", "DoesNotExist"])),
)
TERMS = st.lists(st.lists(EXPRESSION, min_size=1, max_size=2), max_size=2)


def spot(path: str) -> tuple[str | int, ...]:
    parts = re.findall(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)', path)
    return tuple(int(number) if number else quoted or plain for quoted, number, plain in parts)


def instead(remedy: str, *, own: bool) -> tuple[str, str]:
    """The label that the remedy names: the pool's selector, or the label with the value that the nodes have."""
    match = re.fullmatch(r"To run on \S+, select instead of it (\S+): (\S+?)(?:, or (\S+): (\S+))?\.", remedy)
    assert match, remedy
    first, second = (match[1], match[2]), (match[3], match[4])
    return second if own and match[3] else first


def follow(body: dict[str, Any], found: list[Finding], *, own: bool) -> dict[str, Any]:
    """The pod after all that the findings say to do."""
    made = copy.deepcopy(body)
    spec, gone = made["spec"], []
    for one in found:
        path = spot(one.path)
        if one.code == "GF625":
            key, value = instead(one.remedy, own=own)
            if "affinity" in path:
                gone.append(path)
            else:
                spec["nodeSelector"].pop(path[-1], None)
            spec.setdefault("nodeSelector", {})[key] = value
        elif one.code == "GF603":
            limit = spec["containers"][0]["resources"]["limits"]
            number = limit.pop(path[-1])
            if one.closest is None:
                assert one.remedy.startswith("Remove it")
            else:
                limit[one.closest] = number
        elif one.code == "GF620":
            spec["tolerations"] = [{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}]
    for path in sorted(gone, key=lambda p: -int(p[-1])):
        term = made
        for step in path[:-1]:
            term = term[step]  # type: ignore[index]
        term.pop(int(path[-1]))  # type: ignore[call-arg]
    return made


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("route", sorted(FLEETS))
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_following_the_advice_ends(route: str, own: bool, data: st.DataObject) -> None:
    selector, terms = data.draw(SELECTORS), data.draw(TERMS)
    resource = data.draw(st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpu.shared"]))
    spec: dict[str, Any] = {"runtimeClassName": "nvidia"}
    if selector:
        spec["nodeSelector"] = selector
    if terms:
        spec["affinity"] = affinity(*terms)
    hami = data.draw(st.sampled_from([{}, {"nvidia.com/gpumem": 2000, "nvidia.com/gpucores": 20}]))
    body = yaml.safe_load(cuda_pod({resource: 1, **hami}, **spec))
    found = [one for one in lint_pools(FLEETS[route], yaml.safe_dump(body)) if one.severity.value == "error"]
    after = yaml.safe_dump(follow(body, found, own=own))
    assert errors(lint_pools(FLEETS[route], after)) == [], (found, after)
