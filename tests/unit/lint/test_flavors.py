"""Flavours of Kueue against the pools of a stack."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.lint.fleets import errors, host_pool, lint_stack, sections
from tests.unit.lint.test_fleet import cuda_pod, the

STACK = sections(
    host_pool("h100", "H100-PCIE-80GB", 4, taints=["team=ml:NoSchedule"]),
    host_pool("t4", gpus=4, sharing="s"),
    sharing={"s": {"strategy": "timeSlicing", "replicas": 4, "renameByDefault": True}},
)
POOL = "gpufleet.dev/pool"


def flavor(name: str, labels: dict[str, str], **spec: Any) -> str:
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": name}}
    return yaml.safe_dump({**head, "spec": {"nodeLabels": labels, **spec}})


def queue(**flavors: dict[str, int]) -> str:
    covered = list(next(iter(flavors.values())))
    rows = [
        {"name": name, "resources": [{"name": key, "nominalQuota": n} for key, n in given.items()]}
        for name, given in flavors.items()
    ]
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}}
    return yaml.safe_dump({**head, "spec": {"resourceGroups": [{"coveredResources": covered, "flavors": rows}]}})


@pytest.mark.parametrize(
    ("labels", "closest"),
    [
        ({POOL: "h100"}, None),
        ({POOL: "h1OO"}, "h100"),
        ({POOL: "a100"}, "h100"),
        ({"nvidia.com/gpu.product": "Tesla-T4"}, None),  # renamed, so the product keeps its name
        ({"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, "Tesla-T4"),
        ({POOL: "h100", "nvidia.com/gpu.product": "Tesla-T4"}, "-"),  # each is there, not on one node
        ({"rack": "r7"}, None),  # nobody here knows
        ({}, None),
    ],
)
def test_nodes_of_a_flavor(labels: dict[str, str], closest: str | None) -> None:
    found = lint_stack(STACK, flavor("f", labels))
    if closest is None:
        assert errors(found) == []
        return
    wrong = the("GF640", found)
    assert POOL in wrong.remedy and wrong.path.startswith("spec.nodeLabels[")
    if len(labels) == 1:
        assert wrong.closest == closest
        assert errors(lint_stack(STACK, flavor("f", {next(iter(labels)): closest}))) == []


def test_a_flavor_gives_what_its_nodes_offer() -> None:
    flavors = flavor("h100", {POOL: "h100"}), flavor("t4", {POOL: "t4"})
    gpu, shared = "nvidia.com/gpu", "nvidia.com/gpu.shared"
    assert errors(lint_stack(STACK, queue(h100={gpu: 4}), *flavors)) == []
    wrong = the("GF641", lint_stack(STACK, queue(h100={gpu: 4}, t4={gpu: 4}), *flavors))
    assert (wrong.path, wrong.allowed) == ("spec.resourceGroups[0].flavors[1].resources[0].name", (shared,))
    both = queue(h100={gpu: 4, shared: 0}, t4={gpu: 0, shared: 16})
    assert errors(lint_stack(STACK, both, *flavors)) == []
    assert errors(lint_stack(STACK, queue(other={gpu: 4}), *flavors)) == []  # a flavour that the cluster may have
    assert errors(lint_stack(STACK, queue(any={gpu: 4}), flavor("any", {}))) == []


def test_kueue_adds_the_tolerations_of_a_flavor() -> None:
    asks = yaml.safe_load(cuda_pod({"nvidia.com/gpu": 1}))
    assert errors(lint_stack(STACK, yaml.safe_dump(asks))) == ["GF620"]
    asks["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "users"}
    text = yaml.safe_dump(asks)
    assert errors(lint_stack(STACK, text)) == []  # flavours that are not here may have any
    assert errors(lint_stack(STACK, text, flavor("h100", {POOL: "h100"}))) == ["GF620"]
    tolerations = [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]
    assert errors(lint_stack(STACK, text, flavor("h100", {POOL: "h100"}, tolerations=tolerations))) == []
