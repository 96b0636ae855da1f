"""Training steps of models with the layers of Llama 3, cut to what one GPU holds, with the time of each operator."""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.one_gpu.timing import GPU

STEPS = 8
MOST_OPERATORS = 40  # that are written down


class Shape(NamedTuple):
    """Size of a model and of its batch."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    batch: int
    sequence: int


SHAPES = (
    Shape("Llama 3 8B, 4 of 32 layers", 4096, 4, 32, 8, 14336, 128256, 1, 8192),
    Shape("Llama 3 8B, 8 of 32 layers", 4096, 8, 32, 8, 14336, 128256, 1, 8192),
    Shape("Llama 3 70B, 2 of 80 layers", 8192, 2, 64, 8, 28672, 32000, 1, 4096),
)


class Block(nn.Module):  # type: ignore[misc,unused-ignore]
    """Attention and feed-forward network with their norms; positions are not rotated."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.dim = shape.hidden // shape.heads

        def linear(n_in: int, n_out: int) -> nn.Linear:
            return nn.Linear(n_in, n_out, bias=False)

        self.norm, self.ffn_norm = nn.RMSNorm(shape.hidden), nn.RMSNorm(shape.hidden)
        self.q, self.o = linear(shape.hidden, shape.hidden), linear(shape.hidden, shape.hidden)
        self.k, self.v = (linear(shape.hidden, shape.kv_heads * self.dim) for _ in range(2))
        self.gate, self.up = (linear(shape.hidden, shape.ffn) for _ in range(2))
        self.down = linear(shape.ffn, shape.hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102
        batch, sequence, hidden = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(batch, sequence, -1, self.dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, sequence, hidden))
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):  # type: ignore[misc,unused-ignore]
    """Embedding, blocks, and a projection to the vocabulary."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.layers)))
        self.norm = nn.RMSNorm(shape.hidden)
        self.output = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:  # noqa: D102
        return self.output(self.norm(self.blocks(self.embedding(tokens))))


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> None:
    loss = F.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def training_steps() -> list[dict[str, Any]]:
    """Time steps in bfloat16 with AdamW, without and with the compiler (the first shape)."""
    rows = []
    for shape in SHAPES:
        for compiled in (False, True) if shape is SHAPES[0] else (False,):
            with torch.device(GPU):
                model: nn.Module = Model(shape).to(torch.bfloat16)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
            tokens = torch.randint(shape.vocabulary, (shape.batch, shape.sequence), device=GPU)
            called: Any = torch.compile(model) if compiled else model
            times = []
            for _ in range(3 + STEPS):
                began = time.perf_counter()
                _step(called, optimizer, tokens)
                torch.cuda.synchronize()
                times.append(time.perf_counter() - began)
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
                _step(called, optimizer, tokens)
                torch.cuda.synchronize()
            operators = [
                [event.key[:80], event.self_device_time_total / 1e6, event.count]
                for event in profiled.key_averages()
                if event.self_device_time_total > 0
            ]
            rows.append({
                **shape._asdict(), "compiled": compiled, "step_s": statistics.median(times[3:]),
                "operators": sorted(operators, key=lambda row: -row[1])[:MOST_OPERATORS],
            })  # fmt: skip
            del model, called, optimizer
            torch.cuda.empty_cache()
    return rows
