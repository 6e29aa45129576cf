"""Requests for HAMi's resources, by what HAMi v2.10.0 does with them."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from gpufleet.findings.finding import Finding, Severity

from tests.unit.lint.fleets import codes, errors, host_pool, lint_stack, sections
from tests.unit.lint.told import codes as told_codes

GPU, MEM, PART, CORES = (f"nvidia.com/{x}" for x in ("gpu", "gpumem", "gpumem-percentage", "gpucores"))


def stack(gpus: int = 1, scaling: float = 1.0, split: int = 10, hosts: int = 1) -> dict[str, Any]:
    vgpu = {"strategy": "hami", "splitCount": split, "memoryScaling": scaling}
    pool = host_pool("l4", "L4", gpus, hosts, os="ubuntu-22.04", driver="host", sharing="vgpu")
    return sections(pool, route="plugin", sharing={"vgpu": vgpu})


def pod(*limits: dict[str, Any], replicas: int = 0, **container: Any) -> str:
    """A pod with a container for each of `limits`."""
    listed = [
        {"name": f"c{i}", "image": "ubuntu:22.04", "resources": {"limits": x}, **container}
        for i, x in enumerate(limits)
    ]
    spec = {"runtimeClassName": "nvidia", "containers": listed}
    if replicas:
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"replicas": replicas, "template": {"spec": spec}},
        }
    else:
        body = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    return yaml.safe_dump({**body, "metadata": {"name": "p"}})


def the(code: str, found: list[Finding]) -> Finding:
    [only] = [x for x in found if x.code == code]
    return only


def test_rp_23_nine_vgpus_need_nine_cards() -> None:
    found = lint_stack(stack(), pod({GPU: 9, MEM: 3000}))
    assert errors(found) == ["GF630"]
    wrong = the("GF630", found)
    assert "9 x 3000 = 27000 MiB of 23034" in wrong.reason and "another card" in wrong.reason
    # Seven fit the memory, and still there is one card: HAMi does not take two vGPUs of a container from one.
    assert errors(lint_stack(stack(), pod({GPU: 7, MEM: 3000}))) == ["GF630"]
    assert errors(lint_stack(stack(gpus=8), pod({GPU: 7, MEM: 3000}))) == []
    assert errors(lint_stack(stack(), pod({GPU: 1, MEM: 21000}))) == []


@pytest.mark.parametrize(
    ("gpus", "limits", "wanted"),
    [
        (1, [{GPU: 1, MEM: 23034}], []),
        (1, [{GPU: 1, MEM: 23035}], ["GF631"]),
        (4, [{GPU: 4, MEM: 23034}], []),
        (2, [{GPU: 1, MEM: 30000}], ["GF631"]),  # two cards have it, one has not
        (4, [{GPU: 4, MEM: 23035}], ["GF631"]),  # for each of them
        (1, [{GPU: 1, MEM: 12000}, {GPU: 1, MEM: 11000}], []),
        (1, [{GPU: 1, MEM: 12000}, {GPU: 1, MEM: 12000}], ["GF639"]),  # containers of a pod are on one node
        (2, [{GPU: 1, MEM: 12000}, {GPU: 1, MEM: 12000}], []),
        (1, [{MEM: 24000}], ["GF631"]),  # the webhook adds one vGPU
        (1, [{GPU: 1, PART: 100}], []),
        (2, [{GPU: 1, MEM: 12000}, {GPU: 1, MEM: 12000}, {GPU: 1, MEM: 12000}], ["GF639"]),
        (2, [{GPU: 1, MEM: 8000}, {GPU: 1, MEM: 8000}, {GPU: 1, MEM: 20000}], []),
        (1, [{GPU: 1, PART: 60}, {GPU: 1, PART: 60}], ["GF639"]),
        (1, [{GPU: 1, MEM: 10, CORES: 60}, {GPU: 1, MEM: 10, CORES: 60}], ["GF639"]),
        (1, [{GPU: 1, MEM: 10, CORES: 100}, {GPU: 1, MEM: 10}], ["GF639"]),
        (2, [{GPU: 2, MEM: 20000}, {GPU: 1, MEM: 4000}], ["GF639"]),
        (1, [{GPU: 11, MEM: 100}], ["GF630"]),  # ten are registered, of one card
        (1, [{GPU: 1}], []),
    ],
)
def test_rp_23_memory_of_cards(gpus: int, limits: list[dict[str, Any]], wanted: list[str]) -> None:
    assert errors(lint_stack(stack(gpus), pod(*limits))) == wanted


def test_memory_that_is_scaled() -> None:
    assert errors(lint_stack(stack(scaling=2.0), pod({GPU: 1, MEM: 46068}))) == []
    assert errors(lint_stack(stack(scaling=2.0), pod({GPU: 1, MEM: 46069}))) == ["GF631"]


@pytest.mark.parametrize("text", ["8Gi", "8G", "4294967296", "2147483648"])
def test_memory_is_a_number_of_mib(text: str) -> None:
    found = lint_stack(stack(), pod({GPU: 1, MEM: text}))
    assert "GF632" in errors(found)
    assert "GF632" in told_codes(pod({GPU: 1, MEM: text}))  # without a stack too
    if text == "8Gi":
        assert "8192" in the("GF632", found).remedy


def test_percentages_and_cores() -> None:
    assert told_codes(pod({GPU: 1, PART: 101})) == ["GF633"]
    assert told_codes(pod({GPU: 1, PART: -1})) == ["GF633"]
    assert told_codes(pod({GPU: 1, PART: 100})) == []
    assert told_codes(pod({GPU: 1, MEM: 10, CORES: 101})) == ["GF634"]
    assert told_codes(pod({GPU: 1, MEM: 10, CORES: 100})) == []
    assert told_codes(pod({GPU: 1, MEM: 10, PART: 10})) == ["GF635"]
    assert errors(lint_stack(stack(), pod({GPU: 1, MEM: 10, PART: 10, CORES: 200}))) == []  # it runs


def test_whole_cards_are_named_in_a_note() -> None:
    found = the("GF636", lint_stack(stack(), pod({GPU: 1})))
    assert found.severity is Severity.NOTE and "2303" in found.remedy
    assert codes(lint_stack(stack(), pod({GPU: 1, MEM: 2000}))) == []
    assert codes(lint_stack(stack(), pod({GPU: 1, PART: 20}))) == []
    assert "GF636" not in told_codes(pod({GPU: 1}))


def test_privileged_containers_are_refused() -> None:
    privileged = {"securityContext": {"privileged": True}}
    assert errors(lint_stack(stack(), pod({GPU: 1, MEM: 10}, **privileged))) == ["GF637"]
    assert errors(lint_stack(stack(), pod({}, **privileged))) == []
    whole = sections(host_pool("l4", "L4"))
    assert "GF637" not in codes(lint_stack(whole, pod({GPU: 1}, **privileged)))  # the plugin does not mind


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({GPU: 1, MEM: 10000}, 8),  # two on each of the four cards
        ({GPU: 1, MEM: 100}, 40),  # ten times each card
        ({GPU: 1, MEM: 100, CORES: 30}, 12),
        ({GPU: 2, MEM: 10000}, 4),
        ({GPU: 1}, 4),  # a card for each
    ],
)
def test_replicas_against_the_cards(limits: dict[str, Any], most: int) -> None:
    two_nodes = stack(gpus=2, hosts=2)
    assert errors(lint_stack(two_nodes, pod(limits, replicas=most))) == []
    assert errors(lint_stack(two_nodes, pod(limits, replicas=most + 1))) == ["GF628"]


def greedy(wants: list[tuple[int, int, int]], gpus: int, memory: int, split: int, *, spread: bool) -> bool:
    """HAMi's Fit for containers that follow one another: cards by what is used of them, the first that have room."""
    cards = [[memory, 100, split] for _ in range(gpus)]
    for number, mib, cores in wants:
        if number > gpus:
            return False
        order = sorted(cards, key=lambda c: c[2] + c[0] / memory + c[1] / 100, reverse=spread)
        fitting = [c for c in order if c[2] > 0 and c[0] >= mib and c[1] >= cores and (cores or c[1] > 0)]
        fitting = [c for c in fitting if cores != 100 or c[2] == split][:number]
        if len(fitting) < number:
            return False
        for card in fitting:
            card[0], card[1], card[2] = card[0] - mib, card[1] - cores, card[2] - 1
    return True


