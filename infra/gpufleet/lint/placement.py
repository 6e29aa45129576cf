"""Whether a pod can run at a place: what keeps the scheduler from it, and what goes wrong where it is placed.

The rules are those of Kubernetes' scheduler and of the plugin's admission, no more: resources, labels, taints, runtime
class, shares. What nobody knows of a place counts as fitting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.findings.path import PathParts
from gpufleet.lint.demand import numbers, of_pod, place_of, requests
from gpufleet.lint.document import Document, get, text_at
from gpufleet.lint.flavors import Queues
from gpufleet.lint.hami import check_cards, pods_per_node
from gpufleet.lint.node_labels import Miss, asks_for, misses
from gpufleet.lint.offers import HAMI, name_is_possible, of_plugin
from gpufleet.lint.place import Place, PoolNode
from gpufleet.lint.pods import containers, pod_path, pod_spec, program
from gpufleet.lint.quantity import count, is_placeholder
from gpufleet.lint.workload import GPU, closest_resource, repelled, untolerated

OURS = "gpufleet.dev/"
_POOL = "gpufleet.dev/pool"
#: Letters that people write for digits.
_LOOKS_LIKE = str.maketrans("ol", "01")
#: Kinds whose pods must all run at the same time. Pods of a Job wait for their turn.
_AT_ONCE = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")


@dataclass(frozen=True)
class Stay:
    """One pod at one place.

    `obstacles` keep the scheduler from the place, each with its weight: the more, the further is the place from what
    the pod asks for. `faults` are what goes wrong on a node of the place. `room` is how many such pods the place
    takes, None where that is not known.
    """

    obstacles: tuple[tuple[int, Finding], ...] = ()
    faults: tuple[Finding, ...] = ()
    room: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the scheduler may choose the place."""
        return not self.obstacles

    @property
    def distance(self) -> int:
        """How far the place is from what the pod asks for."""
        return sum(weight for weight, _ in self.obstacles)


def is_placed(document: Document) -> bool:
    """Whether placement is judged at all: the pod asks for GPUs, or chooses one of gpufleet's pools."""
    every = list(containers(document))
    if not every or any(program(c) for c in every) or text_at(pod_spec(document), "nodeName"):
        return False  # with nodeName the scheduler is not asked
    return any(of_plugin(name) for c in every for name in requests(c)) or asks_for(document, OURS)


def stay(document: Document, place: Place, queues: Queues | None = None) -> Stay:
    """A pod at a place. `queues` are what Kueue adds to pods."""
    taints = _taints(document, place, queues or Queues())
    obstacles = (*_resources(document, place), *_labels(document, place), *taints)
    if place.pool is not None and place.pool.cards is not None:
        cards = [(3, found) for found in check_cards(document, place.pool.cards)]
        told = {found.path for _, found in cards}  # the cards of a node bound more than the vGPUs that it offers
        obstacles = (*(one for one in obstacles if one[1].code != "GF624" or one[1].path not in told), *cards)
    faults = (*_refused(document, place), *_runtime_class(document, place))
    return Stay(obstacles, faults, 0 if obstacles else _room(document, place))


def _resources(document: Document, place: Place) -> Iterator[tuple[int, Finding]]:
    offers = place.offers
    bound = offers.capacity if offers.certain else {GPU: place.gpus} if place.gpus else {}
    told = set()
    for container in containers(document):
        for resource, item in requests(container).items():
            number, path = count(item), place_of(container, resource)
            if not _is_judged(resource, place):
                continue
            if offers.certain and not offers.capacity.get(resource):
                yield 4, _not_offered(document, path, item, resource, place)
            elif number is not None and resource in bound and number > bound[resource]:
                told.add(resource)
                yield 3, _too_many(document, path, item, resource, number, bound[resource])
    for resource, number in of_pod(document).items():
        if resource in bound and 0 < bound[resource] < number and resource not in told:
            path = pod_path(document) or ()
            yield 3, _too_many(document, path, pod_spec(document), resource, number, bound[resource])


def _is_judged(resource: str, place: Place) -> bool:
    """Whether the plugin would have to offer a resource. HAMi's memory and cores are no resources of a node; of a
    described node nobody knows whether HAMi serves it."""
    if resource in HAMI:
        return place.pool is not None and place.pool.cards is None
    return of_plugin(resource) and name_is_possible(resource)


def _not_offered(document: Document, path: PathParts, item: Item, resource: str, place: Place) -> Finding:
    offers = place.offers
    offered = ", ".join(f"{k}: {v}" for k, v in sorted(offers.capacity.items())) or "nothing"
    known = list(offers.capacity) or [GPU]
    only = known[0] if place.pool is not None and len(known) == 1 and resource not in HAMI else None
    near, advice = closest_resource(resource, known) or only, "Ask for what the node offers."
    if resource in HAMI:
        known, near, advice = [], None, "Remove it: it is a word of HAMi, which serves no GPU here."
    by = "By the plan" if offers.planned else "With the given configuration"
    return document.found(
        "GF603", path, item, value=resource, allowed=known, closest=near, offered=offered, by=by, advice=advice
    )


def _too_many(document: Document, path: PathParts, item: Item | None, resource: str, number: int, most: int) -> Finding:
    return document.found("GF624", path, item, value=number, key=resource, most=most)


def _labels(document: Document, place: Place) -> Iterator[tuple[int, Finding]]:
    if place.pool is None:
        return
    for miss in misses(document, place.labels):
        yield _distance(miss, place.pool), _label(document, miss, place)


