"""Workload classes, methods and sizes that measurements are of. Data only."""

from __future__ import annotations

from dataclasses import dataclass

TRAINING, INFERENCE, NOTEBOOK, COPY, COMMAND = "training", "inference", "notebook", "copy", "command"
GRAPH, DECODER = "graph", "decoder"
MEMORY = "memory"

#: Workload class -> (unit of one step, what it stands for).
WORKLOADS: dict[str, tuple[str, str]] = {
    TRAINING: ("steps", "a training step that fills the GPU, two steps in flight"),
    INFERENCE: ("requests", "one small-batch request after the other, host work between kernels"),
    GRAPH: ("requests", "the same request as one CUDA graph, hardly any host work"),
    DECODER: ("steps", "a decoder's step: reads weights and cache, bound by memory bandwidth"),
    NOTEBOOK: ("cells", "short bursts with idle time between them"),
    COPY: ("copies", "device memory copied to device memory"),
    COMMAND: ("steps", "the user's own command"),
}

TIME_SLICING, MPS, MPS_UNLIMITED, MIG = "timeSlicing", "mps", "mpsUnlimited", "mig"

METHODS: dict[str, str] = {
    TIME_SLICING: "plain processes; the driver gives each context a slice of time in turn",
    MPS: "MPS as the device plugin sets it up: thread percentage 100/n and memory limit total/n per client",
    MPS_UNLIMITED: "MPS without limits",
    MIG: "one process per MIG instance",
}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the workloads. Times are those of one process that has the GPU to itself."""

    launch_ms: float = 5.0  # built-in: length of one saturating launch
    training_launches: int = 4  # built-in: launches per step
    chain_kernels: int = 60  # built-in inference: kernels per request
    chain_kernel_us: float = 10.0
    host_ms: float = 1.4  # built-in inference: host time per request
    cell_ms: float = 50.0  # notebook: GPU time per cell
    think_ms: float = 200.0  # notebook: mean of the idle time after a cell
    copy_mib: int = 512
    copies: int = 8  # copies per step
    cache_gib: float = 6.0  # decoder: what one step reads beside the weights
    decoder_host_ms: float = 2.0  # decoder: host time after each step, for sampling and scheduling
    decoder_batch: int = 16  # PyTorch decoder
    decoder_layers: int = 8
    decoder_hidden: int = 4096
    hidden: int = 1024  # PyTorch training: transformer encoder
    layers: int = 8
    heads: int = 16
    tokens: int = 512
    batch: int = 32


def describe(workload: str, backend: str, sizes: Sizes) -> str:
    """What one process of a series did, in words."""
    s = sizes
    if workload == COMMAND:
        return "the user's own command"
    if backend == "torch":
        layers = f"{s.layers} layers, hidden {s.hidden}, {s.heads} heads"
        decoder = f"{s.decoder_layers} layers, hidden {s.decoder_hidden}, batch {s.decoder_batch}"
        return {
            TRAINING: f"bf16 transformer encoder ({layers}), {s.batch} x {s.tokens} tokens, AdamW, two steps in flight",
            INFERENCE: "BERT-base-size encoder, bf16, batch 1, 128 tokens, eager, one request after the other",
            GRAPH: "BERT-base-size encoder, bf16, batch 1, 128 tokens, as a CUDA graph, one request after the other",
            DECODER: f"bf16 decoder ({decoder}), one token per step, cache of {s.cache_gib:g} GiB, then "
            f"{s.decoder_host_ms:g} ms host time",
            NOTEBOOK: f"bf16 matrix products of about {s.cell_ms:g} ms, then on average {s.think_ms:g} ms idle",
            COPY: f"{s.copies} device copies of {s.copy_mib} MiB per step, two steps in flight",
        }[workload]
    return {
        TRAINING: f"{s.training_launches} FMA kernels of {s.launch_ms:g} ms per step, two steps in flight",
        INFERENCE: f"{s.chain_kernels} small kernels of {s.chain_kernel_us:g} us, then {s.host_ms:g} ms host time",
        GRAPH: f"a CUDA graph of {s.chain_kernels} small kernels of {s.chain_kernel_us:g} us",
        DECODER: f"8 kernels that read {s.cache_gib:g} GiB together, then {s.decoder_host_ms:g} ms host time",
        NOTEBOOK: f"FMA kernels of {s.cell_ms:g} ms together, then on average {s.think_ms:g} ms idle",
        COPY: f"{s.copies} copy kernels of {s.copy_mib} MiB per step, two steps in flight",
    }[workload]
