"""Real sparse gradients, of a recommender and a language model: density, densification, overlap and skewness.

``python -m benchmarks.real_gradients.sparse_gradients`` trains both for a few steps and prints what decides which
sparse collective pays; ``--save FOLDER`` keeps the gradients as ``.npy`` files, which ``commsim run`` takes as
``gradients=FILE``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sparse_measures import densifications, expected_union_density, overlap, skewness
from commsim.report.terminal import print_table
from commsim.sparse.occupancy import occupancy_of
from commsim.sparse.union_density import densification, union_density

BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
COLUMNS = ["block", "density", "union", "if random", "gamma", "overlap", "skewness", "hashed"]


def main(argv: Sequence[str] | None = None) -> int:
    """Train both models and print their tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.real_gradients.sparse_gradients", description=__doc__)
    parser.add_argument("--ranks", type=int, default=8, metavar="N", help="data-parallel ranks (8)")
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="optimiser steps (5)")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the gradients there")
    args = parser.parse_args(argv)
    if args.ranks < 2 or args.steps < 1:
        parser.error(f"needs at least 2 ranks and 1 step, got {args.ranks} and {args.steps}")
    from .sparse_models import LanguageModel, Recommender, train

    for kind in (Recommender, LanguageModel):
        began = time.perf_counter()
        losses, gradients = train(kind, args.ranks, args.steps)
        name = {"Recommender": "recommender", "LanguageModel": "language_model"}[kind.__name__]
        print(
            f"# {name}: {gradients.shape[1]} parameters, {args.steps} steps of {args.ranks} ranks, loss "
            f"{losses[0]:.3f} -> {losses[-1]:.3f}, {time.perf_counter() - began:.1f} s"
        )
        print_table(COLUMNS, rows_by_block(gradients), f"{name}: non-zero blocks of {args.ranks} ranks")
        print_table(["ranks", "gamma", "union"], rows_by_ranks(gradients), f"{name}: densification of elements")
        if args.save:
            args.save.mkdir(parents=True, exist_ok=True)
            np.save(args.save / f"{name}.npy", gradients)
    return 0


def rows_by_block(gradients: NDArray[Any]) -> list[list[str]]:
    """Return one row of measures for each size of block, as text."""
    rows = []
    for block in BLOCKS:
        occupancy = occupancy_of(gradients, block)
        density = float(occupancy.density.mean())
        numbers = [
            density,
            union_density(occupancy),
            expected_union_density(density, occupancy.n_ranks),
            densification(occupancy),
            overlap(occupancy),
            skewness(occupancy),
            skewness(occupancy, hashed=True),
        ]
        rows.append([str(block), *(f"{number:.4f}" for number in numbers)])
    return rows


def rows_by_ranks(gradients: NDArray[Any]) -> list[list[str]]:
    """Return gamma and union density of the first 1, 2, 4, ... ranks and of all, as text."""
    occupancy = occupancy_of(gradients)
    n_ranks, gamma = occupancy.n_ranks, densifications(occupancy)
    counts = sorted({2**i for i in range(n_ranks.bit_length())} | {n_ranks})
    return [[str(n), f"{gamma[n - 1]:.3f}", f"{union_density(occupancy.first(n)):.4f}"] for n in counts]


if __name__ == "__main__":
    sys.exit(main())
