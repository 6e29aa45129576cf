"""Texts that are no YAML: what was probably meant, by what the reader stopped at and the lines around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

_TAB = re.compile(r"[ ]*\t")
#: A key and what stands behind its colon without a blank; a prefix such as `gpufleet:` belongs to the key.
_NO_BLANK = re.compile(r"\s*(?:-\s+)*((?:gpufleet:)?[A-Za-z][\w.-]*):([^\s:/].*)")
_OWN_COLON = re.compile(r"[\w./-]+:(\s|$)")
_CLOSING = {"sequence": ("[", "]"), "mapping": ("{", "}")}


@dataclass(frozen=True)
class Mistake:
    """What the reader stopped at: the line that is to be corrected, why, and what to do."""

    line: int | None
    why: str
    remedy: str


def mistake(error: yaml.YAMLError, text: str) -> Mistake:
    """A parse error of PyYAML, explained."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", error))
    context = str(getattr(error, "context", None) or "")
    lines = text.splitlines()
    at, start = _line(getattr(error, "problem_mark", None), lines), _line(getattr(error, "context_mark", None), lines)
    if problem == "control characters are not allowed" or "special characters" in problem:
        where = getattr(error, "position", None)  # in bytes
        at = None if where is None else text.encode()[:where].count(b"\n") + 1
        return Mistake(at, f"{problem}.", "Remove the character, or write it in double quotes as an escape.")
    if at is None:
        return Mistake(start, f"{problem}.", "Correct the text.")
    tabbed = next((n for n in (at, at - 1) if n > 0 and _TAB.match(_of(lines, n))), None)
    if tabbed is not None:
        return Mistake(tabbed, f"{problem}; line {tabbed} is indented with a tab.", "Indent with blanks.")
    if "quoted scalar" in context and "end of stream" in problem:
        opened = start or at
        return Mistake(opened, f"A quote that is opened in line {opened} is never closed.", "Close the quote.")
    flow = next((word for word in _CLOSING if f"flow {word}" in context), None)
    if flow is not None:
        return _bracket(*_CLOSING[flow], start or at, at)
    if problem == "did not find expected node content":
        for number in range(at, 0, -1):
            for opening, closing in _CLOSING.values():
                if _of(lines, number).count(opening) > _of(lines, number).count(closing):
                    return _bracket(opening, closing, number, at)
    if problem.startswith(("could not find expected ':'", "mapping values", "did not find expected key")):
        return _block(lines, at, start if "simple key" in context else None, problem)
    return _other(problem, at, _of(lines, at), getattr(error, "problem_mark", None))


def not_utf8(raw: bytes, error: UnicodeDecodeError) -> Mistake:
    """Bytes that are no UTF-8."""
    line = raw[: error.start].count(b"\n") + 1
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Mistake(1, "The file is not UTF-8 but UTF-16.", "Save the file as UTF-8.")
    why = f"The text is not UTF-8: line {line} holds the byte 0x{raw[error.start]:02x}."
    return Mistake(line, why, "Save the file as UTF-8.")


def second_document(text: str) -> int:
    """The line at which the second YAML document begins."""
    marks = [e.start_mark for e in yaml.parse(text) if isinstance(e, yaml.DocumentStartEvent)]
    return _line(marks[1], text.splitlines()) or 1


def without_blank(line: str) -> tuple[str, str] | None:
    """Key and value of a line such as `driver:aks`, None for any other line."""
    found = _NO_BLANK.fullmatch(line.rstrip())
    if found is None or _OWN_COLON.match(found[2]):
        return None
    return found[1], found[2]


def _line(mark: Any, lines: list[str]) -> int | None:
    return None if mark is None else max(1, min(int(mark.line) + 1, len(lines)))


def _of(lines: list[str], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _bracket(opening: str, closing: str, start: int, at: int) -> Mistake:
    there = "behind it" if at == start else f"in line {at}"
    why = f"`{opening}` is opened in line {start}, and {there} a comma or `{closing}` is missing."
    return Mistake(start, why, f"Write the missing comma or `{closing}`; quote a text that holds brackets or commas.")


def _block(lines: list[str], at: int, start: int | None, problem: str) -> Mistake:
    """A line of a map that is none."""
    above = next((n for n in range(at - 1, 0, -1) if _of(lines, n).strip() and _of(lines, n).strip()[0] != "#"), 0)
    for number in dict.fromkeys((start or above, above, at)):
        pair = without_blank(_of(lines, number))
        if pair is not None:
            key, value = pair
            why = f"Line {number} has no blank after the colon, so that it is no key with a value."
            return Mistake(number, why, f"A blank must follow the colon: `{key}: {value}`.")
    line = _of(lines, at)
    if problem.startswith("could not"):
        number = start or at
        return Mistake(number, f"Line {number} is a key without a colon.", "Write `key: value`, or remove the line.")
    if len(re.findall(r":\s", line)) > 1:
        remedy = 'Quote the value: `key: "a: b"`. A second key begins a line of its own, indented.'
        return Mistake(at, f"Line {at} has two colons with a blank behind.", remedy)
    if re.match(r"\s*[\w.:-]+:\s+([\"']).*\1\s*[^\s#]", line):
        return Mistake(at, f"In line {at} text stands behind a closing quote.", "Put all of the value into the quotes.")
    own, other = _indent(line), _indent(_of(lines, above))
    why = f"Line {at} is indented by {own}, line {above} by {other}; as it stands, the line belongs to no map."
    return Mistake(at, why, "Indent the keys of one map alike, by blanks.")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _other(problem: str, at: int, line: str, mark: Any) -> Mistake:
    """What the reader's own words say well enough."""
    character = line[mark.column] if mark is not None and mark.column < len(line) else ""
    if "cannot start any token" in problem:
        remedy = f"Put a text that begins with `{character}` into quotes."
        return Mistake(at, f"No value begins with `{character}`.", remedy)
    remedies = {
        "found undefined alias": "Quote a text that begins with `*`, or define the anchor (`&name`) before it.",
        "did not find expected alphabetic": "Quote a text that begins with `*` or `&`.",
        "found unknown escape": "Use single quotes; in double quotes a backslash begins an escape.",
        "second occurrence": "Give each anchor a name of its own.",
        "block sequence entries": "Begin the list on a line of its own, or write it as `[a, b]`.",
        "did not find expected '-'": "Begin each item of the list with `- `, and indent the items alike.",
    }
    remedy = next((text for start, text in remedies.items() if problem.startswith(start)), "Correct the text there.")
    return Mistake(at, f"{problem[0].upper()}{problem[1:]}.", remedy)
