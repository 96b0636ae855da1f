"""Train a Llama 3 with FSDP2, or data parallel: a plain program of PyTorch that knows nothing of commsim.

torchrun --nproc-per-node 8 examples/train_llama.py
commsim emulate -n 8 --topology dgx-h100 --compute roofline:h100 -- python examples/train_llama.py --model 8b
"""

import argparse
import os
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import distributed, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

MODELS = {  # hidden, layers, heads, heads of keys and values, inner size, vocabulary
    "tiny": (64, 2, 4, 2, 128, 256),
    "8b": (4096, 32, 32, 8, 14336, 128256),
    "70b": (8192, 80, 64, 8, 28672, 128256),
}


class Block(nn.Module):
    """Attention and feed-forward network."""

    def __init__(self, hidden: int, heads: int, kv_heads: int, inner: int) -> None:
        super().__init__()
        self.dim = hidden // heads

        def linear(n_in: int, n_out: int) -> nn.Linear:
            return nn.Linear(n_in, n_out, bias=False)

        self.norm, self.inner_norm = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.query, self.out = linear(hidden, hidden), linear(hidden, hidden)
        self.key, self.value = (linear(hidden, kv_heads * self.dim) for _ in range(2))
        self.gate, self.up, self.down = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Return the activations after this block."""
        batch, length, hidden = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(batch, length, -1, self.dim) for f in (self.query, self.key, self.value))
        q, k = rotated(q, turns), rotated(k, turns)
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=True
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, hidden))
        y = self.inner_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotated(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Rotate pairs of features by angles that grow with the position."""
    a, b = x.float().chunk(2, dim=-1)
    cos, sin = turns
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


class Llama(nn.Module):
    """Embedding, blocks, and a projection to the vocabulary."""

    def __init__(self, shape: tuple[int, ...], length: int, *, checkpointed: bool) -> None:
        super().__init__()
        hidden, layers, heads, kv_heads, inner, vocabulary = shape
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, kv_heads, inner) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)
        half = hidden // heads // 2
        angles = torch.outer(torch.arange(length), 500000 ** (-torch.arange(half) / half))
        self.register_buffer("turns", torch.stack((angles.cos(), angles.sin())).unsqueeze(2))
        self.checkpointed = checkpointed

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next tokens."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, self.turns, use_reentrant=False) if self.checkpointed else block(x, self.turns)
        return self.output(self.norm(x))


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--parallel", choices=("fsdp", "ddp"), default="fsdp")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--checkpoint", action="store_true", help="compute activations again in the backward pass")
    args = parser.parse_args()

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(0)

    shape = MODELS[args.model]
    model: nn.Module = Llama(shape, args.length, checkpointed=args.checkpoint).to(device)
    if args.parallel == "fsdp":
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if on_gpu else MixedPrecisionPolicy()
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    else:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    generator = torch.Generator().manual_seed(rank)
    for step in range(args.steps):
        began = time.perf_counter()
        tokens = torch.randint(shape[-1], (args.batch, args.length + 1), generator=generator).to(device)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value, took = loss.item(), time.perf_counter() - began
        if rank == 0:
            rate = args.batch * args.length / took
            print(f"step {step}: loss {value!r}, {took * 1e3:.3f} ms, {rate:.0f} tokens/s/GPU of {world}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
