"""Writes what is derived from code and tables: `python docs/generate.py`; with --check it only compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpufleet.advise.docs import BLOCKS, fill
from gpufleet.catalog import gpu_models
from gpufleet.findings.registry import rules
from gpufleet.stackfile.schema import stack_schema

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "0": "Reading the stack file",
    "1": "Shape of the stack file",
    "2": "Driver owner and hardware",
    "3": "Sharing",
    "4": "Pools, autoscaler, teams",
    "5": "Lint: configuration",
    "6": "Lint: workloads",
    "7": "Hosts",
    "8": "Hosts: stack file, inventory, facts",
    "9": "Advice",
}


def diagnostics_page() -> str:
    """Markdown: one section per hundred, one row per code."""
    lines = [
        "# Diagnostics",
        "",
        "Generated from the code tables; do not edit. Errors stop everything. A warning can be acknowledged in the",
        'stack file by its code and a reason (`gpufleet:acknowledge: {GF420: "a dev pool, four nodes at most"}`).',
    ]
    for digit, title in PARTS.items():
        rows = [r for r in rules().values() if r.code[2] == digit]
        if not rows:
            continue
        lines += ["", f"## {title}", "", "| code | severity | says | why | do |", "| --- | --- | --- | --- | --- |"]
        for c in rows:
            cells = (c.code, c.severity.value, c.title, c.reason or c.because, c.do or c.remedy)
            texts = (" ".join(t.replace("{{", "{").replace("}}", "}").replace("|", "\\|").split()) for t in cells)
            lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def mig_tables() -> str:
    """Markdown: GPUs that share one table of profiles in one row, largest count per GPU behind each profile."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for model in gpu_models().values():
        if model.mig_profiles:
            other = {p: f"{p} (or {model.mig_renamed[p]})" if p in model.mig_renamed else p for p in model.mig_profiles}
            profiles = ", ".join(f"{other[p]} {count}" for p, count in model.mig_profiles.items())
            key = (profiles, ", ".join(model.mig_aks.values()) or "-", model.mig_min_driver or "not known")
            rows.setdefault(key, []).append(model.id)
    head = ["| GPU | profiles, each with the most per GPU | cut by AKS | lowest driver |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *(f"| {', '.join(gpus)} | {' | '.join(key)} |" for key, gpus in rows.items())])


def _pages() -> dict[Path, str]:
    """Pages with generated blocks, filled."""
    blocks = {**BLOCKS, "mig.md": {"mig": mig_tables}}
    return {path: fill(path.read_text(encoding="utf-8"), blocks[path.name]) for path in map(_doc, blocks)}


def _doc(name: str) -> Path:
    return ROOT / "docs" / name


def outputs() -> dict[Path, str]:
    """File -> text that it should hold."""
    return {
        ROOT / "stacks" / "schema.json": json.dumps(stack_schema(), indent=2) + "\n",
        ROOT / "docs" / "diagnostics.md": diagnostics_page(),
        **_pages(),
    }


def main() -> int:
    """0 when everything is current."""
    stale = [p for p, text in outputs().items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{'stale' if '--check' in sys.argv else 'written'}: {path.relative_to(ROOT)}")
        if "--check" not in sys.argv:
            path.write_text(outputs()[path], encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
