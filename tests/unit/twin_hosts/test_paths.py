"""The cache of roots and packages: what is old and unused goes, nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

from twin.hosts import paths


def test_only_old_unused_siblings_of_the_same_kind_go(tmp_path: Path) -> None:
    old = time.time() - (paths.KEEP_DAYS + 1) * 86400
    for name in ("host-new", "host-old", "host-recent", "root-old"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.log").write_text("")
        if name.endswith("old"):
            os.utime(tmp_path / name, (old, old))
    os.utime(tmp_path / "host-new", (old, old))
    paths.used(tmp_path / "host-new")
    assert {entry.name for entry in tmp_path.iterdir() if entry.is_dir()} == {"host-new", "host-recent", "root-old"}
    assert not (tmp_path / "host-old.log").exists()
    assert time.time() - (tmp_path / "host-new").stat().st_mtime < 60
