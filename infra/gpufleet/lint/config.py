"""Lint of one plugin configuration: refused, without effect, or read otherwise than a person reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from gpufleet.device_plugin import Fault, Kind, NodeLayout, NoEffect, Prediction, predict, profile_is_valid
from gpufleet.device_plugin.devices import mps_client_limit
from gpufleet.device_plugin.golang import fold
from gpufleet.device_plugin.yaml11 import Item, YamlError, children, read
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts, join_path
from gpufleet.findings.registry import finding
from gpufleet.lint.document import Document, get
from gpufleet.lint.recognise import is_wrapped

#: More shares of one GPU than this are hardly meant (case NV-04).
SOFT_CEILING = 48

_FAULT_CODES = {"parse": "GF510", "flags": "GF511", "devices": "GF512"}
_NO_EFFECT_CODES = {
    Kind.UNKNOWN_KEY: "GF513",
    Kind.MISPLACED_KEY: "GF514",
    Kind.WRONG_CASE: "GF515",
    Kind.DUPLICATE_KEY: "GF516",
    Kind.IGNORED_FIELD: "GF517",
    Kind.NO_SUCH_RESOURCE: "GF518",
    Kind.MPS_WINS: "GF519",
    Kind.OVERRIDDEN: "GF520",
    Kind.SECOND_DOCUMENT: "GF521",
    Kind.DUPLICATE_ROW: "GF522",
}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class ConfigText:
    """A plugin configuration somewhere in a file.

    `holder` is the scalar that holds the text; None where the file itself is the configuration. `env` and `flags` are
    those of the plugin that will read it, as far as they are known; `env_source` says from where.
    """

    document: Document
    text: str
    path: PathParts = ()
    holder: Item | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file in which the text stands."""
        return self.document.file_of(self.path)

    @property
    def where(self) -> str:
        """The place of the text in its document, for people."""
        return join_path((*self.document.prefix, *self.path))

    def line(self, inner: int | None) -> int:
        """The line of the file at which a line of the text stands; exact for block texts, else where it begins."""
        if self.holder is None:
            return inner or 1
        if self.holder.style in ("|", ">"):
            return self.holder.line + (inner or 1)
        return self.holder.line


@dataclass(frozen=True)
class Checked:
    """A configuration with its prediction; `node` is None where the node had to be made up."""

    config: ConfigText
    prediction: Prediction
    node: NodeLayout | None
    found: tuple[Finding, ...]


@lru_cache(maxsize=64)
def _root(text: str) -> Item | None:
    """The first document of a text; None where it cannot be read, or is empty."""
    try:
        return read(text).root
    except YamlError:
        return None


def check_config(config: ConfigText, node: NodeLayout | None) -> Checked:
    """Everything about one configuration text on a node; without a node, on one that has all it plausibly needs."""
    on = node or plausible_node(config)
    answer = predict(config.text, on, env=config.env, flags=config.flags)
    found = list(_wrapped(config))
    if not found:
        found += [_fault(config, fault) for fault in answer.faults]
        found += [_no_effect(config, part) for part in answer.no_effect]
        found += _numbers(config)
        found += _sense(config, answer, on)
    return Checked(config, answer, node, tuple(found))


def plausible_node(config: ConfigText) -> NodeLayout:
    """Two GPUs; where the configuration names MIG profiles, a third one holds an instance of each."""
    text, env = config.text, config.env
    names = set(re.findall(r"mig-([0-9a-z.+-]+gb(?:\.[a-z.]+)?)", text))
    profiles = sorted({n.replace(".me", "+me").replace(".gfx", "+gfx") for n in names})
    valid = tuple(p for p in profiles if profile_is_valid(p))
    return NodeLayout(3, mig={2: valid}) if valid and _says_mixed(text, env) else NodeLayout(2)


def _says_mixed(text: str, env: Mapping[str, str]) -> bool:
    if "MIG_STRATEGY" in env:
        return env["MIG_STRATEGY"] == "mixed"
    return re.search(r"(?i)migStrategy[\"']?\s*:\s*[\"']?mixed", text) is not None


def _found(
    config: ConfigText, code: str, path: str, line: int | None, closest: str | None, **details: object
) -> Finding:
    whole = ".".join(p for p in (config.where, path) if p)
    made = finding(code, whole, **details)
    return replace(made, file=config.file, line=config.line(line), closest=closest or made.closest)


