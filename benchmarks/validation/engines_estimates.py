"""Quick estimates of what jobs on shared links lose, against the fluid simulation that they stand for."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from commsim.placement.candidate import simulated
from commsim.placement.cluster import Cluster
from commsim.placement.clusters.contention.traffic import ClusterTraffic
from commsim.placement.clusters.models import MODELS, profile
from commsim.placement.evaluation import evaluate
from commsim.placement.link_use import link_uses
from commsim.training.sharing.periodic import PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs
from topologies.leaf_spine import leaf_spine

from .row import Row

Estimate = functools.partial(Row, kind="engines", against="fluid simulation", operation="shared link",
                             network="leaf_spine", unit="mean slow-down")  # fmt: skip
RATE = 12.5e9
ON_TIME = "made for speed: iterations start on time however slow the last one was, and each link is looked at alone"
NO_DRIFT = "made for speed: that delays do not make jobs drift into, or out of, each other's way is assumed"


def rows(quick: bool) -> Iterator[Row]:
    """Compare drawn jobs; the quick subset has one case."""
    yield from estimates(range(1 if quick else 12))


def estimates(seeds: range) -> Iterator[Row]:
    """Mean slow-down of six drawn jobs: as the cluster simulation estimates it, and as placements are scored."""
    network = leaf_spine(8, 2, 2, bandwidth=RATE, uplink_bandwidth=RATE / 2)
    seats = np.zeros(network.n_nodes, np.int64)
    seats[network.hosts] = 8
    cluster, models = Cluster(network, seats), list(MODELS.values())
    for seed in seeds:
        draw = np.random.default_rng([7, seed])
        hosts = draw.permutation(16)
        routes = [tuple(f"h{h}" for h in hosts[2 * i : 2 * i + 2]) for i in range(6)]
        jobs = [profile(models[draw.integers(13)], f"j{i}", 2, 2, RATE) for i in range(6)]
        shifts = [draw.random() * job.period for job in jobs]
        traffic = ClusterTraffic(cluster)
        sharers = [traffic.add(*one) for one in zip(jobs, routes, shifts, strict=True)]
        traffic.settle()
        run = simulate_jobs(network, jobs, list(link_uses(cluster, routes)), shifts=shifts, iterations=200)
        # Both over the profile's iteration: what a job's own links make longer is in it too, as in `ClusterTraffic`.
        over_profile = run.iteration_times.mean(axis=1) / np.array([job.period for job in jobs])
        yield _estimate(f"cluster/{seed}", "slow-down in a cluster", "sample", ON_TIME,
                        float(np.mean([s.stretch for s in sharers])), float(over_profile.mean()))  # fmt: skip
        placed = [PeriodicJob(j.name, 2, j.period, j.phases, r) for j, r in zip(jobs, routes, strict=True)]
        scored = evaluate(cluster, placed)
        checked = simulated(cluster, placed, scored)
        ours, theirs = (float(np.mean([c.predicted[j.name] / j.period for j in placed])) for c in (scored, checked))
        yield _estimate(f"place/{seed}", "slow-down of a placement", "circles", NO_DRIFT, ours, theirs)


def _estimate(name: str, model: str, engine: str, note: str, ours: float, theirs: float) -> Row:
    found = f"of the time lost it finds {(ours - 1) / (theirs - 1):.0%}"
    return Estimate(id=f"engines/estimate/{name}", model=model, engine=engine, ranks=12, ours=ours, reference=theirs,
                    note=f"{note}; {found}",
                    source="commsim.training.sharing.shared_links, six jobs drawn from that seed")  # fmt: skip
