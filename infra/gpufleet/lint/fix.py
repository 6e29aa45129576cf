"""Corrected text: only what is certain, changed in place; every other character, comments too, stays as it is.

Edits work on offsets of the text, not on a tree that is written anew, because a YAML writer moves comments, quotes and
line breaks. An edit counts only if the plugin then reads what was meant: the result is judged before it is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from gpufleet.device_plugin import Kind as Lost
from gpufleet.device_plugin import NodeLayout, NoEffect, Prediction, predict, profile_is_valid
from gpufleet.device_plugin.yaml11 import Item, YamlError, read
from gpufleet.findings.path import join_path
from gpufleet.lint.config import odd_numbers

_MAX_ROUNDS = 40
_NEAR = 0.8

Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Fixed:
    """A corrected text with what was done to it."""

    text: str
    done: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """A plugin that will read the text: its node, environment and flags."""

    node: NodeLayout
    env: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)


Judge = Callable[[str], list[Prediction]]


def fix_config(text: str, readings: Sequence[Reading]) -> Fixed:
    """Corrects a plugin configuration as far as it is certain what was meant.

    With several readings only what is wrong on every node is corrected.
    """

    def judge(candidate: str) -> list[Prediction]:
        return [predict(candidate, r.node, env=r.env, flags=r.flags) for r in readings]

    before, now, done = judge(text), text, []
    for _ in range(_MAX_ROUNDS):
        step = next(_steps(now, judge), None)
        if step is None:
            break
        now, what = step
        done.append(what)
    # An edit can reveal a problem that an unknown key hid, so the result as a whole must be better.
    weights = [(_weight(new), _weight(old)) for new, old in zip(judge(now), before, strict=True)]
    if not done or any(new > old for new, old in weights) or all(new == old for new, old in weights):
        now, done = text, []
    now, plain = _plain_numbers(now, judge)
    return Fixed(now, (*done, *plain))


def _plain_numbers(text: str, judge: Judge) -> tuple[str, list[str]]:
    """Numbers in plain digits that mean what the plugin reads: nothing changes but what a person sees."""
    done: list[str] = []
    for _ in range(_MAX_ROUNDS):
        for path, item, number in odd_numbers(_read(text)):
            candidate = _apply(text, [(*item.span, number)])
            octal = re.fullmatch(r"[-+]?0[0-7_]+", item.text)
            if octal and int(item.text) != item.value:
                continue  # 010 is 8 for the plugin and ten for most people: whoever wrote it must say which
            if text[slice(*item.span)] == item.text and _same(judge(candidate), judge(text)):
                text = candidate
                done.append(f"{join_path(path)}: {item.text} written as {number}, which is what the plugin reads")
                break
        else:
            break
    return text, done


def _same(these: list[Prediction], those: list[Prediction]) -> bool:
    return all(
        (a.outcome, a.capacity, a.labels, _problems(a)) == (b.outcome, b.capacity, b.labels, _problems(b))
        for a, b in zip(these, those, strict=True)
    )


def _read(text: str) -> Item | None:
    try:
        return read(text).root
    except YamlError:
        return None


def _steps(text: str, judge: Judge) -> Iterator[tuple[str, str]]:
    """Candidates: `text` with one problem corrected. Only problems that it has for every plugin are corrected."""
    root = _read(text)
    if root is None:
        return
    answers = judge(text)
    told = [_problems(answer) for answer in answers]
    for edits, what in _candidates(text, root, answers[0]):
        candidate = _apply(text, edits)
        left = [_problems(answer) for answer in judge(candidate)]
        solved = all(sum((t - x).values()) > 0 and ("parse", "") not in x for t, x in zip(told, left, strict=True))
        if candidate != text and solved:
            yield candidate, what


def _problems(answer: Prediction) -> Counter[tuple[str, str]]:
    return Counter([(f.stage, f.path) for f in answer.faults] + [(n.kind.value, n.path) for n in answer.no_effect])


def _weight(answer: Prediction) -> tuple[int, int]:
    """How bad a text is: a refused text is worse than an accepted one, then the number of problems counts."""
    stage = {"accept": 0, "reject-devices": 1, "reject-flags": 2, "reject-parse": 3}[answer.outcome]
    return stage, len(answer.faults) + len(answer.no_effect)


def _is_near(key: str, closest: str) -> bool:
    """Whether a word is a mistyped form of another one."""
    written, meant = (k.lower().replace("_", "").replace("-", "") for k in (key, closest))
    return SequenceMatcher(a=written, b=meant).ratio() >= _NEAR


def _is_slip(name: str, closest: str) -> bool:
    """Whether a resource name is a mistyped form of another. Under migStrategy single every instance is called gpu."""
    if name.startswith("mig-") and (closest == "gpu" or profile_is_valid(name.removeprefix("mig-"))):
        return closest == "gpu"
    return _is_near(name, closest)


def _candidates(text: str, root: Item, answer: Prediction) -> Iterator[tuple[list[Edit], str]]:
    for part in answer.no_effect:
        yield from _for_no_effect(text, root, part)
    for fault in answer.faults:
        if fault.stage == "parse":
            yield from _for_fault(text, root, fault.path)


def _for_no_effect(text: str, root: Item, part: NoEffect) -> Iterator[tuple[list[Edit], str]]:
    if part.kind not in (
        Lost.UNKNOWN_KEY,
        Lost.WRONG_CASE,
        Lost.MISPLACED_KEY,
        Lost.IGNORED_FIELD,
        Lost.NO_SUCH_RESOURCE,
        Lost.DUPLICATE_ROW,
    ):
        return
    parent, key, item = _find(root, part.path)
    if item is None or parent is None:
        return
    name = part.path
    if part.kind in (Lost.UNKNOWN_KEY, Lost.WRONG_CASE) and part.closest and isinstance(key, str):
        if part.closest not in parent.value and _is_near(key, part.closest):
            yield [_rename(text, item, part.closest)], f"{name}: key renamed to {part.closest}"
    elif part.kind is Lost.MISPLACED_KEY and part.closest:
        yield from _move(text, root, parent, item, part)
    elif part.kind is Lost.NO_SUCH_RESOURCE and part.closest and isinstance(item.value, str):
        if not _is_slip(item.value.removeprefix("nvidia.com/"), part.closest.removeprefix("nvidia.com/")):
            return  # a GPU model, another node's profile, the name in somebody else's plugin: who knows what was meant
        yield [(*item.span, _quoted_like(item, part.closest))], f"{name}: {item.value} replaced by {part.closest}"
    elif part.kind in (Lost.IGNORED_FIELD, Lost.DUPLICATE_ROW):
        yield [_remove(text, parent, item)], f"{name}: removed, it had no effect"


def _for_fault(text: str, root: Item, path: str) -> Iterator[tuple[list[Edit], str]]:
    """Corrects quoted numbers and booleans, and removes sharing with replicas 1, which is no sharing."""
    parent, key, item = _find(root, path)
    if item is None or parent is None:
        return
    quoted = item.style in ("'", '"') and isinstance(item.value, str)
    if quoted and key == "replicas" and re.fullmatch(r"[1-9][0-9]*", item.value):
        yield [(*item.span, item.value)], f"{path}: quotes removed"
    if quoted and item.value.lower() in ("true", "false"):
        yield [(*item.span, item.value.lower())], f"{path}: quotes removed"
    if key == "replicas" and item.value == 1 and not isinstance(item.value, bool):
        yield from _unshare(text, root, path)
    for wrong, value in parent.value.items() if isinstance(parent.value, dict) else ():
        if isinstance(key, str) and wrong != key and wrong.lower().rstrip("s") == key.lower().rstrip("s"):
            yield [_rename(text, value, key)], f"{path}: key renamed from {wrong}"


def _unshare(text: str, root: Item, path: str) -> Iterator[tuple[list[Edit], str]]:
    """Removes an entry with replicas 1; then the method, and then `sharing`, if nothing is left in them."""
    parts = path.split(".")  # sharing, method, resources[i], replicas
    row_path, list_path, method_path = ".".join(parts[:-1]), ".".join(parts[:2]) + ".resources", ".".join(parts[:2])
    rows, _, row = _find(root, row_path)
    if rows is None or row is None or len(parts) != 4:
        return
    what = f"{path}: sharing by 1 is no sharing; removed"
    if len(rows.value) > 1:
        yield [_remove(text, rows, row)], what
        return
    sharing, _, method = _find(root, method_path)
    if sharing is not None and method is not None and _find(root, list_path)[2] is not None:
        top, _, whole = _find(root, parts[0])
        if len(sharing.value) == 1 and top is not None and whole is not None:
            yield [_remove(text, top, whole)], what
        else:
            yield [_remove(text, sharing, method)], what


def _find(root: Item, path: str) -> tuple[Item | None, str | int | None, Item | None]:
    """Parent, key and value of a path; struct keys match in any case where the exact one is absent."""
    parent: Item | None = None
    key: str | int | None = None
    item: Item | None = root
    for match in re.finditer(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)', path):
        if item is None:
            return None, None, None
        parent = item
        if match[2] is not None:
            key = int(match[2])
            item = item.value[key] if isinstance(item.value, list) and key < len(item.value) else None
            continue
        key = match[1] if match[1] is not None else match[3]
        if not isinstance(item.value, dict):
            return parent, key, None
        found = item.value.get(key)
        item = found or next((v for k, v in item.value.items() if k.lower() == str(key).lower()), None)
    return parent, key, item


def _rename(text: str, item: Item, key: str) -> Edit:
    start, end = item.key_span
    quote = text[start : start + 1]
    return (start, end, f"{quote}{key}{quote}" if quote in ("'", '"') else key)


def _quoted_like(item: Item, value: str) -> str:
    return f"{item.style}{value}{item.style}" if item.style in ("'", '"') else value


def _is_flow(text: str, item: Item) -> bool:
    return text[item.span[0] : item.span[0] + 1] in ("{", "[")


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _remove(text: str, parent: Item, item: Item) -> Edit:
    """Takes an entry out of a map or a list, with its lines where it stands in lines of its own."""
    start = item.key_span[0] if isinstance(parent.value, dict) else item.span[0]
    if _is_flow(text, parent):
        return _remove_flow(text, parent, start, item.span[1])
    begin = _line_start(text, start)
    lead = text[begin:start]
    if isinstance(parent.value, list):
        return (begin, _end_of_block(text, item, begin), "")
    if "-" in lead:  # the first key of a list entry: what follows moves up behind the dash
        end = _end_of_block(text, item, begin)
        rest = re.compile(r"[ \t]*").match(text, end)
        return (start, rest.end() if rest else end, "")
    return (begin, _end_of_block(text, item, begin), "")


def _end_of_block(text: str, item: Item, begin: int) -> int:
    """Where the lines of a block entry end: comments and blank lines after it belong to what follows."""
    last = item.span[0] + len(text[item.span[0] : item.span[1]].rstrip())
    while isinstance(item.value, (dict, list)) and "\n" in text[item.span[0] : last]:
        line = _line_start(text, last)
        if not text[line:last].lstrip().startswith("#") or line <= begin:
            break
        last = item.span[0] + len(text[item.span[0] : line].rstrip())
    newline = text.find("\n", max(last, item.key_span[1]))
    return len(text) if newline < 0 else newline + 1


def _remove_flow(text: str, parent: Item, start: int, end: int) -> Edit:
    after = re.compile(r"\s*,\s*").match(text, end)
    if after:
        return (start, after.end(), "")
    before = re.search(r",\s*$", text[parent.span[0] : start])
    return (parent.span[0] + before.start() if before else start, end, "")


def _move(text: str, root: Item, parent: Item, item: Item, part: NoEffect) -> Iterator[tuple[list[Edit], str]]:
    """Moves a scalar to the block map it belongs to; the one that exists counts where several could be meant."""
    if isinstance(item.value, (dict, list)) or part.closest is None:
        return
    for place in _places(part.closest):
        where, _, key = place.rpartition(".")
        target = _find(root, where)[2] if where else root
        if target is None or not isinstance(target.value, dict) or not target.value or key in target.value:
            continue
        if _is_flow(text, target):
            insert = (target.span[0] + 1, target.span[0] + 1, f"{key}: {text[item.span[0] : item.span[1]]}, ")
        else:
            first = next(iter(target.value.values()))
            begin = _line_start(text, first.key_span[0])
            lead = text[begin : first.key_span[0]]
            if lead.strip():
                continue
            newline = text.find("\n", item.span[1])
            rest = text[item.span[0] : len(text) if newline < 0 else newline]  # the value and the comment behind it
            value = text[item.span[0] : item.span[1]] if _is_flow(text, parent) else rest
            insert = (begin, begin, f"{lead}{key}: {value}\n")
        remove = _remove(text, parent, item)
        emptied = len(parent.value) == 1
        if emptied:
            holder, _, _ = _find(root, part.path.rsplit(".", 1)[0])
            if holder is not None and parent is not root:
                remove = _remove(text, holder, parent)
        if _is_flow(text, target) and not _is_flow(text, parent):
            remove = _keep_comment(text, item, remove)
        yield [insert, remove], f"{part.path}: moved to {place}"


def _keep_comment(text: str, item: Item, remove: Edit) -> Edit:
    """Leaves the comment behind a value where it stood: a flow map has no room for it."""
    newline = text.find("\n", item.span[1])
    rest = text[item.span[1] : len(text) if newline < 0 else newline]
    start, end, new = remove
    if new or not rest.lstrip().startswith("#") or start != _line_start(text, start):
        return remove
    indent = text[start : len(text) - len(text[start:].lstrip(" "))]
    return start, end, f"{indent}{rest.lstrip()}\n"


def _places(closest: str) -> list[str]:
    other = closest.replace("sharing.timeSlicing", "sharing.mps")
    return [closest] if other == closest else [closest, other]


def _apply(text: str, edits: list[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
