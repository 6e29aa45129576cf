"""Failures on demand, from a control file (environment TWIN_AZURE_CONTROL).

    {"fail": [{"op": "create", "type": "AgentPool", "name": "t4", "code": "AllocationFailed", "times": 1}]}

op: create | update | delete | read | invoke; type and name may be left out (any). code and message are what the
service answers. times: how often (default 1, -1 for always); the file is rewritten with what is left.
leaves: "nothing" (default) or "failed": the resource exists afterwards, in provisioning state Failed.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from .errors import ArmError, FailedStateError

MESSAGES = {
    "AllocationFailed": "The VM allocation failed. There is not enough capacity for the requested VM size.",
    "QuotaExceeded": "The operation would exceed the approved quota of cores.",
    "OverconstrainedAllocationRequest": "The VM allocation cannot be satisfied, its constraints are too restrictive.",
    "TooManyRequests": "The request is being throttled.",
}


def raise_planned(op: str, kind: str, name: str, control: str | None = None) -> None:
    """Raise the first planned failure that matches, and use one of its times up."""
    path = Path(control or os.environ.get("TWIN_AZURE_CONTROL") or "/nonexistent")
    if not path.exists():
        return
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        plan = json.load(file)
        for entry in plan.get("fail", []):
            wanted = {"op": op, "type": kind, "name": name}
            if any(key in entry and entry[key] != value for key, value in wanted.items()) or entry.get("times", 1) == 0:
                continue
            if entry.get("times", 1) > 0:
                entry["times"] = entry.get("times", 1) - 1
                file.seek(0)
                file.truncate()
                json.dump(plan, file)
            code = entry.get("code", "InternalOperationError")
            message = entry.get("message") or MESSAGES.get(code, f"Planned failure of {op} {kind} {name}.")
            error = FailedStateError if entry.get("leaves") == "failed" else ArmError
            raise error(code, message, status=429 if code == "TooManyRequests" else 409)
