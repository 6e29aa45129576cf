"""Small stacks to start from, and changes to them by path."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from gpufleet.compiled import Compiled, compile_source
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import split_path
from gpufleet.stackfile.source import Source, parse

REMOVE = object()

_AKS_CLUSTER = {"kind": "aks", "name": "dev", "location": "eastus"}
_CLUSTER = {"kind": "existing", "name": "idc", "kubeconfig": {"path": "idc.conf"}}
_AKS_POOL = {"name": "t4", "vmSize": "Standard_NC4as_T4_v3", "count": 1}
_POOL = {"name": "t4", "hosts": {"n1": {}}, "gpu": "T4", "gpusPerNode": 1}

#: The smallest stack without any diagnostic, for both kinds of cluster and both routes.
BASES: dict[str, dict[str, Any]] = {
    "aks-plugin": {"cluster": _AKS_CLUSTER, "pools": [_AKS_POOL], "stack": {"kind": "plugin"}},
    "aks-operator": {
        "cluster": _AKS_CLUSTER,
        "pools": [{**_AKS_POOL, "driver": "operator"}],
        "stack": {"kind": "operator"},
    },
    "existing-plugin": {"cluster": _CLUSTER, "pools": [_POOL], "stack": {"kind": "plugin"}},
    "existing-operator": {"cluster": _CLUSTER, "pools": [_POOL], "stack": {"kind": "operator"}},
}


def put(data: Any, path: str, value: Any) -> None:
    """Sets, appends (index one past the end) or takes away (`REMOVE`) one value; makes the maps on the way."""
    *parents, last = split_path(path)
    for part in parents:
        data = data.setdefault(part, {}) if isinstance(part, str) else data[part]
    if value is REMOVE:
        del data[last]
    elif isinstance(last, int) and last == len(data):
        data.append(value)
    else:
        data[last] = value


def sections(base: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """A base with changes, as plain values by section."""
    data = copy.deepcopy(BASES[base])
    for path, value in (changes or {}).items():
        put(data, path, copy.deepcopy(value) if value is not REMOVE else REMOVE)
    return data


def stack_text(data: dict[str, Any]) -> str:
    """Sections as the text of a stack file."""
    return yaml.safe_dump({"config": {f"gpufleet:{k}": v for k, v in data.items()}}, sort_keys=False, width=200)


def compile_text(text: str, name: str = "test") -> Compiled:
    """A text through the whole road, as from the file `stacks/Pulumi.NAME.yaml`."""
    return compile_source(name, *parse(text, f"stacks/Pulumi.{name}.yaml"))


def compile_data(data: dict[str, Any], name: str = "test") -> Compiled:
    """Plain values through the whole road."""
    return compile_source(name, Source(data=data), [])


def compile_base(base: str, changes: dict[str, Any] | None = None) -> Compiled:
    """A base with changes through the whole road, by way of its text."""
    return compile_text(stack_text(sections(base, changes)))


def told(compiled: Compiled) -> list[tuple[str, str]]:
    """Code and path of every diagnostic, in the order shown."""
    return [(d.code, d.path) for d in compiled.found]


def the_one(compiled: Compiled, code: str) -> Finding:
    """The only diagnostic of a code; fails with all of them where there is none or more."""
    found = [d for d in compiled.found if d.code == code]
    assert len(found) == 1, told(compiled)
    return found[0]
