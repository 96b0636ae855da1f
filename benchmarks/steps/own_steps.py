"""Rows of ``steps.csv``: steps that somebody measured, in the words of ``commsim workload step``."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.steps.setup import Setup
from commsim.training.gpus import gpu as known_gpu
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.transformer import transformer


def of_own_row(one: Setup, row: dict[str, str]) -> Setup:
    """Read a row in our words: columns are the flags of ``workload step``, and ``tokens_per_s_per_gpu``."""
    name, gpu = row["model"], row["gpu"]
    transformer(name)
    known_gpu(gpu)
    size = {key: int(row.get(key) or 1) for key in ("tp", "pp", "cp", "ep", "vp", "replicas", "micro_batch")}
    ranks, batch, sequence = (int(row[key]) for key in ("ranks", "global_batch", "sequence"))
    data, left = divmod(ranks, size["tp"] * size["pp"] * size["cp"])
    if left:
        return replace(one, model=name, gpu=gpu, left_out="tp x pp x cp does not divide the ranks")
    measured = batch * sequence / ranks / float(row["tokens_per_s_per_gpu"])
    return replace(
        one, model=name, gpu=gpu, precision=row.get("precision") or "bf16", micro_batch=size["micro_batch"],
        global_batch=batch, sequence=sequence, sharding=row.get("sharding") or "optimizer",
        layout=ParallelSizes(size["tp"], size["pp"], size["cp"], data, size["ep"], size["vp"], size["replicas"]),
        recompute=float(row.get("recompute") or 0), measured=measured, attention=row.get("attention") or "",
        graphs=bool(row.get("graphs")), gradient_bytes=int(row.get("gradient_bytes") or 0),
        hides_experts=bool(row.get("hides_experts")),
    )  # fmt: skip
