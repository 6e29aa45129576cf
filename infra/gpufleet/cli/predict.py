"""Predicts what a node offers when NVIDIA's device plugin reads a configuration. Reads and writes JSON lines.

A line needs `config` (the text) and `gpus` (how many the node has). `name`, `mig` (`0=1g.5gb,3g.20gb;1=`),
`env`, `product` and `memory` (MiB per GPU) are optional. The same line is printed with the answers: outcome,
capacity, strategy, fail_gt1, labels, labels_lost, ignored_fields_warned; or with `error` if it cannot be read.

examples:
    gpufleet predict configurations.jsonl
    gpufleet predict - < configurations.jsonl

Exit code: 0 every line answered, 1 some line cannot be read, 2 the file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from gpufleet.device_plugin import NodeLayout, parse_mig, predict

ANSWERS = ("outcome", "capacity", "strategy", "fail_gt1", "labels", "labels_lost", "ignored_fields_warned")


def add_parser(subparsers: Any) -> None:
    """Registers the sub-command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "predict", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="a file of JSON lines; - reads standard input")


def run(args: argparse.Namespace) -> int:
    """0: every row answered; 1: some row could not be read; 2: the file could not."""
    if args.file == "-":
        return _rows(sys.stdin.buffer, "<stdin>")
    try:
        with Path(args.file).open("rb") as stream:
            return _rows(stream, args.file)
    except OSError as error:
        print(f"gpufleet predict: {args.file}: {error.strerror}", file=sys.stderr)
        return 2


def _rows(stream: BinaryIO, name: str) -> int:
    status = 0
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        row: Any = None
        try:
            row = _parse(line)
            answer = answer_row(row)
        except ValueError as error:
            status = 1
            print(f"{name}:{number}: {error}", file=sys.stderr)
            label = row.get("name") if isinstance(row, dict) else None
            answer = {"name": label, "line": number, "error": str(error)}
        print(json.dumps(answer, ensure_ascii=True))
    return status


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("the row is not UTF-8") from None
    except RecursionError:
        raise ValueError("the row is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the row is not JSON: {error.msg} at column {error.colno}") from None


def answer_row(row: Any) -> dict[str, Any]:
    """A row with its answers.

    Raises:
        ValueError: the row lacks something or has a value of the wrong type.
    """
    if not isinstance(row, dict):
        raise ValueError("the row is not a JSON object")
    config = row.get("config")
    if not isinstance(config, str):
        raise ValueError("config must be the text of a configuration")
    found = predict(config, _node(row), env=_env(row.get("env")))
    answers = {key: getattr(found, key) for key in ANSWERS}
    return {**row, **answers}


def _node(row: Mapping[str, Any]) -> NodeLayout:
    mig = row.get("mig") or ""
    if not isinstance(mig, str):
        raise ValueError("mig must be a text such as 0=1g.5gb,3g.20gb;1=")
    product = row.get("product")
    if product is not None and not isinstance(product, str):
        raise ValueError("product must be a string")
    node: dict[str, Any] = {"product": product} if product else {}
    memory = row.get("memory")
    if memory is not None:
        node["memory_mib"] = _count("memory", memory)
    return NodeLayout(gpus=_count("gpus", row.get("gpus")), mig=parse_mig(mig), **node)


def _count(key: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{key} must be a whole number, not {json.dumps(value)}")
    return value


def _env(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, (str, int)) for v in value.values()):
        raise ValueError("env must be a map of names to texts")
    return {k: json.dumps(v) if isinstance(v, (bool, int)) else v for k, v in value.items()}
