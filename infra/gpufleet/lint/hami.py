"""Requests for HAMi's resources: what its webhook and its scheduler make of them.

Every rule is read in Project-HAMi/HAMi v2.10.0, pkg/device/nvidia/device.go (MutateAdmission, GenerateResourceRequests,
Fit), pkg/scheduler/score.go (fitInDevices) and pkg/scheduler/webhook.go: a container's vGPUs come from different cards,
gpumem counts for each of them, a container without gpumem takes all memory and all cores of its cards.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.lint.demand import is_sidecar, numbers, place_of, requests
from gpufleet.lint.document import Document, truth
from gpufleet.lint.offers import HAMI, HAMI_CORES, HAMI_MEMORY, HAMI_PERCENTAGE
from gpufleet.lint.place import Cards
from gpufleet.lint.pods import Container, containers

GPU = "nvidia.com/gpu"
_MOST_MIB = 2**31 - 1
_ALL = 100


def check_requests(document: Document) -> Iterator[Finding]:
    """What is wrong whatever the cards are."""
    for container in containers(document):
        asked = numbers(container)
        if not HAMI & set(asked):
            continue
        items = requests(container)
        memory, percentage, cores = (asked.get(name) for name in (HAMI_MEMORY, HAMI_PERCENTAGE, HAMI_CORES))
        if memory is not None and not 0 <= memory <= _MOST_MIB:
            text = items[HAMI_MEMORY].text
            mib = max(1, memory // 2**20)
            yield document.found(
                "GF632", place_of(container, HAMI_MEMORY), items[HAMI_MEMORY], value=text, bytes=memory, mib=mib
            )
        if percentage is not None and not 0 <= percentage <= _ALL:
            path = place_of(container, HAMI_PERCENTAGE)
            yield document.found("GF633", path, items[HAMI_PERCENTAGE], value=percentage)
        if cores is not None and cores > _ALL:
            yield document.found("GF634", place_of(container, HAMI_CORES), items[HAMI_CORES], value=cores)
        if memory and percentage:
            path = place_of(container, HAMI_PERCENTAGE)
            yield document.found("GF635", path, items[HAMI_PERCENTAGE], value=percentage, memory=memory)


def check_cards(document: Document, cards: Cards) -> Iterator[Finding]:
    """What the cards of one node cannot give. These keep HAMi's scheduler from the node."""
    total = 0
    for container in containers(document):
        number, memory = vgpus(container), _memory(container, cards)
        if not number:
            continue
        asked = numbers(container).get(HAMI_MEMORY)
        if number > cards.number:
            path, item = _place(container)
            why = "HAMi takes each vGPU of a container from another card, and all of them from one node."
            if asked and cards.memory_mib:
                have = cards.number * cards.memory_mib
                why += f" Their memory alone would be {number} x {asked} = {number * asked} MiB of {have}."
            yield document.found("GF630", path, item, value=number, most=cards.number, because=why)
        elif memory is not None and cards.memory_mib is not None and memory > cards.memory_mib:
            item = requests(container)[HAMI_MEMORY]
            why = f"gpumem counts MiB of one card, for each vGPU; a card has {cards.memory_mib}."
            yield document.found(
                "GF631", place_of(container, HAMI_MEMORY), item, value=memory, most=cards.memory_mib, because=why
            )
        elif not container.init or is_sidecar(container):
            total += number * (memory or 0)
            have = cards.number * (cards.memory_mib or 0)
            if cards.memory_mib is not None and total > have:
                path, item = _place(container)
                why = f"All containers together ask for {total} MiB; the cards of one node have {have}."
                yield document.found("GF631", path, item, value=total, most=have, because=why)
                return


def check_whole_cards(document: Document, cards: Cards) -> Iterator[Finding]:
    """Containers that take a card for themselves although the cards are there for several."""
    for container in containers(document):
        if vgpus(container) and cards.split > 1 and not {HAMI_MEMORY, HAMI_PERCENTAGE} & set(numbers(container)):
            path, item = _place(container)
            each = cards.memory_mib // cards.split if cards.memory_mib else 1000
            yield document.found("GF636", path, item, value=vgpus(container), split=cards.split, each=each)


def check_privileged(document: Document) -> Iterator[Finding]:
    """HAMi's webhook refuses pods with a privileged container that ask for its resources."""
    every = list(containers(document))
    if not any(vgpus(container) for container in every):
        return
    for container in every:
        if truth(container.item, "securityContext", "privileged") is True:
            yield document.found("GF637", (*container.path, "securityContext", "privileged"), value=container.name)


def vgpus(container: Container) -> int:
    """How many vGPUs a container gets; one where it only says how much of a card it wants."""
    asked = numbers(container)
    return asked.get(GPU, 1 if {HAMI_MEMORY, HAMI_PERCENTAGE, HAMI_CORES} & set(asked) else 0)


def pods_per_node(document: Document, cards: Cards) -> int:
    """An upper bound of how many such pods the cards of one node take."""
    slots = wanted = 0
    for container in containers(document):
        number = vgpus(container)
        if not number or (container.init and not is_sidecar(container)):
            continue
        wanted += number
        asked = numbers(container)
        each = [cards.split]
        memory = _memory(container, cards)
        if memory and cards.memory_mib:
            each.append(cards.memory_mib // memory)
        cores = min(asked.get(HAMI_CORES, 0), _ALL)
        if cores:
            each.append(_ALL // cores)
        slots = max(slots, cards.number * min(each))
    return slots // wanted if wanted else 0


def _memory(container: Container, cards: Cards) -> int | None:
    """MiB of one card that each vGPU takes; None where the card is not known."""
    asked = numbers(container)
    if asked.get(HAMI_MEMORY):
        return asked[HAMI_MEMORY]
    if cards.memory_mib is None:
        return None
    return cards.memory_mib * min(asked.get(HAMI_PERCENTAGE) or _ALL, _ALL) // _ALL


def _place(container: Container) -> tuple[tuple[str | int, ...], Item]:
    items = requests(container)
    name = GPU if GPU in items else next(iter(items))
    return place_of(container, name), items[name]
