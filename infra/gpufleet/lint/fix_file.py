"""Corrected files: writes corrected configurations back to their places in ConfigMaps, values and quoted texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from gpufleet.device_plugin.yaml11 import YamlError, read
from gpufleet.lint.config import ConfigText
from gpufleet.lint.document import Kind
from gpufleet.lint.fix import Fixed, Reading, fix_config
from gpufleet.lint.recognise import is_wrapped

_BREAKS = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")


def fix_file(text: str, configs: list[tuple[ConfigText, Sequence[Reading]]]) -> Fixed:
    """Corrects all configurations of one file: the file itself, or texts in ConfigMaps and values."""
    done: list[str] = []
    before = text
    for config, readings in sorted(configs, key=lambda c: _place(c[0]), reverse=True):
        if config.holder is not None and _is_object(config.text):
            continue  # whole objects: what in them was meant is not certain
        fixed = fix_config(config.text, readings)
        if not fixed.done:
            continue
        if config.holder is None:
            if config.document.kind is Kind.CONFIG and config.text == text:
                text = fixed.text
                done += fixed.done
        else:
            spliced = _splice(text, config, fixed.text) or _requote(text, before, config, fixed.text)
            if spliced is not None:
                text = spliced
                done += [f"{config.where}.{what}" for what in fixed.done]
    return Fixed(text, tuple(done))


def _is_object(text: str) -> bool:
    try:
        return is_wrapped(read(text).root) is not None
    except YamlError:
        return False


def _place(config: ConfigText) -> tuple[int, int]:
    return (0, 0) if config.holder is None else (config.holder.line, config.holder.span[0])


def _requote(text: str, before: str, config: ConfigText, new: str) -> str | None:
    """Puts a text in place of one in quotes, as kubectl and JSON write them; None where it stands otherwise.

    `before` is the file before anything below this place was changed.
    """
    holder, shift = config.holder, config.document.shift
    if holder is None or shift is None or holder.style not in ("'", '"'):
        return None
    start, end = (offset + shift for offset in holder.span)
    if before[start : start + 1] != holder.style or text[:end] != before[:end]:
        return None
    return text[:start] + json.dumps(new, ensure_ascii=False) + text[end:]


def _splice(text: str, config: ConfigText, new: str) -> str | None:
    """Puts a text in place of a block text (`|`), with its indentation; None where it stands in another form."""
    holder = config.holder
    if holder is None or holder.style != "|" or _BREAKS.sub("", config.text) != config.text.replace("\n", ""):
        return None
    lines = text.split("\n")
    count = len(config.text.rstrip("\n").split("\n"))
    block = lines[holder.line : holder.line + count]
    indent = next((line[: len(line) - len(line.lstrip(" "))] for line in block if line.strip()), None)
    if indent is None or [_strip(line, indent) for line in block] != config.text.rstrip("\n").split("\n"):
        return None
    ending = "\r" if block[0].endswith("\r") else ""
    fresh = [(indent + line if line else "") + ending for line in new.rstrip("\n").split("\n")]
    return "\n".join([*lines[: holder.line], *fresh, *lines[holder.line + count :]])


def _strip(line: str, indent: str) -> str:
    return line.removesuffix("\r").removeprefix(indent) if line.strip() else line.strip()
