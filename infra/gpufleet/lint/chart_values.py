"""Values of charts against the tables of their releases: keys, types, and what a chart refuses."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from gpufleet.catalog.charts import (
    DEVICE_PLUGIN,
    DRA_DRIVER,
    FEATURE_DISCOVERY,
    GPU_OPERATOR,
    HAMI,
    ChartTable,
    chart_table,
    chart_tables,
)
from gpufleet.catalog.operator_switches import idle
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.document import MOST_LEVELS, Document, Kind, pairs
from gpufleet.lint.recognise_values import top_keys
from gpufleet.lint.tables import table
from gpufleet.parts.chart_values import Fault, Wrong, compare, effective, get_value, refused

_CHARTS = {
    Kind.OPERATOR_VALUES: GPU_OPERATOR,
    Kind.CHART_VALUES: DEVICE_PLUGIN,
    Kind.NFD_VALUES: FEATURE_DISCOVERY,
    Kind.HAMI_VALUES: HAMI,
    Kind.DRA_VALUES: DRA_DRIVER,
}
CHART_KINDS = tuple(_CHARTS)
#: Kinds that few files are; where the content alone shows it, a note says what a file was taken for.
_RARE = (Kind.NFD_VALUES, Kind.HAMI_VALUES, Kind.DRA_VALUES)
#: A range of releases, such as 26.x or >=25.10: which one is installed is not known.
_RANGE = frozenset("*xX<>=~^| ")
#: As like as this, a word is the other one with a slip of the pen; short words may differ in one letter.
_SLIP, _SHORT = 0.8, 4


def check_chart(document: Document) -> Iterator[Finding]:
    """Everything that the tables of a chart say about values for it."""
    chart = _CHARTS[document.kind]
    values, release = plain(document.root), document.release
    exact = chart_table(chart, release) if release else None
    ranged = not release or bool(_RANGE & set(release))
    newest = exact or chart_tables(chart)[0]
    sure = document.named or _is_sure(document, chart)
    rare = not document.named and document.kind in _RARE
    if rare:
        yield document.found("GF576", (), document.root, value=chart)
    if exact is None and not ranged:
        known = " or ".join(t.release for t in chart_tables(chart))
        yield document.found("GF577", (), document.root, value=f"{chart} {release}", known=known)
    faults = list(_faults(values, chart, exact))
    # A key of an older release says that other shapes may be of that release too; HAMi once named images by a text.
    older = exact is None and (rare or any(_gone(fault, newest) for fault in faults))
    for fault in faults:
        if fault.wrong is not Wrong.UNKNOWN:
            if sure and not older and (exact is not None or ranged or fault.section):
                yield from _mistyped(document, fault)
        elif exact is not None or ranged:
            yield from _unknown(document, fault, chart, exact, sure)
    if exact is not None or ranged:
        for row in refused(values, newest) if sure else ():
            # A file may be one of several; what it leaves out may stand in another one.
            if document.named or get_value(values, row.at) is not None:
                yield document.found("GF578", tuple(row.at.split(".")), because=row.because)
        if document.kind is Kind.OPERATOR_VALUES:
            yield from _no_effect(document, values, newest)


def plain(item: Item, level: int = 0) -> Any:
    """A value without its places in the text. What is nested more deeply than any chart is left out."""
    if level > MOST_LEVELS:
        return None
    if isinstance(item.value, dict):
        return {key: plain(inner, level + 1) for key, inner in item.value.items()}
    return [plain(inner, level + 1) for inner in item.value] if isinstance(item.value, list) else item.value


def _is_sure(document: Document, chart: str) -> bool:
    """Whether the content leaves no doubt about the chart: every key at the top is one of its own, or a slip."""
    known = (*top_keys(chart), *(path.partition(".")[0] for path in chart_tables(chart)[0].gone))
    return all(_is_slip(key, known) for key in pairs(document.root))


def _is_slip(key: str, known: tuple[str, ...]) -> bool:
    near = closest_match(key, known)
    if near is None:
        return False
    like = SequenceMatcher(None, key.lower(), near.lower()).ratio()
    return like >= _SLIP or max(len(key), len(near)) <= _SHORT


def _faults(values: Any, chart: str, exact: ChartTable | None) -> Iterator[Fault]:
    """What does not fit. Where the release is not known, a key that any of them has is right."""
    if exact is not None:
        yield from compare(values, exact)
        return
    newest, *others = chart_tables(chart)
    known = {f.path for f in compare(values, newest) if f.wrong is Wrong.UNKNOWN}
    for other in others:
        known &= {f.path for f in compare(values, other) if f.wrong is Wrong.UNKNOWN}
    for fault in compare(values, newest):
        if fault.wrong is not Wrong.UNKNOWN or fault.path in known:
            yield fault


def _unknown(
    document: Document, fault: Fault, chart: str, exact: ChartTable | None, sure: bool
) -> Iterator[Finding]:
    dotted, key = ".".join(map(str, fault.path)), str(fault.path[-1])
    if document.kind is Kind.OPERATOR_VALUES and _says_nothing(dotted):
        return
    until = _gone(fault, chart_tables(chart)[0])
    if until is not None and exact is None:
        yield document.found("GF579", fault.path, value=key, until=until)
        return
    code, allowed = "GF550" if sure else "GF573", fault.allowed if fault.closest else ()
    releases = exact.release if exact else ", ".join(t.release for t in chart_tables(chart))
    name = f"{chart} {releases}" if sure else chart
    yield document.found(code, fault.path, closest=fault.closest, key=key, value=key, allowed=allowed, chart=name)


def _gone(fault: Fault, newest: ChartTable) -> str | None:
    """The last release known to have had a value that none has now; also of a subchart."""
    dotted = ".".join(map(str, fault.path))
    head, _, rest = dotted.partition(".")
    below = newest.subcharts.get(head)
    return newest.gone.get(dotted) or (below.gone.get(rest) if below is not None else None)


def _says_nothing(dotted: str) -> bool:
    """Whether GF551 speaks of the value already."""
    return any(f"{dotted}.".startswith(f"{path}.") for path in table("operator_values")["no_op"])


def _mistyped(document: Document, fault: Fault) -> Iterator[Finding]:
    dotted = ".".join(map(str, fault.path))
    if fault.wrong is Wrong.WORD and dotted in table("operator_values")["options"]:
        return  # the plugin's own rule tells more
    code = "GF575" if fault.wrong is Wrong.KIND else "GF574"
    expected = fault.expected[:1].upper() + fault.expected[1:]
    yield document.found(
        code, fault.path, value=fault.value, allowed=fault.allowed, closest=fault.closest, expected=expected,
        example=fault.example,
    )  # fmt: skip


def _no_effect(document: Document, values: Any, known: ChartTable) -> Iterator[Finding]:
    """Parts of the operator that do not run with these values."""
    both_off = all(effective(values, f"{cr}.deployCR", known) is False for cr in ("clusterPolicy", "gpuCluster"))
    if both_off and known.has("clusterPolicy.deployCR"):
        because = "clusterPolicy.deployCR and gpuCluster.deployCR are both false: the operator runs alone."
        yield document.found("GF580", ("clusterPolicy", "deployCR"), value=False, key="this", because=because)
    for row in idle():
        stated = get_value(values, row.value)
        off = row.needs is not None and effective(values, row.needs, known) is not True
        if stated is not None and off and known.has(row.value) and (row.of is None or stated is row.of):
            path = tuple(row.value.split("."))
            yield document.found("GF580", path, value=stated, key=row.value, because=row.because)


