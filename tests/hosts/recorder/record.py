"""Callback plugin for tests: one JSON line for each result of a task."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: notification
short_description: results as JSON lines in the file that RECORD_FILE names
"""


class CallbackModule(CallbackBase):
    """Writes host, task, changed, failed, skipped, and the items of loops."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _write(self, kind: str, result: Any, **more: Any) -> None:
        data = result.result
        row = {
            "kind": kind,
            "host": result.host.get_name(),
            "task": result.task.get_name(include_role_fqcn=False),
            "changed": bool(data.get("changed")),
            "msg": str(data.get("msg", ""))[:4000],
            **more,
        }
        with Path(os.environ["RECORD_FILE"]).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task that worked."""
        self._write("ok", result, diff=bool(result.result.get("diff")))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task that failed."""
        self._write("failed", result, ignored=ignore_errors)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task that was skipped."""
        self._write("skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host that does not answer."""
        self._write("unreachable", result)
