"""Start times, estimates and first candidates against simulations and grids, on oversubscribed clusters.

    python -m benchmarks.placement.start_times [N]

1. Four pairs of one job on an uplink of half the NIC's rate: estimate, simulation, window.
2. N drawn pairs and triples (default 200) over uplinks of 0.5 to 1 times the NIC: how many estimates are within 1 % of
   the simulation, and in how many cases a start of the last job on a grid of 1 ms costs nothing while the start that
   was found costs something. Half of the cases have equal iteration times, a quarter those in a ratio of 2, and a
   quarter any; of triples the grid is of the third job, with the second where it was put, and where it was not.
3. N drawn clusters of 3 to 6 jobs: the first candidate's simulated slow-down over that of the best of all candidates.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from commsim.placement.candidate import PlacementCandidate, simulated
from commsim.placement.cluster import Cluster
from commsim.placement.place import place_jobs, rank_placements
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import fair_times
from commsim.training.sharing.shared_run import MEASURED
from topologies.leaf_spine import leaf_spine

NIC = 100.0  # Gb/s
# Rate (Gb/s), duration and iteration time (ms) of the four variants.
VARIANTS = ((60, 90, 250), (75, 60, 200), (100, 50, 220), (55, 110, 260))
FREE = 1 + 5e-4  # a slow-down that counts as none


@dataclass(frozen=True, slots=True)
class Case:
    """Drawn jobs over one uplink, and what was found for them."""

    kind: str
    jobs: tuple[PeriodicJob, ...]
    uplink: float
    found: PlacementCandidate

    @property
    def error(self) -> float:
        """Part by which the estimate differs from the simulation."""
        return self.found.slowdown_estimated / self.found.slowdown - 1

    def best_of_grid(self) -> float:
        """Least slow-down over the starts of the last job, in steps of 1 ms, with the others where they were put."""
        names = [job.name for job in self.jobs]
        alone = np.array([self.found.alone[name] for name in names])
        starts = np.array([self.found.shifts[name] for name in names])
        part, best = np.full((len(names), 1), 1 / (self.uplink * NIC * GBPS)), np.inf
        for start in np.arange(0.0, alone[-1], 1e-3).tolist():
            starts[-1] = start
            best = min(best, float(np.mean(fair_times(self.jobs, part, starts, MEASURED) / alone)))
        return best


def cluster_of(uplink: float, *, leaves: int = 2) -> Cluster:
    """Return racks of four hosts of four GPUs below one spine, with uplinks of a part of the NIC's rate."""
    network = leaf_spine(leaves, 1, 4, bandwidth=NIC * GBPS, uplink_bandwidth=uplink * NIC * GBPS)
    return Cluster(network, np.where(network.kind == 0, 4, 0))


def job_of(name: str, period: float, offset: float, duration: float, rate: float, k: int) -> PeriodicJob:
    """Return a job across two racks; times in ms, rate in Gb/s."""
    phase = JobPhase(offset / 1e3, duration / 1e3, rate * GBPS)
    return PeriodicJob(name, 2, period / 1e3, (phase,), (f"h{k}", f"h{k + 4}"))


def drawn(rng: np.random.Generator, n_jobs: int) -> Case:
    """Draw jobs over one uplink, and find their start times."""
    kind = ("equal", "equal", "ratio", "any")[int(rng.integers(4))]
    base, uplink = int(rng.integers(100, 400)), float(rng.uniform(0.5, 1.0))
    jobs = []
    for k in range(n_jobs):
        period = {"equal": base, "ratio": base * int(rng.integers(1, 3)), "any": int(rng.integers(100, 400))}[kind]
        duration = float(rng.uniform(0.1, 0.5 if n_jobs == 2 else 0.33)) * period
        rate, offset = float(rng.uniform(0.4, 1.0)) * NIC, float(rng.uniform(0, period - duration))
        jobs.append(job_of("abc"[k], period, offset, duration, rate, k))
    (found,) = rank_placements(cluster_of(uplink), {"given": jobs}).candidates
    return Case(kind, tuple(jobs), uplink, found)


def variants() -> None:
    """Print the four pairs."""
    print("rate  duration  period  start(ms)   window(ms)  estimated  simulated")
    for rate, duration, period in VARIANTS:
        jobs = [job_of(name, period, period - duration - 10, duration, rate, k) for k, name in enumerate("bd")]
        (found,) = rank_placements(cluster_of(0.5), {"given": jobs}, check=True).candidates
        window = "..".join(f"{1e3 * end:.1f}" for end in found.windows["d"])
        row = f"{1e3 * found.shifts['d']:9.1f}  {window:>11}  {found.slowdown_estimated:9.4f}  {found.slowdown:9.4f}"
        print(f"{rate:4}  {duration:8}  {period:6}  {row}")


def pairs_and_triples(n: int) -> None:
    """Print how estimates and start times of drawn cases compare with simulations and grids."""
    rng = np.random.default_rng(1)
    cases = [drawn(rng, 2 + i % 2) for i in range(n)]
    within = [abs(case.error) <= 0.01 for case in cases]
    print(f"estimates within 1 % of the simulation: {sum(within)} of {n}")
    free = missed = 0
    for case in cases:
        best = case.best_of_grid()
        free += best <= FREE
        missed += best <= FREE < case.found.slowdown
    print(f"a start on a grid of 1 ms is free in {free} cases; not found in {missed} of them")


def clusters(n: int) -> None:
    """Print how far the first candidate is from the best of all, simulated."""
    rng, ratios, packed = np.random.default_rng(2), [], []
    for _ in range(n):
        cluster, jobs = cluster_of(float(rng.uniform(0.5, 1.0)), leaves=4), []
        for k in range(int(rng.integers(3, 7))):
            period = int(rng.choice([100, 120, 150, 200, 240, 300]))
            duration = float(rng.uniform(0.15, 0.45)) * period
            phase = JobPhase((period - duration) / 1e3, duration / 1e3, float(rng.uniform(0.3, 1)) * NIC * GBPS)
            jobs.append(PeriodicJob(f"j{k}", int(rng.integers(3, 13)), period / 1e3, (phase,)))
        ranked = place_jobs(cluster, jobs).candidates
        placed = [_placed(jobs, one) for one in ranked]
        stretch = [
            simulated(cluster, of, one, seed=one.hash_seed or 0).stretch for of, one in zip(placed, ranked, strict=True)
        ]
        ratios.append(stretch[0] / min(stretch))
        first = place_jobs(cluster, jobs, n=1, generators=("packed",)).candidates[0]
        packed.append(stretch[0] / simulated(cluster, _placed(jobs, first), first, seed=first.hash_seed or 0).stretch)
    good = sum(ratio <= 1.01 for ratio in ratios)
    print(f"first candidate at most 1.01 of the best, simulated: {good} of {n}; worst {max(ratios):.4f}")
    print(f"first candidate over the packed one, simulated: at most {max(packed):.4f}, mean {np.mean(packed):.4f}")


def _placed(jobs: list[PeriodicJob], one: PlacementCandidate) -> list[PeriodicJob]:
    import dataclasses

    return [dataclasses.replace(job, placement=one.placement[job.name]) for job in jobs]


def main(words: list[str]) -> None:
    """Print all three."""
    n = int(words[0]) if words else 200
    variants()
    pairs_and_triples(n)
    clusters(n)


if __name__ == "__main__":
    main(sys.argv[1:])