def _distance(miss: Miss, pool: PoolNode) -> int:
    """The pool that was meant by a misspelt value is nearer than the others; a value of another pool is further."""
    if miss.operator != "In" or not miss.wanted:
        return 5
    near = _meant(miss.wanted[0], miss, pool)
    meant = near is not None and near == pool.labels.known.get(miss.key)
    if miss.key == _POOL:
        return 5 if near == pool.name else 6
    if set(miss.wanted) & set(pool.values.get(miss.key, ())):
        return 5
    return 3 if meant else 4


def _meant(value: str, miss: Miss, pool: PoolNode) -> str | None:
    known = list(pool.values.get(miss.key, ()))
    if value in known:
        return None
    near = closest_match(value, known)
    if near is None:
        plain = {word.lower().translate(_LOOKS_LIKE): word for word in known}
        near = plain.get(value.lower().translate(_LOOKS_LIKE)) or (known[0] if len(known) == 1 else None)
    return near


def _label(document: Document, miss: Miss, place: Place) -> Finding:
    labels, pool = place.labels, place.pool or PoolNode("", None, None, ())
    known = list(pool.values.get(miss.key, ()))
    near = None
    if miss.key in labels.known:
        why = f"There the label is {miss.key}={labels.known[miss.key]}."
        if miss.operator == "In":
            near = labels.known[miss.key]  # of this pool, where the finding is: another pool may lack something else
    else:
        why = f"Nothing in the stack puts a label {miss.key} on its nodes."
    chosen = ", ".join(f"{key}: {value}" for key, value in pool.selector.items())
    if near is not None and miss.key not in pool.selector:
        chosen += f", or {miss.key}: {near}"
    found = document.found(
        "GF625", miss.path, miss.item, value=str(miss), allowed=known, because=why, pool=pool.name, selector=chosen
    )
    return replace(found, closest=near)


def _taints(document: Document, place: Place, queues: Queues) -> Iterator[tuple[int, Finding]]:
    asked = of_pod(document)
    adds = place.pool is None or place.pool.adds_tolerations
    if _elsewhere(document, "tolerations"):
        return
    for taint in untolerated(pod_spec(document), place.taints):
        if not (adds and taint.key in asked) and not queues.tolerate(document, taint):
            yield 1, repelled(document, taint)


def _elsewhere(document: Document, key: str) -> bool:
    """Whether a key of the pod may stand where lint does not see it: the text is a patch, whose containers have no
    image, or one container of a larger object that has the key at another place."""
    if get(pod_spec(document), key) is not None:
        return False
    patch = not any(container.image for container in containers(document))
    return patch or (bool(document.places) and key in document.text)


def _refused(document: Document, place: Place) -> Iterator[Finding]:
    """Several shares of one resource in one container, where the plugin gives no more than one."""
    for container in containers(document):
        for resource, number in numbers(container).items():
            share = place.offers.share(resource)
            if number > 1 and share is not None and share.refuses_more_than_one:
                path, item = place_of(container, resource), requests(container)[resource]
                yield document.found("GF601", path, item, value=number, key=resource)


def _runtime_class(document: Document, place: Place) -> Iterator[Finding]:
    if place.pool is None or not any(of_plugin(name) for name in of_pod(document)):
        return
    classes, path = place.pool.classes, (*(pod_path(document) or ()), "runtimeClassName")
    item = get(pod_spec(document), "runtimeClassName")
    name = text_at(pod_spec(document), "runtimeClassName")
    if is_placeholder(name):
        return
    exists = classes.exist is not None and name in classes.exist
    if not name:
        if classes.needed and not classes.added and not _elsewhere(document, "runtimeClassName"):
            yield document.found("GF626", path, pod_spec(document), value=classes.needed, pool=place.pool.name)
    elif classes.needed and name != classes.needed and not exists:
        why = f"With it the GPU does not reach the container: here that is the work of {classes.needed}."
        yield document.found("GF627", path, item, value=name, allowed=(classes.needed,), because=why)
    elif not classes.needed and classes.exist is not None and name.startswith("nvidia") and not exists:
        why = "The cluster has no RuntimeClass of that name, so the API server refuses the pod. It needs none here."
        yield document.found("GF627", path, item, value=name, allowed=sorted(classes.exist), because=why)


def _room(document: Document, place: Place) -> int | None:
    """How many pods of this kind the nodes of a place take."""
    if place.pool is None or place.pool.most_nodes is None or not place.offers.certain:
        return None
    asked = {name: number for name, number in of_pod(document).items() if name in place.offers.capacity and number > 0}
    each = [place.offers.capacity[name] // number for name, number in asked.items()]
    if place.pool.cards is not None and asked:
        each.append(pods_per_node(document, place.pool.cards))
    return min(each) * place.pool.most_nodes if each else None


def replicas(document: Document) -> int | None:
    """How many pods of an object must run at the same time; None where that is not said."""
    if document.api_kind not in _AT_ONCE:
        return None
    item = get(document.root, "spec", "replicas")
    return count(item) if item is not None else None


def quota(document: Document, pool: PoolNode) -> Iterator[Finding]:
    """What a team's quota leaves of a workload in its namespace."""
    own = pool.quotas.get(document.namespace)
    if own is None:
        return
    pods = replicas(document) or 1
    for resource, number in of_pod(document).items():
        most = own.hard.get(resource)
        if most is not None and number * pods > most:
            path = (*(pod_path(document) or ()), "containers") if pods == 1 else ("spec", "replicas")
            asked = f"{number * pods} of {resource}"
            counts = "the API server refuses pods beyond it"
            if resource in HAMI:
                counts = "HAMi's scheduler counts this, and leaves pods beyond it Pending"
            yield document.found(
                "GF629", path, value=asked, most=most, team=own.team, namespace=document.namespace, counts=counts
            )
