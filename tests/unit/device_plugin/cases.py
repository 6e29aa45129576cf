"""Recorded cases of the device plugin.

`vectors.jsonl`: 64 rows from the plugin v0.20.0 itself on two A100-SXM4-40GB of go-nvml's mock server.
`loader_cases.jsonl`: rows from the libraries that the plugin's loader consists of (sigs.k8s.io/yaml v1.6.0, Go 1.26
encoding/json, urfave/cli v2.27.7, google/uuid v1.6.0, apimachinery v0.36.3), run with the plugin's configuration types.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").split("\n") if line]


def sharing(rows: str, method: str = "timeSlicing", extra: str = "", flags: str = "mpsRoot: /run/nvidia/mps") -> str:
    """A configuration: rows in flow style, extra keys of the method, flags."""
    return f"version: v1\nflags: {{{flags}}}\nsharing:\n  {method}:\n{extra}    resources: [{rows}]\n"


GPU4 = "{name: nvidia.com/gpu, replicas: 4}"
