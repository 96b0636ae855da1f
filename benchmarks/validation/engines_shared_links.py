"""The fluid simulation of jobs on shared links, against a slow one in fractions, and against the flow engine."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from collectives.dense.ring import ring_all_reduce
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.placement import Placement
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import Mltcp, simulate_jobs
from commsim.training.sharing.shared_schedules import ScheduledJob, run_jobs
from topologies.leaf_spine import leaf_spine

from .engines_slow_solver import ORACLES
from .row import Row

Engines = functools.partial(Row, kind="engines", operation="shared link", unit="s")
RATE = 12.5e9


def rows(quick: bool) -> Iterator[Row]:
    """Draw jobs; the quick subset has few of each."""
    yield from slow_simulation(range(4 if quick else 40))
    yield from mltcp((0.3,) if quick else (0.1, 0.3, 0.6, 0.9))
    yield from schedules((0.5,) if quick else (0.0, 0.25, 0.5, 1.0))


def slow_simulation(seeds: range) -> Iterator[Row]:
    """Compare with ``tests/oracles/slow_shared_links.py``, on links in a row, shared fairly or by weights."""
    if str(ORACLES) not in sys.path:
        sys.path.append(str(ORACLES))
    run_slowly = importlib.import_module("slow_shared_links").run_slowly
    for seed in seeds:
        draw = np.random.default_rng([11, seed])
        n = int(draw.integers(2, 5))
        jobs = [_drawn(draw) for _ in range(n)]
        uses = [{k: Fraction(int(draw.choice([0, 1, 2, 4])), 2) for k in range(3)} for _ in range(n)]
        capacity = {k: Fraction(int(draw.integers(2, 10))) for k in range(3)}
        sharing = ("fair", "weighted")[seed % 2]
        weights = draw.integers(1, 4, n).tolist() if seed % 2 else [1] * n
        shifts = draw.integers(0, 12, n).tolist()
        slow = run_slowly(jobs, uses, capacity, shifts=list(map(Fraction, shifts)), iterations=4,
                          weights=list(map(Fraction, weights)), priorities=[0] * n)  # fmt: skip
        fast = simulate_jobs(
            _line([float(c) for c in capacity.values()]),
            [PeriodicJob(f"j{j}", 2, float(period),
                         tuple(JobPhase(float(a), float(b), float(c), float(d)) for a, b, c, d in phases))
             for j, (period, phases) in enumerate(jobs)],
            [[float(use[k]) for k in range(3)] + [0.0] * 3 for use in uses],
            shifts=shifts, iterations=4, sharing=sharing, weights=weights if seed % 2 else None,
        )  # fmt: skip
        for what in ("iteration_times", "communication_times"):
            yield Engines(id=f"engines/shared/{seed}/{what}", against="reference solver",
                          model=f"jobs on links, {sharing}",
                          engine="shared links", ranks=n, network="line", ours=float(getattr(fast, what).sum()),
                          reference=float(sum(map(sum, slow[what]))),
                          source=f"tests/oracles/slow_shared_links.py, drawn from seed {seed}")  # fmt: skip


def schedules(starts: tuple[float, ...]) -> Iterator[Row]:
    """Two rings of two on the flow engine, and as one phase each of periodic jobs."""
    size, network = 2.0**26, leaf_spine(n_leaves=2, n_spines=1, hosts_per_leaf=4, bandwidth=RATE, latency=0.0)
    alone, use = size / RATE, np.array(["spine" in network.link_name(k) for k in range(network.n_links)], np.float64)
    for start in starts:
        rings = [ScheduledJob(name, ring_all_reduce(2), Placement([a, a + 4]), size, start=a * start * alone)
                 for a, name in enumerate("ab")]  # fmt: skip
        real = run_jobs(network, rings)
        fluid = [PeriodicJob(name, 2, 4 * alone, (JobPhase(0.0, alone, RATE),)) for name in "ab"]
        run = simulate_jobs(network, fluid, [use, use], shifts=[0.0, start * alone], iterations=1)
        for job in range(2):
            yield Engines(id=f"engines/shared/flow/{start:g}/{job}", against="flow engine", model="two rings of two",
                          engine="shared links", ranks=4, network="leaf_spine",
                          ours=float(run.communication_times[job, 0]), reference=real.together[job].time,
                          source=f"commsim.training.sharing.shared_schedules; the second starts after {start:g} of"
                          " the first")  # fmt: skip


def mltcp(ahead: tuple[float, ...]) -> Iterator[Row]:
    """Two equal jobs, the first of which has sent a part when the second begins; from then on 4a + 1/4 to 1/4."""
    twins = [PeriodicJob(name, 2, 4.0, (JobPhase(0.0, 1.0, 8.0),)) for name in "ab"]
    use = [1.0, 0.0]
    for a in ahead:
        run = simulate_jobs(_line([8.0]), twins, [use, use], iterations=1, shifts=[0.0, a], sharing="mltcp",
                            mltcp=Mltcp(4.0, 0.25, 512))  # fmt: skip
        yield Engines(id=f"engines/shared/mltcp/{a:g}", against="exact solution", model="MLTCP, jobs on a link",
                      engine="shared links", ranks=4, network="line", ours=float(run.communication_times[0, 0]),
                      reference=a + (1 - a) * (1 + 0.25 / (4 * a + 0.25)),
                      source="rates are as the weights at the start; 512 steps of the weight in a phase")  # fmt: skip


def _drawn(draw: np.random.Generator) -> tuple[Fraction, list[tuple[Fraction, ...]]]:
    """Draw a period, and one or two phases in it: offset, duration, rate; half of the time to the next is computed."""
    period = int(draw.integers(6, 13))
    cuts = np.sort(draw.choice(period, 2 * int(draw.integers(1, 3)), replace=False)).tolist()
    following = [*cuts[2::2], period + cuts[0]]
    return Fraction(period), [(Fraction(a), Fraction(b - a), Fraction(int(draw.integers(1, 7))), Fraction(then - a, 2))
                              for a, b, then in zip(cuts[::2], cuts[1::2], following, strict=True)]  # fmt: skip


def _line(bandwidths: Any) -> Network:
    """Return switches in a row, with a host at one end: link k goes from node k to the next."""
    n = len(bandwidths)
    src, dst = both_ways(range(n), range(1, n + 1))
    return Network("line", node_names(h=1, s=n), kinds(1, n), src, dst, np.tile(bandwidths, 2), 0.0)
