"""Copies, casts and sums of tokens by few of a GPU's multiprocessors, as kernels of communication libraries do them.

A token is 7,168 numbers in bfloat16 (DeepSeek-V3). Triton compiles the kernels; each program takes every n-th token.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton  # type: ignore[import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,unused-ignore]

from benchmarks.one_gpu.timing import GPU, timed

WIDTH, PADDED = 7168, 8192
COUNTS = (1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 96, 132)
MOST_TOKENS = 16384
EXPERTS = 8  # copies of a token that a combine adds


@triton.jit
def _copy(source, target, n, programs, width: tl.constexpr, padded: tl.constexpr) -> None:
    at = tl.arange(0, padded)
    for token in range(tl.program_id(0), n, programs):
        value = tl.load(source + token * width + at, mask=at < width)
        tl.store(target + token * width + at, value, mask=at < width)


@triton.jit
def _cast(source, target, scales, n, programs, width: tl.constexpr, padded: tl.constexpr) -> None:
    """Write tokens in FP8 (e4m3, largest value 448) with one scale for 128 numbers."""
    at, group = tl.arange(0, padded), tl.arange(0, padded // 128)
    for token in range(tl.program_id(0), n, programs):
        value = tl.load(source + token * width + at, mask=at < width, other=0.0).to(tl.float32)
        groups = tl.reshape(value, (padded // 128, 128))
        scale = tl.max(tl.abs(groups), 1) / 448.0 + 1e-12
        small = tl.reshape(groups / scale[:, None], (padded,)).to(tl.float8e4nv)
        tl.store(target + token * width + at, small, mask=at < width)
        tl.store(scales + token * (width // 128) + group, scale, mask=group < width // 128)


@triton.jit
def _combine(source, target, n, programs, copies: tl.constexpr, width: tl.constexpr, padded: tl.constexpr) -> None:
    at = tl.arange(0, padded)
    for token in range(tl.program_id(0), n, programs):
        total = tl.zeros((padded,), tl.float32)
        for i in tl.static_range(copies):
            total += tl.load(source + (token * copies + i) * width + at, mask=at < width, other=0.0).to(tl.float32)
        tl.store(target + token * width + at, total.to(tl.bfloat16), mask=at < width)


def few_multiprocessors() -> dict[str, Any]:
    """Time a copy, a cast to FP8 and a sum of eight by some multiprocessors; bytes are those read and written."""
    rows: list[list[Any]] = []
    source = torch.randn(MOST_TOKENS, WIDTH, device=GPU, dtype=torch.bfloat16)
    target = torch.empty_like(source)
    small = torch.empty(MOST_TOKENS, WIDTH, device=GPU, dtype=torch.float8_e4m3fn)
    scales = torch.empty(MOST_TOKENS, WIDTH // 128, device=GPU)
    shape = {"width": WIDTH, "padded": PADDED}
    for count in COUNTS:
        n = min(MOST_TOKENS, 512 * count)
        for warps in (8, 32):
            for each in (1, 2):
                programs = count * each

                def copy(n: int = n, programs: int = programs, warps: int = warps) -> object:
                    return _copy[(programs,)](source, target, n, programs, **shape, num_warps=warps)

                rows.append(["copy", count, warps, each, n, 4 * n * WIDTH, timed(copy, 0.01)])

        def cast(n: int = n, count: int = count) -> object:
            return _cast[(count,)](source, small, scales, n, count, **shape, num_warps=32)

        rows.append(["cast to FP8", count, 32, 1, n, 3 * n * WIDTH, timed(cast, 0.01)])
        sums = min(MOST_TOKENS // EXPERTS, 64 * count)

        def combine(n: int = sums, count: int = count) -> object:
            return _combine[(count,)](source, target, n, count, copies=EXPERTS, **shape, num_warps=32)

        rows.append([f"sum of {EXPERTS}", count, 32, 1, sums, 2 * (EXPERTS + 1) * sums * WIDTH, timed(combine, 0.01)])
    columns = ["kernel", "multiprocessors", "warps", "programs_per_multiprocessor", "tokens", "bytes", "s"]
    return {"columns": columns, "rows": rows}