def _fault(config: ConfigText, fault: Fault) -> Finding:
    return _found(
        config, _FAULT_CODES[fault.stage], fault.path, fault.line, fault.closest, value=fault.value, fault=fault.reason
    )


def _no_effect(config: ConfigText, part: NoEffect) -> Finding:
    key = part.path.rsplit(".", 1)[-1]
    reason = {"fault" if part.kind is Kind.OVERRIDDEN else "because": part.reason}
    return _found(
        config,
        _NO_EFFECT_CODES[part.kind],
        part.path,
        part.line,
        part.closest,
        value=part.value,
        key=key,
        meant=part.closest or "its place",
        **reason,
    )


def _wrapped(config: ConfigText) -> Iterator[Finding]:
    root = _root(config.text)
    kind = is_wrapped(root) if root is not None and config.holder is not None else None
    if kind:
        yield _found(config, "GF528", "", root.line if root else 1, None, value=kind)


def _numbers(config: ConfigText) -> Iterator[Finding]:
    for path, item, number in odd_numbers(_root(config.text)):
        yield _found(config, "GF523", join_path(path), item.line, number, value=item.text, number=number)


def odd_numbers(root: Item | None) -> Iterator[tuple[PathParts, Item, str]]:
    """Numbers that YAML 1.1 and a person read differently, with what they are in plain digits."""
    for path, item in _walk(root, ()):
        if item.style or isinstance(item.value, bool) or not isinstance(item.value, (int, float)):
            continue
        if isinstance(item.value, float):
            odd = item.text.startswith("0") and item.text[1:2].isdigit()
        else:
            odd = not _DECIMAL.fullmatch(item.text)
        if odd:
            yield path, item, f"{item.value:g}" if isinstance(item.value, float) else str(item.value)


def _walk(item: Item | None, path: PathParts) -> Iterator[tuple[PathParts, Item]]:
    if item is None:
        return
    yield path, item
    if isinstance(item.value, dict):
        for key, value in item.value.items():
            yield from _walk(value, (*path, key))
    else:
        for i, value in enumerate(children(item)):
            yield from _walk(value, (*path, i))


def _sense(config: ConfigText, answer: Prediction, node: NodeLayout) -> Iterator[Finding]:
    """Accepted, yet hardly meant."""
    if not answer.accepted:
        return
    if answer.labels_lost:
        yield _found(config, "GF524", "sharing.mps", _line_of(config, "sharing", "mps"), None, because=answer.reason)
    elif answer.labels is None:
        limit = mps_client_limit(node)
        line = _line_of(config, "sharing", "mps")
        yield _found(config, "GF525", "sharing.mps", line, None, fault=answer.reason, limit=str(limit))
    for method in ("timeSlicing", "mps"):
        rows = _at(config, "sharing", method, "resources")
        for i, row in enumerate(rows.value if rows is not None and isinstance(rows.value, list) else ()):
            replicas = get(row, "replicas")
            if replicas is None or not isinstance(replicas.value, int) or replicas.value <= SOFT_CEILING:
                continue
            if method == "mps" and answer.labels is None and not answer.labels_lost:
                continue  # said already
            path = f"sharing.{method}.resources[{i}].replicas"
            yield _found(config, "GF526", path, replicas.key_line, None, value=replicas.value, limit=str(SOFT_CEILING))
    if answer.strategy == "time-slicing" and answer.fail_gt1 is None:
        reason = "failRequestsGreaterThanOne is not set, and its default under time-slicing is false."
        line = _line_of(config, "sharing", "timeSlicing")
        yield _found(config, "GF527", "sharing.timeSlicing", line, None, because=reason)


def _at(config: ConfigText, *path: str) -> Item | None:
    """A value of the configuration; keys of structs in any case, as the plugin takes them."""
    item = _root(config.text)
    for step in path:
        if item is None or not isinstance(item.value, dict):
            return None
        exact = item.value.get(step)
        item = exact if exact is not None else next((v for k, v in item.value.items() if fold(k) == fold(step)), None)
    return item


def _line_of(config: ConfigText, *path: str) -> int | None:
    item = _at(config, *path)
    return (item.key_line or item.line) if item is not None else None
