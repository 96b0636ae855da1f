"""Write docs/data/gpus.md of the files of ``benchmarks.one_gpu``: ``python -m benchmarks.one_gpu.page FILE...``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "data" / "gpus.md"
TERA, GIGA, MICRO = 1e12, 1e9, 1e-6
HEAD = """# What one GPU does

Measured with `python -m benchmarks.one_gpu FILE.json` on machines with one GPU each, and written by `python -m
benchmarks.one_gpu.page FILE...`. Predictions of compute (`--compute roofline:GPU`, `workload step`) need these rates,
which involve no network. Of NCCL, this page has only the launch; [nccl_real.md](nccl_real.md) has several ranks on one
GPU.
"""


def _rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(part["columns"], row, strict=True)) for row in part["rows"]]


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _side_by_side(
    found: list[dict[str, Any]], part: str, keys: tuple[str, ...], value: Any, wanted: Any = None
) -> list[list[str]]:
    """Make a row for each case, with a cell for each GPU."""
    cells: dict[tuple[Any, ...], list[str]] = {}
    for gpu in found:
        for row in _rows(gpu[part]):
            if wanted is None or wanted(row):
                cells.setdefault(tuple(row[key] for key in keys), []).append(value(row))
    return [[" x ".join(map(str, key)), *values] for key, values in cells.items()]


def _flops(row: dict[str, Any]) -> str:
    rate = 2 * row["m"] * row["k"] * row["n"] / row["s"]
    return f"{rate / TERA:.0f}"


def _attention(row: dict[str, Any]) -> str:
    """Count 4 b h s^2 d operations forward, half of them where causal, and 2.5 times that backward."""
    work = 4 * row["batch"] * row["heads"] * row["sequence"] ** 2 * row["dim"] * (0.5 if row["causal"] else 1)
    return f"{work / row['forward_s'] / TERA:.0f}, {2.5 * work / row['backward_s'] / TERA:.0f}"


def page(found: list[dict[str, Any]]) -> str:
    """Make the page of the files' contents."""
    names = [gpu["gpu"] for gpu in found]
    lines = [HEAD, *_table(["", *names], [
        [key, *(str(gpu[key]) for gpu in found)] for key in ("multiprocessors", "torch", "cuda", "nccl")
    ])]  # fmt: skip
    lines += ["## Launches (us)", "", *_table(["", *names], [
        [key.removesuffix("_s").replace("_", " "), *(f"{gpu['launches'][key] / MICRO:.2f}" for gpu in found)]
        for key in found[0]["launches"]
    ])]  # fmt: skip
    lines += ["NCCL's all-reduce and all-gather of one rank (nothing is sent), one call after the other:", ""]
    nccl = _side_by_side(found, "nccl_of_one", ("operation", "bytes"), lambda row: f"{row['s'] / MICRO:.1f}")
    lines += _table(["operation x bytes", *names], nccl)
    lines += ["## Matrix products (TFLOP/s)", "", "Rows m, inner dimension k, columns n.", ""]
    lines += _table(
        ["type x m x k x n", *names], _side_by_side(found, "matrix_products", ("type", "m", "k", "n"), _flops)
    )
    lines += ["## Attention (TFLOP/s forward, backward)", ""]
    keys = ("backend", "batch", "heads", "sequence", "dim", "causal")
    lines += _table([" x ".join(keys), *names], _side_by_side(found, "attention", keys, _attention))
    lines += ["## Memory (GB/s read and written)", ""]

    def rate(row: dict[str, Any]) -> str:
        return f"{row.get('moved', row.get('bytes')) / row['s'] / GIGA:.0f}"

    lines += _table(
        ["operation x bytes", *names],
        _side_by_side(found, "memory", ("operation", "bytes"), rate, lambda row: row["bytes"] >= 1 << 20),
    )
    lines += ["## Tokens copied by few multiprocessors (GB/s read and written)", ""]
    lines += _table(
        ["kernel x multiprocessors x programs on each", *names],
        _side_by_side(
            found, "few_multiprocessors", ("kernel", "multiprocessors", "programs_per_multiprocessor"), rate,
            lambda row: row["warps"] == 32,
        ),
    )  # fmt: skip
    lines += ["## Training steps (ms)", ""]
    steps: dict[str, list[str]] = {}
    for gpu in found:
        for step in gpu["training_steps"]:
            name = f"{step['name']}, batch {step['batch']} x {step['sequence']}{', compiled' * step['compiled']}"
            steps.setdefault(name, []).append(f"{step['step_s'] * 1e3:.1f}")
    lines += _table(["model", *names], [[name, *values] for name, values in steps.items()])
    return "\n".join(lines).rstrip() + "\n"


def main(paths: list[str]) -> int:
    """Read the files and write the page."""
    if not paths:
        print("usage: python -m benchmarks.one_gpu.page FILE...", file=sys.stderr)
        return 2
    PAGE.write_text(page([json.loads(Path(path).read_text()) for path in paths]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
