"""Objects that say something about GPUs in a form that lint does not know: they are named in a note."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import finding
from gpufleet.lint.document import MOST_LEVELS, Document, text_at
from gpufleet.lint.offered import is_gpu
from gpufleet.lint.offers import PREFIX
from gpufleet.lint.tables import table

#: Kinds that describe nodes and their GPUs: Karpenter's, and what a driver for claims reports.
OF_NODES = ("NodePool", "Provisioner", "NodeClaim", "ResourceSlice")
#: Kinds that ask for no GPU and still decide about them: (API group, kind).
_DECIDE = {("nvidia.com", "GPUCluster"): "It sets up NVIDIA's driver for claims (DRA) in place of the device plugin."}


def unknown(document: Document) -> Iterator[Finding]:
    """A note about an object of an unknown kind that asks for GPUs, or sets them up."""
    group = text_at(document.root, "apiVersion").rpartition("/")[0]
    because = _DECIDE.get((group, document.api_kind))
    if because is None and not _asks_for_gpus(document.root, 0):
        return
    note = finding("GF505", "kind", kind=document.api_kind, because=because)
    yield replace(note, file=document.file, line=document.root.line)


def _asks_for_gpus(item: Item, level: int) -> bool:
    """Whether a GPU is counted, or named as a resource or class of devices, somewhere in a value."""
    if level > MOST_LEVELS:
        return False
    if isinstance(item.value, list):
        return any(_names_gpus(entry) or _asks_for_gpus(entry, level + 1) for entry in item.value)
    if not isinstance(item.value, dict):
        return False
    for key, value in item.value.items():
        inside = value.value if key in ("limits", "requests") and isinstance(value.value, dict) else {}
        if any(name.startswith(PREFIX) for name in inside) or (is_gpu(key) and _is_number(value)):
            return True
        if key != "key" and _names_gpus(value):  # `key` is that of a taint, or of a toleration
            return True
        if _asks_for_gpus(value, level + 1):
            return True
    return False


def _names_gpus(item: Item) -> bool:
    return isinstance(item.value, str) and (is_gpu(item.value) or item.value in table("claims")["classes"])


def _is_number(item: Item) -> bool:
    """A number of GPUs; a label or taint of that name says true or present."""
    text = item.value if isinstance(item.value, str) else ""
    return (isinstance(item.value, (int, float)) and not isinstance(item.value, bool)) or text.isdigit()
