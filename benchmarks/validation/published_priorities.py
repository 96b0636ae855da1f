"""Crux's priorities and Muri's groups beside what was published of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.crux import (
    CruxJob,
    compress,
    contention,
    correction,
    cut_weight,
    priorities,
    times_on_link,
    utilisation,
)
from commsim.placement.strategies.muri import group_time

from .row import Row

Crux = functools.partial(Row, kind="published", operation="shared link", engine="strict priority")
Example = functools.partial(Crux, against="worked example", model="Crux, jobs on a link")
Simulated = functools.partial(Crux, against="published simulation", unit="% of the best", valid=False)
Muri = functools.partial(Row, kind="published", operation="training", engine="closed-form", against="measured")
OWN_CASES = "shown only: the published cases are different, drawn in an unknown way, and measured by GPU utilisation"
STAGES = {  # milliseconds: an iteration; reading and preparing, computing, communicating
    "VGG16 on 8": (214.0, (82.0, 75.0, 66.0)),
    "BERT on 8": (192.0, (0.5, 167.0, 59.0)),
    "GPT-2 on 32": (514.0, (0.7, 414.0, 216.0)),
}


def rows(quick: bool) -> Iterator[Row]:
    """Compare; all is quick but the search for the best order of priorities."""
    yield from example_1()
    yield from compressed(20 if quick else 300)
    yield from ordered(2 if quick else 40)
    yield from stages()


def example_1() -> Iterator[Row]:
    """Compare times on the link, and k; that GPUs are busy 37.5 or 41.7 % of the time is another family's."""
    one, two = CruxJob("J1", 10, 10.0, 2.0, 2.0), CruxJob("J2", 10, 5.0, 1.0, 1.0)
    source = "Crux (SIGCOMM 2024), example 1, over 12 s"
    for order, published in (((one, two), (6.0, 3.0)), ((two, one), (6.0, 4.0))):
        network, _ = times_on_link(order, 12.0)
        for job, theirs, ours in zip(order, published, network, strict=True):
            yield Example(id=f"published/crux/1/{order[0].name}_first/{job.name}", ranks=20, reference=theirs,
                          ours=float(ours), unit="s on the link", source=source)  # fmt: skip
    yield Example(id="published/crux/1/k", model="Crux, correction", ranks=20, reference=1.5,
                  ours=float(correction(two, one, 12.0)), unit="k of the second job", source=source)  # fmt: skip


def compressed(n_cases: int) -> Iterator[Row]:
    """Compare example 3's levels, and drawn cases of five jobs and three levels beside the best of all levels."""
    weights = contention([4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0], np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]]))
    ours = cut_weight(weights, compress(weights, 2)) / cut_weight(weights, [0, 1, 0, 1])
    yield Example(id="published/crux/3", model="Crux, compression", ranks=4, reference=100.0, ours=100 * ours,
                  unit="% of its cut",
                  source="Crux, example 3: {1, 3} before {2, 4}, with intensities of ours")  # fmt: skip
    draw = np.random.default_rng(3)
    reached: list[float] = []
    while len(reached) < n_cases:
        intensity = draw.uniform(1.0, 10.0, 5)
        weights = contention(intensity, intensity, (draw.random((5, 4)) < 0.4).astype(np.float64))
        best = max(cut_weight(weights, levels) for levels in _all_levels(weights, 3))
        if best:
            reached.append(cut_weight(weights, compress(weights, 3, seed=len(reached))) / best)
    yield Simulated(id="published/crux/compression", model="Crux, compression", ranks=5, reference=97.12,
                    ours=100 * float(np.mean(reached)), source="Crux, micro-benchmarks: 1500 drawn cases",
                    note=OWN_CASES)  # fmt: skip


def ordered(n_cases: int) -> Iterator[Row]:
    """Priorities of four drawn jobs on one link beside the best of all orders."""
    draw = np.random.default_rng(4)
    reached: list[float] = []
    for _ in range(n_cases):
        drawn = zip(2 ** draw.integers(0, 5, 4), *draw.uniform(0.5, 3.0, (2, 4)), strict=True)
        jobs = [CruxJob("j", int(n), float(n * c), float(c), float(t)) for n, c, t in drawn]
        order = np.argsort(-priorities(jobs, 60.0), kind="stable").tolist()
        best = max(utilisation(each, 60.0) for each in itertools.permutations(jobs))
        reached.append(utilisation([jobs[i] for i in order], 60.0) / best)
    yield Simulated(id="published/crux/priority", model="Crux, priorities", ranks=4, reference=97.24,
                    ours=100 * float(np.mean(reached)), source="Crux, micro-benchmarks: 1500 drawn cases",
                    note=OWN_CASES)  # fmt: skip


def stages() -> Iterator[Row]:
    """Muri's time of a group of one job, which is the sum of its stages, beside the iteration in its own traces."""
    for name, (iteration, parts) in STAGES.items():
        yield Muri(id=f"published/muri/{name.replace(' ', '_')}", model="Muri, one job after the other", ranks=0,
                   reference=iteration, ours=group_time([parts]), unit="ms",
                   source=f"traces of Muri (SIGCOMM 2022): {name} GPUs",
                   note="Muri's formula runs a job's stages one after another; the real job overlaps them")  # fmt: skip


def _all_levels(weights: NDArray[np.float64], n_levels: int) -> Iterator[Sequence[int]]:
    """All levels that keep the order along edges."""
    edges = np.argwhere(weights > 0).tolist()
    for levels in itertools.product(range(n_levels), repeat=len(weights)):
        if all(levels[i] <= levels[j] for i, j in edges):
            yield levels
