"""`gpufleet lint`: many manifests at once, growth with their number, and start-up against plain libraries."""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import yaml
from gpufleet.lint import Options, lint
from gpufleet.lint.node import parse_node

from tests.bench.measure import Row, alternate, command

#: The command without the exit code that findings give it.
_LINT = "import sys; from gpufleet.cli.main import main; sys.exit(max(0, main(['lint', sys.argv[1]]) - 1))"
KINDS = ("Pod", "Deployment", "DaemonSet", "ConfigMap", "values")


def manifest(i: int, chance: random.Random) -> str:
    """One manifest of a common kind, with the slips that such files have; every one differs from the others."""
    kind = KINDS[i % len(KINDS)]
    if kind == "values":
        name = f"n{i - 1}" if chance.random() < 0.9 else f"ts-{i}"  # of the ConfigMap before it, or of none
        config = {"name": name, "default": chance.choice(["any", ""])}
        return yaml.safe_dump({"devicePlugin": {"config": config}, "mig": {"strategy": "single"}})
    if kind == "ConfigMap":
        key = chance.choice(["renameByDefault", "renamebydefault"])
        text = (
            f"version: v1\nsharing:\n  timeSlicing:\n    {key}: false\n    resources:\n"
            f"    - name: nvidia.com/gpu\n      replicas: {chance.randint(2, 48)}\n"
        )
        return yaml.safe_dump(_object(kind, i) | {"data": {"any": text}})
    container = {
        "name": "c",
        "image": chance.choice(["nvidia/cuda:12.4.1-base", "vllm/vllm-openai:v0.9.0", "example/app:1-cu118"]),
        "args": ["--gpu-memory-utilization=0.3"],
        "resources": {"limits": {"nvidia.com/gpu": chance.randint(1, 2)}},
    }
    pod = {"containers": [container], "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
    if kind == "Pod":
        return yaml.safe_dump(_object(kind, i) | {"spec": pod})
    labels = {"app": f"a{i}"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return yaml.safe_dump(_object(kind, i) | {"spec": {"selector": {"matchLabels": labels}, "template": template}})


def _object(kind: str, i: int) -> dict[str, object]:
    version = "v1" if kind in ("Pod", "ConfigMap") else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": f"n{i}", "namespace": f"team-{i % 7}"}}


def files(number: int) -> list[tuple[str, str]]:
    """(name, text) of that many manifests; the same for the same number."""
    chance = random.Random(20261130)
    return [(f"m{i}.yaml", manifest(i, chance)) for i in range(number)]


def seconds(number: int, rounds: int) -> tuple[float, int]:
    """Median seconds of CPU from texts to findings, and how many findings there are."""
    texts, options = files(number), Options(node=parse_node("4xA100-80GB"), driver="535.183.01")
    taken, found = [], 0
    for _ in range(rounds):
        start = time.process_time()
        found = len(lint(texts, options).found)
        taken.append(time.process_time() - start)
    assert found > number / 2  # the manifests are not empty of what lint looks for
    return statistics.median(taken), found


def run() -> list[Row]:
    """1,000 manifests, growth, start-up."""
    python = Path(sys.executable)
    seconds(10, 1)
    hundred, _ = seconds(100, 5)
    thousand, found = seconds(1000, 3)
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.yaml"
        one.write_text(manifest(1, random.Random(1)), encoding="utf-8")
        whole, base = alternate(
            command([python, "-c", _LINT, one]), command([python, "-c", "import yaml, pydantic"]), 25
        )
    return [
        Row(
            f"lint of 1,000 manifests ({found} findings)",
            f"{thousand:.2f} s",
            f"whole process for one {whole * 1000:.0f} ms",
            f"{thousand / 1000 / whole:.3f} of it per manifest",
            "seconds; 0.1",
        ),
        Row(
            "lint of 1,000 manifests",
            f"{thousand:.2f} s",
            f"100 manifests {hundred * 1000:.0f} ms",
            f"{thousand / hundred:.1f}",
            "10; 13 with Python's garbage collector",
        ),
        Row(
            "`gpufleet lint FILE`, whole process",
            f"{whole * 1000:.0f} ms",
            f'`python -c "import yaml, pydantic"` {base * 1000:.0f} ms',
            f"{whole / base:.2f}",
            "2",
        ),
    ]
