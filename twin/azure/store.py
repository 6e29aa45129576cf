"""The state of the stand-in's subscription: one JSON file, changed under a file lock, replaced whole.

Shape: {"resources": {ARM id: {"kind": str, "name": str, "props": {...}, "nodes": {...}}}}. Several provider processes
(two stacks, a preview beside an up) may use one file at the same time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

State = dict[str, Any]


class Store:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @contextmanager
    def change(self) -> Iterator[State]:
        """The state, alone with it; written back if the block ends without an exception."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.read()
            yield state
            new = self.path.with_suffix(f".{os.getpid()}.new")
            new.write_text(json.dumps(state, indent=1, sort_keys=True))
            new.replace(self.path)

    def read(self) -> State:
        try:
            state: State = json.loads(self.path.read_text())
        except FileNotFoundError:
            state = {}
        state.setdefault("resources", {})
        return state
