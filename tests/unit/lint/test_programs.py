"""Programs that use a GPU, in pods that ask for none."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from gpufleet.findings.finding import Severity

from tests.unit.lint.fleets import LAB, host_pool, lint_stack, sections
from tests.unit.lint.told import codes

VLLM = "vllm/vllm-openai:v0.10.1"


def deployment(image: str, args: list[str] | None = None, spec: dict[str, Any] | None = None, **container: Any) -> str:
    one = {"name": "a", "image": image, "resources": {"limits": {"cpu": "1", "memory": "2Gi"}}, **container}
    if args is not None:
        one["args"] = args
    body = {"containers": [one], **(spec or {})}
    return yaml.safe_dump(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "agent"},
            "spec": {"template": {"spec": body}},
        }
    )


def test_rp_30_a_server_without_a_gpu() -> None:
    rke2 = {**LAB, "distribution": "rke2"}
    stack = sections(
        host_pool("t4", os="ubuntu-22.04", sharing="ts"), cluster=rke2,
        sharing={"ts": {"strategy": "timeSlicing", "replicas": 4}},
    )  # fmt: skip
    text = deployment(VLLM, ["--model", "Qwen/Qwen3-8B", "--gpu-memory-utilization", "0.4"])
    [found] = lint_stack(stack, text)
    assert (found.code, found.severity) == ("GF638", Severity.WARNING)
    assert "vLLM" in found.message and "nvidia.com/gpu: 1" in found.remedy


@pytest.mark.parametrize(
    "text",
    [
        deployment(VLLM),
        deployment("registry.example/mirror/vllm/vllm-openai@sha256:00", ["--model", "m"]),
        deployment("own:1", ["serve"], command=["sh", "-c", "vllm serve m --port 80"]),
        deployment("own:1", command=["python3", "-m", "vllm.entrypoints.openai.api_server"]),
        deployment("own:1", command=["python", "-m", "sglang.launch_server", "--model-path", "m"]),
        deployment("ghcr.io/huggingface/text-generation-inference:3.0.1", ["--model-id", "m"]),
        deployment("own:1", command=["trtllm-serve", "m"]),
        deployment("ghcr.io/huggingface/text-embeddings-inference:1.8", ["--model-id", "m"]),
        deployment("ghcr.io/ggml-org/llama.cpp:server-cuda", ["-m", "/m.gguf"]),
        deployment("openmmlab/lmdeploy:v0.9", command=["lmdeploy", "serve", "api_server", "m"]),
        deployment("own:1", command=["./gpu_burn", "60"]),
        deployment("nvcr.io/nim/meta/llama3-8b-instruct:1.0.0"),
        deployment("nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"),
        deployment("ubuntu:22.04", command=["nvidia-smi", "-L"]),
        deployment("ubuntu:22.04", command=["sh", "-c", "while true; do nvidia-smi; sleep 60; done"]),
        deployment(VLLM, ["--model", "m", "--download-dir", "/cache", "--cpu-offload-gb", "4"]),
    ],
)  # fmt: skip
def test_rp_30_programs_that_need_a_gpu(text: str) -> None:
    assert codes(text) == ["GF638"]


@pytest.mark.parametrize(
    "text",
    [
        deployment(VLLM, resources={"limits": {"nvidia.com/gpu": 1}}),
        deployment(VLLM, resources={"limits": {"amd.com/gpu": 1}}),
        deployment(VLLM, resources={"limits": {"google.com/tpu": 4}}),
        deployment(VLLM, resources={"claims": [{"name": "gpu"}]}),
        deployment(VLLM, spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}),
        deployment(VLLM, spec={"runtimeClassName": "nvidia"}),
        deployment(VLLM, ["--device", "cpu", "--model", "m"]),
        deployment(VLLM, env=[{"name": "VLLM_TARGET_DEVICE", "value": "cpu"}]),
        deployment("vllm/vllm-openai-rocm:v0.10.1", ["--model", "m"]),
        deployment("ghcr.io/huggingface/text-generation-inference:3.0.1-intel-cpu", ["--model-id", "m"]),
        deployment("ghcr.io/huggingface/text-embeddings-inference:cpu-1.8", ["--model-id", "m"]),
        deployment("ghcr.io/ggml-org/llama.cpp:server", ["-m", "/m.gguf"]),
        deployment(VLLM, command=["vllm", "bench", "serve"]),
        deployment(VLLM, command=["sh", "-c", "ray start --head --block"]),
        deployment(VLLM, command=["huggingface-cli", "download", "m"]),
        deployment(VLLM, command=["python3", "client.py"]),
        deployment(VLLM, ["--help"]),
        deployment("bitnami/kubectl", command=["sh", "-c", "kubectl exec -n ml train-0 -- nvidia-smi"]),
        deployment("busybox", command=["chroot", "/host", "nvidia-smi"]),
        deployment("own:1", command=["nvidia-smi"], securityContext={"privileged": True}),
        deployment("lmcache/lmstack-router:v0.1.0", ["--service-discovery", "k8s"]),
        deployment("busybox", spec={"initContainers": [{"name": "i", "image": VLLM, "args": ["--model", "m"]}]}),
        deployment("nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.3-ubuntu22.04"),
        deployment("nvcr.io/nvidia/cuda:12.8.1-base-ubuntu24.04", command=["python3", "train.py"]),
        deployment("own:1", command=["python3", "serve.py", "--note", "not-nvidia-smi-at-all"]),
    ],
)  # fmt: skip
def test_rp_30_programs_that_need_none(text: str) -> None:
    assert "GF638" not in codes(text)
