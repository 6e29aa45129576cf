"""Hosts of an existing cluster: what the stack's driver owner and sharing say that they bring."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from twin import nodes
from twin.advertiser import node as rules

SHARING = {
    "small": {"strategy": "mig", "profile": "1g.10gb"}, "mixed": {
        "strategy": "mig", "instances": {"1g.10gb": 2, "3g.40gb": 1}},
    "crowded": {"strategy": "mig", "instances": {"3g.40gb": 2, "1g.10gb": 1}},
    "foreign": {"strategy": "mig", "profile": "1g.5gb"}, "slices": {"strategy": "timeSlicing", "replicas": 4},
    "odd": "mig"}


def facts(sharing: str | None, driver: str | None = "host", gpu: str = "A100-SXM4-80GB") -> dict[str, str | None]:
    pool: dict[str, Any] = {"name": "p", "hosts": {"gpu01": None}, "gpu": gpu, "gpusPerNode": 2}
    pool |= {"sharing": sharing} if sharing else {}
    pool |= {"driver": driver} if driver else {}
    config = {"cluster": {"kind": "existing"}, "pools": [pool], "sharing": SHARING}
    [node] = nodes.declared(config, "s")
    return dict(node.facts)


ONE = "1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb"


@pytest.mark.parametrize(("sharing", "layout"), [
    ("small", f"0={ONE};1={ONE}"), ("mixed", "0=1g.10gb,1g.10gb,3g.40gb;1=1g.10gb,1g.10gb,3g.40gb"),
    ("crowded", None), ("foreign", None), ("slices", None), ("odd", None), ("absent", None), (None, None),
])
def test_the_roles_cut_the_gpus_of_their_own_hosts(sharing: str | None, layout: str | None) -> None:
    assert facts(sharing) == {nodes.DRIVER: None, nodes.MIG: layout}
    assert facts(sharing, driver=None) == facts(sharing)  # the owner of hosts is host unless said otherwise


@pytest.mark.parametrize("owner", ["operator", "none"])
def test_hosts_that_are_not_prepared_have_no_driver_and_keep_their_layout(owner: str) -> None:
    assert facts("small", owner) == {nodes.DRIVER: "none"}


def test_a_model_that_nobody_knows_is_not_cut() -> None:
    assert facts("small", gpu="X9000") == {nodes.DRIVER: None, nodes.MIG: None}


def test_a_node_carries_them_and_the_advertiser_reads_them() -> None:
    made = nodes.manifest(nodes.Node("n", gpus=2, model="A100-SXM4-80GB", facts=facts("mixed")))
    hardware = rules.hardware(made)
    assert hardware
    assert hardware.layout == dict.fromkeys((0, 1), ("1g.10gb", "1g.10gb", "3g.40gb"))
    assert rules.has_driver(made, [])
    assert nodes.DRIVER not in made["metadata"]["annotations"]
    bare = nodes.manifest(nodes.Node("n", gpus=2, model="A100-SXM4-80GB", facts=facts("mixed", "operator")))
    assert not rules.has_driver(bare, [])
    assert nodes.MIG not in bare["metadata"]["annotations"]


class Api:
    """As much of core/v1 as `apply` uses: a node that is there already."""

    def __init__(self) -> None:
        self.patches: list[dict[str, Any]] = []

    def create_node(self, body: dict[str, Any]) -> None:
        raise client.ApiException(status=409)

    def patch_node(self, name: str, body: dict[str, Any]) -> None:
        self.patches.append(body["metadata"]["annotations"])


def test_what_the_stack_no_longer_says_goes_from_a_node_that_exists() -> None:
    api = Api()
    for sharing, driver in (("small", "host"), ("slices", "host"), ("small", "operator")):
        nodes.apply(api, [nodes.Node("n", gpus=2, facts=facts(sharing, driver))])  # type: ignore[arg-type]
    cut, whole, operators = api.patches
    assert (cut[nodes.DRIVER], cut[nodes.MIG]) == (None, f"0={ONE};1={ONE}")
    assert (whole[nodes.DRIVER], whole[nodes.MIG]) == (None, None)
    assert operators[nodes.DRIVER] == "none"
    assert nodes.MIG not in operators