def test_lint_and_hamis_scheduler_agree_on_generated_pods() -> None:
    """What lint calls impossible fails under both of HAMi's policies; what it lets pass runs under one of them."""
    chance, seen = random.Random(23), {True: 0, False: 0}
    for _ in range(400):
        gpus, split = chance.choice((1, 2, 4)), chance.choice((2, 10))
        limits: list[dict[str, Any]] = []
        wants: list[tuple[int, int, int]] = []
        for _ in range(chance.choice((1, 1, 2, 3))):
            number, kind = chance.choice((1, 1, 2, 3)), chance.choice(("mib", "mib", "part", "whole"))
            mib = {"mib": chance.choice((1000, 8000, 12000, 20000, 24000)), "part": 23034 * 40 // 100, "whole": 23034}
            cores = chance.choice((0, 0, 30, 60, 100)) if kind == "mib" else 100 if kind == "whole" else 0
            own = {GPU: number, "mib": {MEM: mib["mib"]}, "part": {PART: 40}, "whole": {}}
            limit = {GPU: number, **own[kind], **({CORES: cores} if kind == "mib" and cores else {})}
            limits.append(limit)
            wants.append((number, mib[kind], cores))
        found = errors(lint_stack(stack(gpus, split=split), pod(*limits)))
        registered = sum(number for number, _, _ in wants) <= gpus * split
        can = [registered and greedy(wants, gpus, 23034, split, spread=spread) for spread in (True, False)]
        assert any(can) == (not found), (gpus, split, limits, found)
        seen[not found] += 1
    assert min(seen.values()) > 80


def test_more_vgpus_than_cards_and_than_the_node_offers_are_told_once() -> None:
    """The smaller bound counts: who went down to what the node offers would still have too many."""
    found = lint_stack(stack(gpus=2, split=2), pod({GPU: 8, MEM: 3000}))
    assert errors(found) == ["GF630"] and "at most 2" in the("GF630", found).remedy
    assert errors(lint_stack(stack(gpus=2, split=2), pod({GPU: 2, MEM: 3000}))) == []
