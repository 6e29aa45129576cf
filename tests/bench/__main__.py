"""`python -m tests.bench [NAME...] [--write]`: prints the tables; --write keeps them in docs/benchmarks.md."""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import platform
import sys

from tests.bench.measure import ROOT, Row, table

#: name -> (module, title); a module has `run() -> list[Row]`
BENCHES = {
    "plan": ("tests.bench.plan", "Plan"),
    "engine": ("tests.bench.engine", "Engine"),
    "lint": ("tests.bench.lint", "Lint"),
    "status": ("tests.bench.status", "Status"),
    "advise": ("tests.bench.advise", "Advice"),
    "hosts": ("tests.bench.hosts", "Hosts"),
    "inventory": ("tests.bench.inventory", "Inventory"),
}
PAGE = ROOT / "docs" / "benchmarks.md"


def main() -> int:
    """Runs what is named, or everything there is."""
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or list(BENCHES)
    parts = []
    for name in names:
        module, title = BENCHES[name]
        if importlib.util.find_spec(module) is None:
            continue
        rows: list[Row] = importlib.import_module(module).run()
        parts.append(f"## {title}\n\n{table(rows)}")
        print(parts[-1] + "\n", flush=True)
    if "--write" in sys.argv:
        today = datetime.date.today().isoformat()
        head = (
            "# Benchmarks\n\nWritten by `make bench WRITE=--write`. Ratios within one run; absolute times are"
            f" those of one machine ({platform.system()}, Python {platform.python_version()}, {today}).\n\n"
        )
        PAGE.write_text(head + "\n\n".join(parts) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
