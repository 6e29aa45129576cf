"""The workload classes with PyTorch: a real training step, a real BERT-size request, a decoder's step."""

from __future__ import annotations

import importlib
from typing import Any

from gpufleet.bench.loops import Think
from gpufleet.measure.workloads import COPY, DECODER, GRAPH, INFERENCE, NOTEBOOK, TRAINING, Sizes

_MATRIX = 8192  # notebook: bf16 matrix product of this size
_HEAD = 128  # decoder: width of one attention head
_BERT = {"hidden": 768, "layers": 12, "heads": 12, "tokens": 128, "vocabulary": 30522}


def _encoder(torch: Any, hidden: int, layers: int, heads: int) -> Any:
    """A pre-norm transformer encoder: attention through scaled_dot_product_attention, GELU, 4 x hidden."""
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x: Any) -> Any:
            batch, tokens, _ = x.shape
            parts = self.qkv(self.norm_1(x)).view(batch, tokens, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, hidden))
            return x + self.down(functional.gelu(self.up(self.norm_2(x))))

    return nn.Sequential(*(Layer() for _ in range(layers)))


class TorchLoop:
    """One workload class on PyTorch. Raises RuntimeError where PyTorch finds no GPU."""

    def __init__(self, workload: str, sizes: Sizes, seed: int) -> None:
        torch: Any = importlib.import_module("torch")

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no GPU")
        torch.set_num_threads(1)  # n processes share the node's cores
        torch.manual_seed(seed)
        self._torch = torch
        self._think = Think(sizes.think_ms / 1e3, seed)
        self._notebook = workload == NOTEBOOK
        self._in_flight = workload in (TRAINING, COPY)
        self._events = [torch.cuda.Event(), torch.cuda.Event()]
        self._steps = 0
        self._rest = sizes.decoder_host_ms / 1e3 if workload == DECODER else 0.0
        make = {
            TRAINING: self._training, INFERENCE: self._inference, GRAPH: self._graph, DECODER: self._decoder,
            NOTEBOOK: self._cells, COPY: self._copies,
        }  # fmt: skip
        self._work = make[workload](sizes)
        self.calibration: dict[str, float] = {}

    def _training(self, sizes: Sizes) -> Any:
        torch = self._torch
        model = _encoder(torch, sizes.hidden, sizes.layers, sizes.heads).to("cuda", torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        data = torch.randn(sizes.batch, sizes.tokens, sizes.hidden, device="cuda", dtype=torch.bfloat16)
        target = torch.randn_like(data)

        def work() -> None:
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(data), target).backward()
            optimizer.step()

        return work

    def _bert(self) -> tuple[Any, Any]:
        """A BERT-base-size classifier on the GPU, and the words of one request on the host."""
        torch = self._torch
        encoder = _encoder(torch, _BERT["hidden"], _BERT["layers"], _BERT["heads"])
        embed = torch.nn.Embedding(_BERT["vocabulary"], _BERT["hidden"])
        head = torch.nn.Linear(_BERT["hidden"], 2)
        model = torch.nn.Sequential(embed, encoder, head).to("cuda", torch.bfloat16).eval()
        return model, torch.randint(0, _BERT["vocabulary"], (1, _BERT["tokens"]))

    def _inference(self, sizes: Sizes) -> Any:
        torch = self._torch
        model, words = self._bert()

        def work() -> None:
            with torch.inference_mode():
                model(words.to("cuda"))[:, 0].argmax(-1).cpu()

        return work

    def _graph(self, sizes: Sizes) -> Any:
        torch = self._torch
        model, words = self._bert()
        place, words = words.to("cuda"), words.pin_memory()
        with torch.inference_mode():
            for _ in range(3):
                model(place)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                answer = model(place)[:, 0].argmax(-1)

        def work() -> None:
            place.copy_(words, non_blocking=True)
            graph.replay()
            answer.cpu()

        return work

    def _decoder(self, sizes: Sizes) -> Any:
        torch, functional = self._torch, self._torch.nn.functional
        batch, hidden = sizes.decoder_batch, sizes.decoder_hidden
        heads = hidden // _HEAD
        # keys and values of bf16: 4 bytes for each token, layer and unit of width
        tokens = max(1, int(sizes.cache_gib * 2**30) // (4 * sizes.decoder_layers * batch * hidden))
        on = {"device": "cuda", "dtype": torch.bfloat16}
        shapes = ((hidden, 3 * hidden), (hidden, hidden), (hidden, 4 * hidden), (4 * hidden, hidden))
        layers = [
            (
                [torch.randn(shape, **on) / hidden**0.5 for shape in shapes],
                [torch.randn(batch, heads, tokens, _HEAD, **on) for _ in ("keys", "values")],
            )
            for _ in range(sizes.decoder_layers)
        ]
        start = torch.randn(batch, hidden, **on)

        def work() -> None:
            with torch.inference_mode():
                x = start
                for (qkv, out, up, down), (keys, values) in layers:
                    parts = (functional.layer_norm(x, (hidden,)) @ qkv).view(batch, 3, heads, 1, _HEAD)
                    seen = functional.scaled_dot_product_attention(parts[:, 0], keys, values)
                    x = x + seen.reshape(batch, hidden) @ out
                    x = x + functional.gelu(functional.layer_norm(x, (hidden,)) @ up) @ down
                x.argmax(-1).cpu()

        return work

    def _cells(self, sizes: Sizes) -> Any:
        torch = self._torch
        a = torch.randn(_MATRIX, _MATRIX, device="cuda", dtype=torch.bfloat16)
        b, c = torch.randn_like(a), torch.empty_like(a)
        count = max(1, round(sizes.cell_ms / 1.5))  # one product takes about 1.5 ms on an H200

        def work() -> None:
            for _ in range(count):
                torch.matmul(a, b, out=c)

        return work

    def _copies(self, sizes: Sizes) -> Any:
        torch = self._torch
        source = torch.randint(0, 255, (sizes.copy_mib << 20,), device="cuda", dtype=torch.uint8)
        target = torch.empty_like(source)

        def work() -> None:
            for _ in range(sizes.copies):
                target.copy_(source)

        return work

    def rest(self) -> float:
        return self._think() if self._notebook else self._rest

    def step(self) -> None:
        self._work()
        self._events[self._steps % 2].record()
        self._events[(self._steps + 1) % 2 if self._in_flight else self._steps % 2].synchronize()
        self._steps += 1

    def drain(self) -> None:
        self._torch.cuda.synchronize()

    def memory(self) -> tuple[int, int]:
        free, total = self._torch.cuda.mem_get_info()
        return int(free), int(total)

    def describe(self) -> dict[str, object]:
        torch = self._torch
        properties = torch.cuda.get_device_properties(0)
        return {
            "gpu": properties.name,
            "memory_mib": properties.total_memory >> 20,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda,
        }
