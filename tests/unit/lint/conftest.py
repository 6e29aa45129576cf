"""Lint of a text against the pools of a stack."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli.main import main

OnStack = Callable[[str], list[dict[str, Any]]]

STACK = """\
config:
  gpufleet:cluster: {kind: existing, name: lab, site: lab, distribution: kubeadm, kubeconfig: {path: k.conf}}
  gpufleet:pools:
    - {name: t4, hosts: {gpu01: {address: 10.0.0.11}}, gpu: T4, gpusPerNode: 1, os: ubuntu-22.04, driver: host}
    - {name: l4, hosts: {gpu02: {address: 10.0.0.12}}, gpu: L4, gpusPerNode: 1, os: ubuntu-22.04, driver: host}
  gpufleet:stack: {kind: plugin}
"""


@pytest.fixture
def on_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> OnStack:
    """The findings of a text on a stack with two pools."""

    def findings(text: str) -> list[dict[str, Any]]:
        (tmp_path / "stack.yaml").write_text(STACK)
        (tmp_path / "text.yaml").write_text(text)
        main(["lint", "--json", str(tmp_path / "text.yaml"), "--stack-file", str(tmp_path / "stack.yaml")])
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
        return found

    return findings
