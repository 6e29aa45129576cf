"""Reading facts that playbooks/verify.yml collected: a folder of HOST.json, or one document with host and fact."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpufleet.findings.finding import Finding
from gpufleet.findings.path import join_path
from gpufleet.findings.registry import finding
from gpufleet.rules.host_facts import HostFact

Facts = dict[str, HostFact | None]


def read_facts(path: Path) -> tuple[Facts | None, list[Finding]]:
    """Facts by host, None where they cannot be read, and what is wrong with them.

    Returns:
        No facts at all where not even the hosts are known.

    Raises:
        OSError: the file or folder cannot be opened.
    """
    facts: Facts = {}
    found: list[Finding] = []
    if not path.is_dir():
        content = _json(path, found)
        if not isinstance(content, dict) or "schema" in content:
            return None, found or [_wrong("", "it is not a map from host to fact", path)]
        for host, fact in content.items():
            facts[host] = _fact(host, fact, path, found)
        return facts, found
    files = sorted(path.glob("*.json"))
    if not files:
        return None, [_wrong("", "the folder holds no HOST.json", path)]
    for file in files:
        before = len(found)
        content = _json(file, found)
        facts[file.stem] = _fact(file.stem, content, file, found) if len(found) == before else None
    return facts, found


def _json(path: Path, found: list[Finding]) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        found.append(_wrong("", f"not UTF-8: {error.reason}", path))
    except ValueError as error:
        found.append(_wrong("", f"not JSON: {error}", path))
    return None


def _fact(host: str, content: Any, path: Path, found: list[Finding]) -> HostFact | None:
    form = content.get("schema", 1) if isinstance(content, dict) else 1
    if form != 1:
        found.append(
            _wrong(join_path((host, "schema")), f"{host} has form {json.dumps(form)}, and form 1 is known", path)
        )
        return None
    try:
        return HostFact.model_validate(content)
    except ValidationError as failure:
        for error in failure.errors(include_url=False):
            place = join_path((host, *error["loc"]))
            found.append(_wrong(place, f"{place}: {error['msg']}", path))
        return None


def _wrong(place: str, why: str, path: Path) -> Finding:
    return replace(finding("GF820", place, fault=why), file=str(path))
