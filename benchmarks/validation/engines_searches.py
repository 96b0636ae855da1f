"""Searches, dynamic programs and formulas of counting, against brute force."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from commsim.papers.systems.elastic import even_stages, recovery_copies
from commsim.papers.systems.gemini import placement_sets, recovery_probability
from commsim.papers.systems.pipelines import LayerProfile, Stage, bottleneck, partition, stage_seconds, stage_time
from commsim.placement.starts.link_scores import score_link
from commsim.placement.strategies.muri import group_time
from commsim.training.sharing.periodic import JobPhase, PeriodicJob

from .row import Row

Tried = functools.partial(Row, kind="engines", against="brute force", operation="training", unit="s")


def rows(quick: bool) -> Iterator[Row]:
    """Draw small cases; the quick subset has one of each."""
    n = 1 if quick else 8
    yield from cassini(n)
    yield from pipelines(n)
    yield from recovery(((6, 2),) if quick else ((4, 2), (6, 2), (6, 3), (8, 2), (9, 3), (8, 4)))


def cassini(n_cases: int) -> Iterator[Row]:
    """Best score of three jobs in whole milliseconds: all rotations, as Eqs. 1 to 4 say; and Muri's best order.

    No job asks for more than the link has: there the paper adds up what is asked for, and ours what is achieved.
    """
    draw = np.random.default_rng(21)
    for case in range(n_cases):
        ups = [(int(draw.choice([4, 6, 8, 12])), int(draw.integers(1, 4)), float(draw.choice([10, 25, 40, 50])))
               for _ in range(3)]  # fmt: skip
        jobs = [PeriodicJob("j", 1, p / 1e3, (JobPhase(0.0, up / 1e3, rate),)) for p, up, rate in ups]
        n = int(np.lcm.reduce([p for p, *_ in ups]))
        tables = [[np.roll(np.tile(rate * (np.arange(p) < up), n // p), k) for k in range(p)] for p, up, rate in ups]
        least = min(float(np.maximum(np.sum(turned, axis=0) - 50.0, 0.0).mean())
                    for turned in itertools.product(tables[0][:1], *tables[1:]))  # fmt: skip
        yield Tried(id=f"engines/tried/cassini/{case}", model="CASSINI, best score", engine="circles", ranks=3,
                    operation="shared link", reference=1 - least / 50.0, unit="score",
                    ours=score_link(jobs, 50.0, step=1e-3).score, source="all turns by whole milliseconds")  # fmt: skip
        stages = [tuple(map(float, draw.uniform(0.1, 1.0, 3))) for _ in range(3)]
        orders = (sum(max(stages[job][(i - j) % 3] for j, job in enumerate(order)) for i in range(3))
                  for order in itertools.permutations(range(3)))  # fmt: skip
        yield Tried(id=f"engines/tried/muri/{case}", model="Muri, time of a group", engine="closed-form", ranks=3,
                    reference=min(orders), ours=group_time(stages), source="all orders of three jobs")  # fmt: skip


def pipelines(n_cases: int) -> Iterator[Row]:
    """PipeDream's and HetPipe's stages."""
    draw = np.random.default_rng(22)
    for case in range(n_cases):
        profile = LayerProfile(*draw.uniform(1.0, 20.0, (3, 5)))
        plans = (bottleneck(profile, plan, 3.0) for plan in _plans(profile, 4, 3.0))
        yield Tried(id=f"engines/tried/pipedream/{case}", model="PipeDream, stages", engine="dynamic program", ranks=4,
                    reference=min(plans), ours=bottleneck(profile, partition(profile, 4, 3.0), 3.0),
                    source="all cuts of five layers, all replicas on four machines")  # fmt: skip
        layers, speeds = draw.uniform(1.0, 9.0, 7).tolist(), draw.uniform(0.5, 3.0, 3).tolist()
        cuts = itertools.combinations_with_replacement(range(8), 2)
        slowest = (max(sum(layers[a:b]) / speed for a, b, speed in zip((0, *c), (*c, 7), speeds, strict=True))
                   for c in cuts)  # fmt: skip
        yield Tried(id=f"engines/tried/hetpipe/{case}", model="HetPipe, stages", engine="dynamic program", ranks=3,
                    reference=min(slowest), ours=stage_seconds(layers, speeds),
                    source="all cuts of 7 layers")  # fmt: skip


def recovery(cases: tuple[tuple[int, int], ...]) -> Iterator[Row]:
    """Gemini's probability of recovery; and the layers that Oobleck moves when one of two pipelines shrinks."""
    for n, m in cases:
        sets = placement_sets(n, m)
        for k in range(m, n - n // m + 1):
            failed = list(map(set, itertools.combinations(range(n), k)))
            counted = Fraction(sum(all(not held <= gone for held in sets) for gone in failed), len(failed))
            if counted:
                yield Tried(id=f"engines/tried/gemini/{n}/{m}/{k}", model="Gemini, probability of recovery", ranks=n,
                            engine="closed-form", reference=float(counted), unit="probability",
                            ours=float(recovery_probability(n, m, k)),
                            source="all sets of failed machines")  # fmt: skip
    before = even_stages(24, ["a0", "a1", "a2", "a3"]) | even_stages(24, ["b0", "b1", "b2"])
    after = even_stages(24, ["a0", "a1", "a2"]) | even_stages(24, ["b0", "b1", "b2"])
    needed = sum(len(set(after[node]) - set(before[node])) for node in after)
    ours = sum(copy.size for copy in recovery_copies(before, after, [1e9] * 24))
    yield Tried(id="engines/tried/oobleck", model="Oobleck, recovery", engine="greedy", ranks=7, reference=1e9 * needed,
                ours=ours, unit="bytes", source="layers that a node needs and does not hold")  # fmt: skip


def _plans(profile: LayerProfile, n_machines: int, bandwidth: float) -> Iterator[tuple[Stage, ...]]:
    """All cuts of the layers, with all numbers of replicas that the machines allow."""
    n = len(profile.compute)
    for n_cuts in range(n):
        for cuts in itertools.combinations(range(1, n), n_cuts):
            bounds = list(itertools.pairwise((0, *cuts, n)))
            for replicas in itertools.product(range(1, n_machines + 1), repeat=len(bounds)):
                if sum(replicas) <= n_machines:
                    yield tuple(Stage(a, b - 1, m, stage_time(profile, a, b - 1, m, bandwidth))
                                for (a, b), m in zip(bounds, replicas, strict=True))  # fmt: skip
