"""The flow engine against the reference solver of the tests, with separate sharing and event order."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.inputs import load_network

from .row import Row

ORACLES = Path(__file__).resolve().parents[2] / "tests" / "oracles"
CASES, QUICK_CASES = 60, 6
NETWORKS = ("star:n_hosts=6", "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=2", "ring:n_hosts=6",
            "torus:dims=2x3")  # fmt: skip
MAX_TRANSFERS = 120
PLAIN = [name for name in COLLECTIVES if not COLLECTIVES[name].metadata["systems"]]


def rows(quick: bool) -> Iterator[Row]:
    """Draw small cases: unequal links, costs, one or two jobs of any collective, late starters."""
    simulate = _slow_solver()
    for seed in range(QUICK_CASES if quick else CASES):
        yield from _case(seed, simulate)


def _slow_solver() -> Any:
    """Return ``tests/oracles/slow_flow.simulate``; tests are no package, and find it by their own path."""
    if str(ORACLES) not in sys.path:
        sys.path.append(str(ORACLES))
    return importlib.import_module("slow_flow").simulate


def _case(seed: int, simulate: Any) -> Iterator[Row]:
    draw = np.random.default_rng(seed)
    network = _network(NETWORKS[seed % len(NETWORKS)], draw)
    jobs = [_job(network, draw) for _ in range(1 + seed // len(NETWORKS) % 2)]
    sizes = draw.uniform(1e5, 1e7, len(jobs)).tolist()
    starts = np.concatenate([_starts(job.schedule, draw) for job in jobs]).tolist()
    ours = simulate_flows(plan_flows(network, jobs, seed=seed), sizes, starts=starts)
    theirs = np.array(simulate(network, jobs, sizes, starts, seed=seed)).reshape(-1, 3)
    first, participant = 0, 0
    for i, (job, size, result) in enumerate(zip(jobs, sizes, ours, strict=True)):
        schedule = job.schedule
        done = theirs[first : first + schedule.n_transfers, 2]
        entered = starts[participant : participant + schedule.n_ranks]
        first, participant = first + schedule.n_transfers, participant + schedule.n_participants
        yield Row(
            id=f"engines/slow/{seed}/{i}",
            kind="engines",
            against="reference solver",
            model="one drawn job" if len(jobs) == 1 else "two drawn jobs",
            engine="flow",
            operation=schedule.operation,
            reference=float(max(done.max(), max(entered)) - min(entered)),
            ours=result.time,
            unit="s",
            source=f"tests/oracles/slow_flow.py, {schedule.name}, drawn from seed {seed}",
            ranks=schedule.n_ranks,
            network=network.name.partition(":")[0],
            size=size,
        )


def _network(spec: str, draw: np.random.Generator) -> Network:
    network = load_network(spec)
    nodes, links = network.n_nodes, network.n_links
    return dataclasses.replace(
        network,
        bandwidth=network.bandwidth * draw.uniform(0.3, 1.7, links),
        latency=network.latency * draw.uniform(0.0, 2.0, links),
        overhead=np.where(draw.random(nodes) < 0.5, draw.uniform(0, 2e-6, nodes), 0.0),
        gamma=np.where(draw.random(nodes) < 0.5, draw.uniform(0, 1e-10, nodes), 0.0),
    )


def _job(network: Network, draw: np.random.Generator) -> FlowJob:
    """Draw a collective small enough for the reference solver, and hosts for its participants."""
    while True:
        schedule = COLLECTIVES[str(draw.choice(PLAIN))].build(int(draw.integers(2, 6)))
        fits = 0 < schedule.n_transfers <= MAX_TRANSFERS and schedule.n_participants <= len(network.hosts)
        if fits and schedule.operation != "barrier":
            return FlowJob(schedule, Placement(draw.permutation(network.hosts)[: schedule.n_participants]))


def _starts(schedule: Schedule, draw: np.random.Generator) -> Any:
    """Ranks enter within 100 us; helpers are there from the beginning."""
    return np.concatenate((draw.uniform(0, 1e-4, schedule.n_ranks), np.zeros(schedule.n_helpers)))
