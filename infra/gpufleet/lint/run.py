"""Lint of a set of files: reading, recognising, and all checks together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpufleet.catalog.cuda import KnownDriver
from gpufleet.device_plugin import NodeLayout
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import finding
from gpufleet.lint.chart_values import CHART_KINDS, check_chart
from gpufleet.lint.config import Checked, check_config
from gpufleet.lint.cuda import check_cuda, check_driver
from gpufleet.lint.daemon_set import check_daemon_set, check_registrars
from gpufleet.lint.document import Document, Kind, pairs, parse
from gpufleet.lint.embedded import embedded
from gpufleet.lint.flavors import Queues
from gpufleet.lint.gather import Gathered, gather
from gpufleet.lint.hami import check_privileged, check_requests, check_whole_cards
from gpufleet.lint.known_bad import check_known_bad
from gpufleet.lint.kustomize import follow
from gpufleet.lint.objects import check_objects
from gpufleet.lint.offers import Offers, offers
from gpufleet.lint.place import Place, PoolNode, Taint
from gpufleet.lint.placement import Stay, is_placed, stay
from gpufleet.lint.programs import check_programs
from gpufleet.lint.recognise import recognise
from gpufleet.lint.selection import check_selection
from gpufleet.lint.sharing import check_reservations, check_sharing
from gpufleet.lint.values import check_values
from gpufleet.lint.workload import GPU, check_own_taints, check_workload

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True)
class Options:
    """What the user says about the nodes (layout, the plugin's environment, driver, taints), and a forced kind.

    `driver` is an exact version, or what is known of a pool's driver. `env` counts before what the texts say of the
    plugin's environment, `pool_env` only where they say nothing of it. `pool` is the pool of a stack whose nodes
    these are.
    """

    node: NodeLayout | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    driver: str | KnownDriver | None = None
    kind: Kind | None = None
    taints: tuple[Taint, ...] = ()
    pool_env: Mapping[str, str] = field(default_factory=dict)
    pool: PoolNode | None = None

    @property
    def known_driver(self) -> KnownDriver | None:
        """The driver with its bounds."""
        return KnownDriver.exact(self.driver) if isinstance(self.driver, str) else self.driver


@dataclass(frozen=True)
class Report:
    """All findings, by file and line, and every configuration with what a node makes of it.

    `stays` says of each workload whether it can run there. With a pool of a stack its findings are not among `found`:
    whether they count depends on the other pools (`gpufleet.lint.pools`).
    """

    found: tuple[Finding, ...]
    checked: tuple[Checked, ...]
    documents: tuple[Document, ...]
    node: NodeLayout | None = None
    stays: tuple[tuple[Document, Stay], ...] = ()
    place: Place = field(default_factory=lambda: Place(Offers()))

    @property
    def failed(self) -> bool:
        """Whether any finding is an error."""
        return any(d.severity is Severity.ERROR for d in self.found)


def lint(files: Iterable[tuple[str, str]], options: Options | None = None) -> Report:
    """Lints texts as one set: (name of the file, its text). Never raises on any text."""
    options = options or Options()
    found: list[Finding] = []
    documents: list[Document] = []
    texts = dict(files)
    given: list[Document] = []
    for name, text in texts.items():
        mine, unread = parse(name, text)
        found += unread
        given += _as_files(list(recognise(mine, options.kind)), text)
    given, told = follow(given, texts)
    found += told
    for document in given:
        inside = embedded(document)
        known = document.kind is not Kind.UNKNOWN or not inside.documents
        documents += [document, *inside.documents] if known else inside.documents
        found += inside.found
    run = gather(documents, options.env, options.pool_env)
    checked = [check_config(config, options.node) for config in run.configs]
    found += [d for one in checked for d in one.found]
    found += [d for one in checked for d in check_driver(one, options.known_driver)]
    place = _place(checked, options)
    queues = Queues.of(run)
    stays = [(one, stay(one, place, queues)) for one in run.documents if is_placed(one)]
    found += check_documents(run, checked, options, place, stays)
    if options.pool is None:
        found += [d for _, one in stays for d in (*(d for _, d in one.obstacles), *one.faults)]
    return Report(tuple(in_order(found)), tuple(checked), tuple(documents), options.node, tuple(stays), place)


def _place(checked: list[Checked], options: Options) -> Place:
    """What the nodes offer: by the configurations among the texts, else by the plan of the pool."""
    pool = options.pool
    own = [one for one in checked if pool is not None and one.config.path and one.config.path[-1] == pool.profile]
    given = offers(own or checked, options.node)
    if pool is None:
        plain = options.node is not None and not checked and not options.node.mig
        return Place(given, options.taints, gpus=options.node.gpus if plain and options.node else None)
    if not checked:
        given = pool.offers or Offers(planned=True)
    return Place(given, options.taints, pool)


def _as_files(documents: list[Document], text: str) -> list[Document]:
    """A file that begins with a plugin configuration is one configuration, unless Kubernetes objects follow it."""
    first = documents[0] if documents else None
    if first is None or first.kind is not Kind.CONFIG or any(d.api_kind for d in documents[1:]):
        return documents
    return [replace(first, text=text)]


def check_documents(
    run: Gathered, checked: list[Checked], options: Options, place: Place, stays: list[tuple[Document, Stay]]
) -> list[Finding]:
    """All checks except those of single configurations and of the place."""
    found: list[Finding] = []
    names = (options.pool.resources if options.pool else ()) or tuple(place.offers.capacity) or (GPU,)
    away = {id(document) for document, one in stays if not one.fits}
    workloads = run.of(Kind.WORKLOAD, Kind.DAEMON_SET)
    for document in run.of(Kind.OPERATOR_VALUES, Kind.CHART_VALUES, Kind.CLUSTER_POLICY):
        found += check_values(document, run, checked)
    for document in run.of(*CHART_KINDS):
        found += check_chart(document)
    for document in workloads:
        # What a node makes of a pod is no matter where the pod cannot be.
        elsewhere = options.pool is not None and id(document) in away
        here = Offers(planned=place.offers.planned) if elsewhere else place.offers
        found += check_daemon_set(document, run, checked)
        found += check_workload(document, here, names)
        found += check_requests(document)
        found += check_programs(document, names[0])
        found += check_own_taints(document, options.taints)
        if elsewhere:
            continue
        found += check_sharing(document, here)
        found += check_cuda(document, options.known_driver, options.node)
        if options.pool is not None and options.pool.cards is not None:
            found += check_privileged(document)
            found += check_whole_cards(document, options.pool.cards)
    found += check_reservations([d for d in workloads if id(d) not in away], place.offers)
    found += check_selection(run)
    found += check_registrars(run)
    driver = options.known_driver
    exact = driver.low if driver is not None and driver.low == driver.high else None
    found += check_known_bad(run, checked, options.node, exact)
    found += check_objects(run, checked, place.offers, options.node, stack=options.pool is not None)
    known = {id(config.document) for config in run.configs}
    for document in run.documents:
        if document.kind is Kind.UNKNOWN and id(document) not in known:
            found.append(_unknown(document))
    return found


def _unknown(document: Document) -> Finding:
    one = replace(finding("GF502", ""), file=document.file, line=document.root.line)
    if not any(key.startswith("gpufleet:") for key in (*pairs(document.root), *pairs(document.root, "config"))):
        return one
    why = "It is a stack file of gpufleet, not an object of Kubernetes."
    return replace(one, reason=why, remedy=f"gpufleet plan -f {document.file} checks it.")


def in_order(found: list[Finding]) -> list[Finding]:
    """Sorted by file and line, errors first on a line, without duplicates."""
    files = {name: i for i, name in enumerate(dict.fromkeys(d.file for d in found))}
    unique = list({(d.file, d.line, d.code, d.path, d.message): d for d in found}.values())
    return sorted(unique, key=lambda d: (files[d.file], d.line or 0, _RANK[d.severity]))
