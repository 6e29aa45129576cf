"""Requests for HAMi's resources: what its webhook and its scheduler make of them.

Every rule is read in Project-HAMi/HAMi v2.10.0, pkg/device/nvidia/device.go (MutateAdmission, GenerateResourceRequests,
Fit), pkg/scheduler/score.go (fitInDevices) and pkg/scheduler/webhook.go: a container's vGPUs come from different cards,
gpumem counts for each of them, a container without gpumem takes all memory and all cores of its cards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.lint.demand import is_sidecar, numbers, place_of, requests
from gpufleet.lint.document import Document, truth
from gpufleet.lint.offers import HAMI, HAMI_PERCENTAGE
from gpufleet.lint.place import Cards
from gpufleet.lint.pods import Container, containers, pod_path
from gpufleet.parts.names import HAMI_CORES, HAMI_MEMORY

GPU = "nvidia.com/gpu"
_MOST_MIB = 2**31 - 1
_ALL = 100
_MOST_STATES = 100


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


#: What is left of each card: memory, cores, pods.
_Left = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Want:
    """What one container takes of each of `number` cards; `memory` is None where the card's is not known."""

    number: int
    memory: int | None
    cores: int


def check_cards(document: Document, cards: Cards) -> Iterator[Finding]:
    """What the cards of one node cannot give. These keep HAMi's scheduler from the node."""
    together: list[Want] = []
    for container in containers(document):
        want = _want(container, cards)
        if want is None:
            continue
        asked = numbers(container).get(HAMI_MEMORY)
        if want.number > cards.number:
            path, item = _place(container)
            why = "HAMi takes each vGPU of a container from another card, and all of them from one node."
            if asked and cards.memory_mib:
                have = cards.number * cards.memory_mib
                why += f" Their memory alone would be {want.number} x {asked} = {want.number * asked} MiB of {have}."
            yield document.found("GF630", path, item, value=want.number, most=cards.number, because=why)
            return
        if want.memory is not None and cards.memory_mib is not None and want.memory > cards.memory_mib:
            path, item = place_of(container, HAMI_MEMORY), requests(container)[HAMI_MEMORY]
            yield document.found("GF631", path, item, value=want.memory, most=cards.memory_mib)
            return
        if not container.init or is_sidecar(container):
            together.append(want)
    if len(together) > 1 and not _fit(together, cards):
        there = f"{cards.number} x {cards.memory_mib} MiB" if cards.memory_mib else f"{cards.number} cards"
        wanted = ", ".join(f"{w.number} x {w.memory} MiB" if w.memory else f"{w.number} vGPUs" for w in together)
        yield document.found("GF639", (*(pod_path(document) or ()), "containers"), value=wanted, have=there)


def _fit(wants: list[Want], cards: Cards) -> bool:
    """Whether there is any way to give all containers their cards. Cards are alike, so only what is left of each
    counts. Where there are too many ways to look at, the answer is yes."""
    states: set[_Left] = {((cards.memory_mib or 0, _ALL, cards.split),) * cards.number}
    for want in wants:
        states = {after for state in states for after in _given(state, want, cards.split)}
        if len(states) > _MOST_STATES:
            return True
    return bool(states)


def _given(state: _Left, want: Want, split: int) -> Iterator[_Left]:
    """What may be left once a container has got its cards."""
    memory, kinds = want.memory or 0, Counter(state)
    able = [card for card in kinds if _takes(card, memory, want.cores, split)]
    for counts in product(*(range(min(kinds[card], want.number) + 1) for card in able)):
        if sum(counts) != want.number:
            continue
        after = Counter(kinds)
        for (mib, cores, pods), times in zip(able, counts, strict=True):
            after[mib, cores, pods] -= times
            after[mib - memory, cores - want.cores, pods - 1] += times
        yield tuple(sorted(after.elements()))


def _takes(card: tuple[int, int, int], memory: int, wanted: int, split: int) -> bool:
    """A card whose cores are all given takes nobody else, and who wants all cores wants the card alone."""
    mib, cores, pods = card
    return pods > 0 and mib >= memory and cores >= max(wanted, 1) and (wanted < _ALL or pods == split)


def _want(container: Container, cards: Cards) -> Want | None:
    number = vgpus(container)
    if not number:
        return None
    asked = numbers(container)
    whole = asked.get(HAMI_PERCENTAGE, _ALL) >= _ALL and HAMI_MEMORY not in asked
    return Want(number, _memory(container, cards), min(asked.get(HAMI_CORES, _ALL if whole else 0), _ALL))


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
    wants = [w for c in containers(document) if not c.init or is_sidecar(c) if (w := _want(c, cards)) is not None]
    slots = 0
    for want in wants:
        each = [cards.split]
        if want.memory and cards.memory_mib:
            each.append(cards.memory_mib // want.memory)
        if want.cores:
            each.append(_ALL // want.cores)
        slots = max(slots, cards.number * min(each))
    return slots // sum(want.number for want in wants) if wants else 0


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
