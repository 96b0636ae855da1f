"""Placements that are tried: of the strategies in turn, then more of the best one's; and how they are ranked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.routing.routing import is_hashed
from commsim.training.sharing.periodic import PeriodicJob

from .candidate import PlacementCandidate
from .cluster import Cluster
from .evaluation import contended, evaluated, links_of_jobs
from .link_classes import LinkClass
from .nic_counts import machines_of, nic_counts
from .other_hashes import OfHashes, use_in, with_other_seeds
from .ranking_remarks import MORE, MOST_ADVISED, PRINTED
from .scores import Scores
from .strategies import Drawing

# Jobs on contended links of all placements, beyond which those with the most are left out: about a second.
MOST_SEARCHED = 1500
# By what strategy, and the jobs with their placements.
Placed: TypeAlias = tuple[str, Sequence[PeriodicJob]]


def in_turn(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    generators: Sequence[str],
    n: int,
    seed: int,
    patience: int | None = None,
) -> list[Placed]:
    """Take candidates of the strategies in turn, each placement once; `patience` as of :class:`.Drawing`."""
    if not generators:
        raise InputError("placing needs at least one generator")
    is_given = all(job.placement is not None for job in jobs)  # then every strategy leaves all where they are
    drawing = Drawing(cluster, jobs)
    made = {name: drawing.each(name, n, seed, patience) for name in dict.fromkeys(generators)}
    chosen: dict[tuple[object, ...], Placed] = {}
    while made:
        for name, each in [*made.items()]:
            if len(chosen) == n:
                return list(chosen.values())
            if (placed := next(each, None)) is None:
                del made[name]
            else:
                chosen.setdefault(_places_of(placed), ("given" if is_given else name, placed))
    return list(chosen.values())


class Tried(Protocol):
    """A placement that was scored."""

    @property
    def generator(self) -> str:
        """Strategy that made it."""

    @property
    def is_slow(self) -> bool:
        """Whether its jobs, or those beside them, lose time."""


AnyTried = TypeVar("AnyTried", bound=Tried)


def tried_with_more(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    placed: Sequence[Placed],
    score: Callable[[Sequence[Placed]], list[AnyTried]],
    order: Callable[[AnyTried], tuple[float, ...]],
    n: int,
    seed: int,
    patience: int | None = None,
) -> list[AnyTried]:
    """Score placements, and others by the strategy of the best where jobs lose time in it.

    Parameters
    ----------
    placed : sequence of (str, sequence of PeriodicJob)
        Placements to begin with.
    score : callable
        Scores placements.
    order : callable
        By what they are ranked.
    n : int
        How many were asked for: 3 times as many more are tried, at most 100, and none where fewer were found; 0 for
        none.

    Returns
    -------
    list
        Those that were tried.
    """
    tried = score(placed)
    best = min(tried, key=order, default=None)
    if best is None or not 0 < n <= len(placed) or not best.is_slow:
        return tried
    n_more, known = min((MORE - 1) * n, MOST_ADVISED), {_places_of(one) for _, one in placed}
    drawn = Drawing(cluster, jobs).each(best.generator, n + n_more, seed, patience)
    more = ((best.generator, one) for one in drawn if _places_of(one) not in known)
    return tried + score(list(itertools.islice(more, n_more)))


def rank_key(
    value: float,
    worst: float,
    nics: Mapping[str, tuple[int, int]],
    counts: tuple[int, int, int],
    exact: float,
) -> tuple[float, ...]:
    """Return by what a placement is ranked: the less, the better.

    Parameters
    ----------
    value, worst : float
        What ranks, and the same with the worst hash of paths, as they are printed.
    nics : mapping of str to (int, int)
        Jobs that leave their machines by fewer NICs than they could; estimates do not see that a phase takes longer.
    counts : (int, int, int)
        Contended links, links between switches, and machines.
    exact : float
        What ranks, with more digits.
    """
    return value, sum(could - n_rings for n_rings, could in nics.values()), worst, *counts, exact


def between_switches(network: Network) -> NDArray[np.bool_]:
    """Tell which links are between switches, and not inside of one machine, bool[n_links]."""
    inside = (network.machine[network.src] >= 0) & (network.machine[network.src] == network.machine[network.dst])
    inner: NDArray[np.bool_] = network.forwards[network.src] & network.forwards[network.dst] & ~inside
    return inner


def _places_of(placed: Sequence[PeriodicJob]) -> tuple[tuple[str, ...] | None, ...]:
    return tuple(job.placement for job in placed)


@dataclass(slots=True)
class ScoredPlacement:
    """A placement that was scored: its jobs, their use of links, how many links between switches, and all hashes.

    `classes` has the links of the candidate's own hash, `ways` those of each hash with which jobs contend otherwise;
    `nics` has the jobs that leave their machines by too few NICs; `n_machines` counts each job's machines or hosts;
    `least` is the stretch of the jobs in every placement, where those that run lose time without the others.
    """

    jobs: Sequence[PeriodicJob]
    candidate: PlacementCandidate
    use: NDArray[np.float64]
    n_inner: int
    hashes: OfHashes | None
    nics: dict[str, tuple[int, int]]
    n_machines: int
    classes: Sequence[LinkClass] = ()
    least: float = 1.0

    @property
    def ways(self) -> list[Sequence[LinkClass]]:
        """Links of each way in which the jobs contend, by the hash of paths."""
        return [self.classes] if self.hashes is None else [classes for _, _, classes in self.hashes.ways]

    @property
    def generator(self) -> str:
        """Strategy that made it."""
        return self.candidate.generator

    @property
    def is_slow(self) -> bool:
        """Whether its jobs take longer than they have to."""
        return round(self.candidate.stretch, PRINTED) > round(self.least, PRINTED)

    def order(self, rank_by: str) -> tuple[float, ...]:
        """Return by what it is ranked: the less, the better."""
        c = self.candidate
        value = round(c.stretch, PRINTED) if rank_by == "stretch" else -round(c.value(rank_by), 9)
        counts = c.n_contended, self.n_inner, self.n_machines
        return rank_key(value, round(c.stretch_worst or 0.0, PRINTED), self.nics, counts, round(c.stretch, 9))


def with_least_work(cluster: Cluster, placed: Sequence[Placed], scores: Scores) -> tuple[list[Placed], int]:
    """Leave out the placements whose jobs meet on the most links, where scoring all of them takes long.

    Those whose jobs meet the least are kept, and the first one, which is packed by default; also each that could be
    faster without other jobs than all of these, since jobs are no faster than alone on their links.

    Returns
    -------
    list of Placed, int
        Those that are left, and how many are not.
    """
    if len(scores.jobs) ** 2 * len(placed) <= MOST_SEARCHED:  # few meet: routes are not walked for them
        return list(placed), 0
    works, bounds = [], []
    period = np.array([job.period for job in scores.jobs])
    for classes in links_of_jobs(cluster, placed, scores.settings.seed, scores)[1]:
        view = scores.on(classes)
        works.append(sum(len(links.jobs) for links in contended(classes, view)))
        bounds.append(round(float(np.mean(view.period / period)), PRINTED) if len(period) else 1.0)
    order = np.argsort(works, kind="stable")
    n_kept = int(np.searchsorted(np.cumsum(np.array(works)[order]), MOST_SEARCHED, side="right"))
    kept = {0, *order[: max(n_kept, 1)].tolist()}
    best = min(bounds[i] for i in kept)
    left = [one for i, one in enumerate(placed) if i in kept or bounds[i] < best]
    return left, len(placed) - len(left)


def tried_of(
    cluster: Cluster, placed: Sequence[Placed], loops: str, scores: Scores, least: float = 1.0
) -> list[ScoredPlacement]:
    """Score placements with the median hash of paths, and with start times that hold for all."""
    found, use, first = evaluated(cluster, placed, loops, scores)
    net = cluster.network
    hashes: Sequence[OfHashes | None] = [None] * len(found)
    if found and is_hashed(net.routing) and scores.settings.hashes > 1:
        drawn = with_other_seeds(cluster, placed, first, found, scores, loops)
        use = np.stack([use_in(net, of.seeds[of.median][2], use.shape[1]) for of in drawn])
        hashes = drawn
    n_inner = (use[:, :, between_switches(net)] > 0).any(axis=1).sum(axis=1).tolist()
    machines = machines_of(cluster, [jobs for _, jobs in placed])
    own = [classes if of is None else of.seeds[of.median][2] for classes, of in zip(first, hashes, strict=True)]
    return [
        ScoredPlacement(
            jobs,
            one if of is None else of.candidate,
            rows,
            n,
            of,
            nic_counts(cluster, jobs, on),
            sum(map(len, on)),
            classes,
            least,
        )
        for (_, jobs), one, rows, n, of, on, classes in zip(
            placed, found, use, n_inner, hashes, machines, own, strict=True
        )
    ]
