"""What compressors do to training: the loss that each reaches, with error feedback and without, and its bytes.

``python -m benchmarks.real_gradients.compressor_training`` trains a classifier on all ranks' data, with the same steps
each time, and prints one row for each compressor. No torch: a softmax regression in NumPy, whose losses can be compared
exactly.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.report.terminal import print_table
from commsim.sparse.compressors import compressor_of
from commsim.sparse.compressors.message import CompressedRank, Forgetful, compressed_sum

CLASSES = 10
COMPRESSORS = (
    "top_k:density=0.01", "random_k:density=0.05", "random_k:density=0.05,unbiased=true", "threshold:above=0.01",
    "dgc:density=0.01,momentum=0", "dgc:density=0.01", f"one_bit:columns={CLASSES}", "sign", "qsgd:bits=2,bucket=64",
    "qsgd:bits=4,bucket=256", f"power_sgd:rank=1,columns={CLASSES}", f"power_sgd:rank=2,columns={CLASSES}",
)  # fmt: skip
COLUMNS = ["compressor", "feedback", "loss", "factor", "sent(B/step)", "compression"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Labelled points of all ranks.

    Parameters
    ----------
    points : float32[n_ranks, n_points, n_features]
        Features of unequal size, as those of real data.
    labels : int64[n_ranks, n_points]
        Classes, drawn by a teacher of the same kind.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int64]

    @property
    def n_parameters(self) -> int:
        """Weights of the classifier."""
        return int(self.points.shape[2]) * CLASSES

    def loss_and_gradient(self, rank: int, weights: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """Return the mean cross-entropy of a rank's points, and its gradient, [n_parameters]."""
        points, labels = self.points[rank], self.labels[rank]
        with np.errstate(over="ignore", invalid="ignore"):  # NaN is refused where it would be compressed
            score = points @ weights.reshape(-1, CLASSES)
            score -= score.max(axis=1, keepdims=True)
            chance = np.exp(score)
        chance /= chance.sum(axis=1, keepdims=True)
        every = np.arange(len(labels))
        loss = -float(np.log(np.maximum(chance[every, labels], 1e-30)).mean())
        chance[every, labels] -= 1
        return loss, (points.T @ chance / np.float32(len(labels))).ravel()


def draw_problem(n_ranks: int, n_points: int = 500, n_features: int = 200, seed: int = 0) -> Problem:
    """Draw points whose features fall off in size, and labels by a random teacher."""
    rng = np.random.default_rng(seed)
    size = np.arange(1, n_features + 1) ** -0.5
    points = (rng.standard_normal((n_ranks, n_points, n_features)) * size).astype(np.float32)
    score = points @ (3 * rng.standard_normal((n_features, CLASSES))) + rng.gumbel(size=(n_ranks, n_points, CLASSES))
    return Problem(points, score.argmax(axis=2))


def train(
    problem: Problem, compressor: str | None, n_steps: int, *, feedback: bool = True, rate: float = 1.0
) -> tuple[float, float]:
    """Train from zero by gradient descent on the mean over the ranks, whose gradients are compressed.

    Parameters
    ----------
    problem : Problem
        What to learn.
    compressor : str, optional
        As ``--compressor`` takes it; without one gradients are summed as they are.
    n_steps : int
        Steps.
    feedback : bool
        Whether ranks remember what they have not sent.
    rate : float
        Step size. A compressor with momentum of its own gets as much less as its momentum adds up to.

    Returns
    -------
    float, float
        Mean loss over the ranks in the end, infinite when it has left all numbers; bytes that a rank sends in a step.
    """
    n_ranks = len(problem.points)
    weights, sent = np.zeros(problem.n_parameters, np.float32), 0
    chosen = None if compressor is None else compressor_of(compressor)
    workers = [CompressedRank(chosen, rank, feedback=feedback) for rank in range(n_ranks)] if chosen is not None else []
    rate *= 1 - getattr(chosen, "momentum", 0.0) if feedback else 1
    for _ in range(n_steps):
        gradients = [problem.loss_and_gradient(rank, weights)[1] for rank in range(n_ranks)]
        try:
            total, n_bytes = (
                compressed_sum(workers, gradients) if workers else (np.sum(gradients, axis=0), [weights.nbytes])
            )
        except InputError:  # no finite number any more
            return float("inf"), sent / n_steps
        sent += n_bytes[0]
        weights = weights - np.float32(rate / n_ranks) * total
    losses = [problem.loss_and_gradient(rank, weights)[0] for rank in range(n_ranks)]
    return (float(np.mean(losses)) if np.isfinite(losses).all() else float("inf")), sent / n_steps


def main(argv: Sequence[str] | None = None) -> int:
    """Train with every compressor and print the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.real_gradients.compressor_training", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--ranks", type=int, default=8, metavar="N", help="ranks (8)")
    parser.add_argument("--steps", type=int, default=600, metavar="N", help="steps (600)")
    parser.add_argument("--compressor", action="append", metavar="NAME[:key=value,...]", help="instead of all; repeat")
    args = parser.parse_args(argv)
    if args.ranks < 1 or args.steps < 1:
        parser.error(f"needs at least 1 rank and 1 step, got {args.ranks} and {args.steps}")
    problem = draw_problem(args.ranks)
    plain, plain_bytes = train(problem, None, args.steps)
    rows = [["none", "-", f"{plain:.4f}", "1.000", f"{plain_bytes:.0f}", "1.0"]]
    for spec in args.compressor or COMPRESSORS:
        remembers = not isinstance(compressor_of(spec).memory(), Forgetful)
        for feedback in (True, False) if remembers else (False,):
            loss, n_bytes = train(problem, spec, args.steps, feedback=feedback)
            numbers = [f"{loss:.4f}", f"{loss / plain:.3f}", f"{n_bytes:.0f}", f"{plain_bytes / max(1.0, n_bytes):.1f}"]
            rows.append([spec, "yes" if feedback else "no", *numbers])
    title = f"softmax regression, {problem.n_parameters} parameters, {args.ranks} ranks, {args.steps} steps"
    print_table(COLUMNS, rows, f"{title}; loss at the start {np.log(CLASSES):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
