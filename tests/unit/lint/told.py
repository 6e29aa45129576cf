"""Short ways to lint a text and to see what was told."""

import textwrap
from typing import Any

from gpufleet.findings.finding import Finding
from gpufleet.lint import Options, lint
from gpufleet.lint.node import parse_node

GPU4 = """\
version: v1
sharing:
  timeSlicing:
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""


def d(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def told(*texts: str, gpus: str = "", mig: str = "", **options: Any) -> list[Finding]:
    node = parse_node(gpus, mig) if gpus else None
    files = [(f"f{i}.yaml", text) for i, text in enumerate(texts)]
    return list(lint(files, Options(node=node, **options)).found)


def codes(*texts: str, **options: Any) -> list[str]:
    return sorted({one.code for one in told(*texts, **options)})


def one(code: str, *texts: str, **options: Any) -> Finding:
    found = [x for x in told(*texts, **options) if x.code == code]
    assert len(found) == 1, [(x.code, x.path) for x in told(*texts, **options)]
    return found[0]


def config_map(text: str, key: str = "any", name: str = "ts", namespace: str = "gpu") -> str:
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n  {key}: |\n"
        + textwrap.indent(text, "    ")
    )


def pod(container: str = "", spec: str = "", kind: str = "Pod") -> str:
    """A pod with one container; both arguments are YAML text at their own indentation."""
    head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n"
    body = "containers:\n- name: c\n  image: example/app:1\n" + textwrap.indent(d(container), "  ")
    if kind == "Deployment":
        head = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: p\nspec:\n  replicas: 3\n"
        head += "  template:\n    spec:\n"
        return head + textwrap.indent(d(spec) + body, "      ")
    return head + textwrap.indent(d(spec) + body, "  ")


def limits(resource: str = "nvidia.com/gpu", number: object = 1) -> str:
    return f"resources:\n  limits:\n    {resource}: {number}\n"
