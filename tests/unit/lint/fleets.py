"""Stacks for `gpufleet lint --stack-file`, and short ways to lint a text against them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from gpufleet.findings.finding import Finding, Severity
from gpufleet.lint import Options, lint
from gpufleet.lint.place import PoolNode
from gpufleet.lint.pools import merge
from gpufleet.lint.stack import nodes_of, of_fleet

from tests.unit.config.samples import compile_data

LAB: dict[str, Any] = {"kind": "existing", "name": "lab", "site": "lab", "kubeconfig": {"path": "k.conf"}}
AKS: dict[str, Any] = {"kind": "aks", "name": "lab", "location": "eastus"}


def host_pool(name: str, gpu: str = "T4", gpus: int = 1, hosts: int = 1, **keys: Any) -> dict[str, Any]:
    """A pool of an existing cluster; the hosts are called after it."""
    named = {f"{name}-{i}": {} for i in range(hosts)}
    return {"name": name, "hosts": named, "gpu": gpu, "gpusPerNode": gpus, **keys}


def sections(
    *pools: dict[str, Any], route: str = "operator", cluster: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A whole stack. On the operator route the operator installs the driver where a pool does not say who does."""
    own = [{"driver": "operator", **p} if route == "operator" and "hosts" in p else p for p in pools]
    return {"cluster": cluster or LAB, "pools": own, "stack": {"kind": route}, **more}


def write(folder: Path, data: dict[str, Any]) -> Path:
    """The stack as a file."""
    file = folder / "Pulumi.lab.yaml"
    file.write_text(yaml.safe_dump({"config": {f"gpufleet:{k}": v for k, v in data.items()}}, sort_keys=False))
    return file


def lint_file(file: Path, *texts: str, pool: str | None = None) -> list[Finding]:
    """What the command finds."""
    return lint_pools(nodes_of(None, file, pool).pools, *texts)


def lint_stack(data: dict[str, Any], *texts: str) -> list[Finding]:
    """The same without a file."""
    compiled = compile_data(data)
    assert compiled.fleet is not None, [(d.code, d.path, d.reason) for d in compiled.found]
    return lint_pools(of_fleet(compiled.fleet), *texts)


def lint_pools(pools: tuple[PoolNode, ...], *texts: str) -> list[Finding]:
    """The same for pools that are given."""
    files = [(f"f{i}.yaml", text) for i, text in enumerate(texts)]
    options = [Options(p.node, driver=p.driver, taints=p.taints, pool_env=p.env, pool=p) for p in pools]
    return merge([(one, lint(files, one)) for one in options])


def errors(found: list[Finding]) -> list[str]:
    """Codes of the errors."""
    return sorted({one.code for one in found if one.severity is Severity.ERROR})


def codes(found: list[Finding]) -> list[str]:
    """Codes of everything."""
    return sorted({one.code for one in found})
