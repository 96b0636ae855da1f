"""Measure one GPU and write a JSON file: ``python -m benchmarks.one_gpu FILE.json``.

All times are seconds. What takes less than about 20 us on the GPU is timed within a CUDA graph, since PyTorch needs
longer than that to launch it. The values of matrices are random: zeros draw less power, and are faster.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.one_gpu.timing import GPU, graphed, timed

Row = list[Any]
LARGE = 2048  # rows of a matrix from which a product takes longer than its launch
ROWS = (1, 16, 128, 512, LARGE, 8192, 16384)
MOST_ELEMENTS = 3e9
# inner and outer dimension of layers of Llama 3 8B, 70B and 405B (tensor parallel 8), DeepSeek-V3's experts
LAYERS = (
    (4096, 4096), (4096, 1024), (4096, 14336), (14336, 4096), (8192, 8192), (8192, 28672), (16384, 16384),
    (16384, 6656), (2048, 16384), (7168, 2048), (4096, 128256),
)  # fmt: skip
FP8_PRODUCTS = (
    (128, 4096, 4096), (2048, 4096, 4096), (8192, 4096, 14336), (8192, 14336, 4096), (8192, 8192, 8192),
    (16384, 8192, 28672), (8192, 16384, 16384),
)  # fmt: skip
# batch, heads, sequence, dimension of a head, causal
ATTENTIONS = (
    (1, 32, 2048, 128, True), (2, 32, 8192, 128, True), (1, 32, 4096, 128, True), (1, 8, 32768, 128, True),
    (1, 32, 8192, 128, False), (4, 16, 4096, 64, True), (1, 128, 4096, 128, True),
)  # fmt: skip
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
SIZES = (*(1 << i for i in range(12, 31, 2)), 1 << 31)  # bytes
HIDDEN = 4096


def matrix_products() -> dict[str, Any]:
    """Time products of m x k by k x n matrices."""
    rows: list[Row] = []
    for k, n in LAYERS:
        for m in ROWS:
            if m * n > MOST_ELEMENTS:
                continue
            a, b = (torch.randn(shape, device=GPU, dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
            c = torch.empty(m, n, device=GPU, dtype=torch.bfloat16)

            def product(a: Any = a, b: Any = b, c: Any = c) -> object:
                return torch.mm(a, b, out=c)

            rows.append(["bf16", m, k, n, timed(product) if m >= LARGE else graphed(product)])
    for kind in ("tf32", "fp32"):
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        for m, k, n in ((LARGE, 4096, 4096), (8192, 8192, 8192)):
            left, right = torch.randn(m, k, device=GPU), torch.randn(k, n, device=GPU)
            rows.append([kind, m, k, n, timed(lambda a=left, b=right: a @ b)])  # type: ignore[misc]
    one = torch.tensor(1.0, device=GPU)
    for m, k, n in FP8_PRODUCTS:
        x = torch.randn(m, k, device=GPU).to(torch.float8_e4m3fn)
        y = torch.randn(n, k, device=GPU).to(torch.float8_e4m3fn).t()

        def scaled(x: Any = x, y: Any = y) -> object:
            return torch._scaled_mm(x, y, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)

        rows.append(["fp8", m, k, n, timed(scaled) if m >= LARGE else graphed(scaled)])
    return {"columns": ["type", "m", "k", "n", "s"], "rows": rows}


def attention() -> dict[str, Any]:
    """Time attention in bfloat16, forward and backward."""
    rows: list[Row] = []
    for batch, heads, sequence, dim, causal in ATTENTIONS:
        for name, backend in BACKENDS.items():
            shape = (batch, heads, sequence, dim)
            q, k, v = (torch.randn(shape, device=GPU, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
            gradient = torch.randn(shape, device=GPU, dtype=torch.bfloat16)

            def forward(q: Any = q, k: Any = k, v: Any = v, causal: bool = causal) -> Any:
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

            def both(q: Any = q, k: Any = k, v: Any = v, g: Any = gradient, f: Any = forward) -> object:
                return torch.autograd.grad(f(), (q, k, v), g)

            with sdpa_kernel(backend):
                first = timed(forward)
                rows.append([name, *shape, causal, first, timed(both) - first])
    columns = ["backend", "batch", "heads", "sequence", "dim", "causal", "forward_s", "backward_s"]
    return {"columns": columns, "rows": rows}


def memory() -> dict[str, Any]:
    """Time what moves much and computes little, by size of a bfloat16 tensor; `moved` is what is read and written."""
    rows: list[Row] = []
    for size in SIZES:
        x, y, z = (torch.randn(size // 2, device=GPU, dtype=torch.bfloat16) for _ in range(3))
        rows.append(["copy", size, 2 * size, graphed(lambda x=x, y=y: y.copy_(x), 10)])  # type: ignore[misc]
        rows.append(["add", size, 3 * size, graphed(lambda x=x, y=y, z=z: torch.add(x, y, out=z), 10)])  # type: ignore[misc]
        if size >= 1 << 16:
            wide, weight = x.view(-1, HIDDEN), torch.ones(HIDDEN, device=GPU, dtype=torch.bfloat16)
            norm = graphed(lambda a=wide, w=weight: F.rms_norm(a, (HIDDEN,), w), 10)  # type: ignore[misc]
            rows.append(["rms_norm", size, 2 * size, norm])
            rows.append(["silu", size, 2 * size, graphed(lambda x=x: F.silu(x), 10)])  # type: ignore[misc]
    n = 1 << 27
    tables = [[torch.randn(n, device=GPU)] for _ in range(2)] + [[torch.zeros(n, device=GPU)] for _ in range(2)]
    steps = [torch.tensor(1.0, device=GPU)]
    options = {"lr": 1e-4, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "eps": 1e-8}

    def adam() -> object:
        return torch._fused_adamw_(*tables, [], steps, amsgrad=False, maximize=False, **options)  # type: ignore[call-overload,unused-ignore]

    rows.append(["fused_adamw_fp32", 4 * n, 7 * 4 * n, timed(adam)])
    return {"columns": ["operation", "bytes", "moved", "s"], "rows": rows}


def launches() -> dict[str, Any]:
    """Time how long the host needs to launch a kernel, and a kernel that does nothing much."""
    x, y = torch.zeros(1, device=GPU), torch.zeros(1024, 1024, device=GPU, dtype=torch.bfloat16)
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: x.add_(1), "linear": lambda: F.linear(y, y), "rms_norm": lambda: F.rms_norm(y, (1024,)),
    }  # fmt: skip
    found: dict[str, Any] = {}
    for name, call in calls.items():
        for _ in range(100):
            call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(2000):
            call()
        found[f"{name}_host_s"] = (time.perf_counter() - began) / 2000
        torch.cuda.synchronize()
    found["add_in_graph_s"] = graphed(calls["add"], 100)
    waits = []
    for _ in range(200):
        began = time.perf_counter()
        calls["add"]()
        torch.cuda.synchronize()
        waits.append(time.perf_counter() - began)
    found["launch_and_wait_s"] = statistics.median(waits)
    return found


def nccl_of_one() -> dict[str, Any]:
    """Time NCCL's calls with one rank: its launch, and a copy for an all-gather."""
    from torch import distributed

    store = distributed.HashStore()
    distributed.init_process_group("nccl", store=store, rank=0, world_size=1, device_id=torch.device("cuda:0"))
    rows: list[Row] = []
    for size in (1 << i for i in range(3, 31, 3)):
        x = torch.zeros(max(1, size // 4), device=GPU)
        y = torch.zeros_like(x)
        rows.append(["all_reduce", size, timed(lambda x=x: distributed.all_reduce(x), 0.02)])  # type: ignore[misc]
        gather = timed(lambda x=x, y=y: distributed.all_gather_into_tensor(y, x), 0.02)  # type: ignore[misc]
        rows.append(["all_gather", size, gather])
    distributed.destroy_process_group()
    return {"columns": ["operation", "bytes", "s"], "rows": rows}


def main(path: str) -> None:
    """Measure all and write the file after each part."""
    from benchmarks.one_gpu.few_multiprocessors import few_multiprocessors
    from benchmarks.one_gpu.training_steps import training_steps

    torch.manual_seed(0)
    found: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }
    for part in (launches, memory, matrix_products, attention, few_multiprocessors, nccl_of_one, training_steps):
        began = time.perf_counter()
        found[part.__name__] = part()
        torch.cuda.empty_cache()
        print(f"{part.__name__}: {time.perf_counter() - began:.1f} s", flush=True)
        Path(path).write_text(json.dumps(found, indent=1) + "\n")
    query = "--query-gpu=clocks.sm,clocks.mem,power.draw,power.limit"
    print(subprocess.run(["nvidia-smi", query, "--format=csv"], capture_output=True, text=True).stdout)
