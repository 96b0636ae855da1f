"""Ranks placements of new jobs beside jobs that run, whose starts and links are kept: by what the new jobs cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import HOST, Network
from commsim.placement.cluster import Cluster
from commsim.placement.nic_counts import few_nics, machines_of, nic_counts
from commsim.placement.ranking_remarks import PRINTED
from commsim.placement.scored_placements import Placed, between_switches, in_turn, tried_with_more
from commsim.placement.starts.achieved_phases import achieved
from commsim.placement.starts.meeting_kernel import MetJobs
from commsim.placement.starts.met_jobs import shifted, with_more
from commsim.training.sharing.periodic import JobPhase, PeriodicJob

from .beside_kernel import JobTimes, Uses, add_jobs
from .finalists_beside import LONGEST, joined_beside, simulated_beside, started
from .kept_jobs import KeptJobs, best_start, links_of, parts_of, uses_of, with_links
from .placement_beside import OfSeed, PlacementBeside

FINALISTS = 3  # whose starts are also sought for all hashes together
PATIENCE = 10  # draws of a strategy in a row that give no other placement: a full cluster has few
_SAME = 1e-6  # part of an iteration by which a time must change to be named
_ROUNDS = 2  # over the new jobs, where several are to start


class RankingBeside:
    """Ranks candidates for one request.

    Parameters
    ----------
    kept : KeptJobs
        Jobs that run.
    seeds : sequence of int
        Seeds of the hashes, as those of the jobs that run.
    asked : sequence of PeriodicJob
        New jobs; those with a placement stay there.
    """

    def __init__(self, kept: KeptJobs, seeds: Sequence[int], asked: Sequence[PeriodicJob]) -> None:
        self._kept, self._seeds, self._asked = kept, seeds, asked
        self._cluster = without_kept(kept)
        self._hashes = [kept.of(h) for h in range(len(seeds))]
        self._met = [with_more(kept.met(h), asked) for h in range(len(seeds))]
        self._period = np.append(kept.period, [job.period for job in asked])
        self._base = [float((times.final / kept.period).sum()) for _, _, times in self._hashes]
        self._inner = between_switches(kept.cluster.network)

    def rank(
        self,
        n: int,
        generators: Sequence[str],
        seed: int,
        longest: float = LONGEST,
        placed: Sequence[Placed] = (),
    ) -> list[PlacementBeside]:
        """Return candidates, best first; those in which jobs lose time are simulated, as long as there is time.

        Parameters
        ----------
        n : int
            Candidates in all, at most. If all cost something, more of the best one's strategy are tried, as by
            :func:`commsim.place_jobs`.
        generators : sequence of str
            Strategies that are asked in turn.
        seed : int
            Seed of candidates that are drawn.
        longest : float, s
            Time in which candidates are simulated, with the running jobs that they slow down.
        placed : sequence of (str, sequence of PeriodicJob)
            Candidates of one's own, which are then all. Default: those of the strategies.
        """
        cluster, asked = self._cluster, self._asked
        placed = placed or in_turn(cluster, asked, generators, n, seed, PATIENCE)
        n_wanted = n if any(job.placement is None for job in asked) else 0
        found = tried_with_more(cluster, asked, placed, self._tried, self._order, n_wanted, seed, PATIENCE)
        found.sort(key=self._order)
        final = sorted([*map(self._with_other_starts, found[:FINALISTS]), *found[FINALISTS:]], key=self._order)[:n]
        for one in final:
            longest -= self._simulate(one, longest)
        final.sort(key=self._order)
        return final

    def _simulate(self, one: PlacementBeside, longest: float) -> float:
        """Simulate a candidate with its median hash if that takes no longer; return the seconds that it takes."""
        h = one.median
        of = one.of_seed[h]
        new = started(of.new, one.shift[len(self._kept.jobs) :])
        joined = joined_beside(self._kept, h, new, of.more, of.score, of.times)
        if joined is None:
            return 0.0
        one.n_joined = len(joined.jobs)
        if joined.cost > longest:
            return 0.0
        found = simulated_beside(self._kept, h, joined, of.more, of.times)
        cost = float((found.after / self._period).sum() - (found.before / self._kept.period).sum()) - len(new)
        one.simulated = h, cost, found
        return joined.cost

    def _order(self, one: PlacementBeside) -> tuple[float, ...]:
        return one.order(self._inner)

    def _tried(self, placed: Sequence[Placed]) -> list[PlacementBeside]:
        n, bandwidth = len(self._asked), self._cluster.network.bandwidth
        all_jobs = [job for _, jobs in placed for job in jobs]
        links = [links_of(self._cluster, all_jobs, seed) for seed in self._seeds]
        now = [
            [
                achieved(job, part)
                for job, part in zip(all_jobs, parts_of(self._cluster, all_jobs, of, seed), strict=True)
            ]
            for of, seed in zip(links, self._seeds, strict=True)
        ]
        machines = machines_of(self._cluster, [jobs for _, jobs in placed])
        found = []
        for i, ((generator, jobs), on) in enumerate(zip(placed, machines, strict=True)):
            of_jobs = [row[i * n : i * n + n] for row in links]
            new = [row[i * n : i * n + n] for row in now]
            met = [self._met_with(h, jobs, row) for h, row in enumerate(new)]
            more = [
                uses_of([(len(self._kept.jobs) + k, *one) for k, one in enumerate(row) if len(one[0])], bandwidth)
                for row in of_jobs
            ]
            shift, window = self._starts(met, more[:1])
            nics = nic_counts(self._cluster, jobs, on)
            of_seed = self._at(new, met, more, shift)
            found.append(PlacementBeside(generator, jobs, shift, window, of_seed, nics, sum(map(len, on))))
        return found

    def _met_with(self, h: int, jobs: Sequence[PeriodicJob], now: Sequence[PeriodicJob]) -> MetJobs:
        """Return all jobs under one hash, the new ones with the phases that they achieve alone on their links."""
        same = all(one is job for one, job in zip(now, jobs, strict=True))
        return self._met[h] if same else with_more(self._kept.met(h), now)

    def _starts(self, met: Sequence[MetJobs], more: Sequence[Uses]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Find the start of each new job that has none, one after the other, under the first hashes."""
        first, n = len(self._kept.jobs), len(self._asked)
        shift, window = np.zeros(first + n), np.zeros(n)
        hashes = [(uses, one) for (uses, _, _), one in zip(self._hashes, more, strict=False)]
        free = [i for i, job in enumerate(self._asked) if job.start is None and job.phases]
        for _ in range(_ROUNDS if len(free) > 1 else 1):
            for i in free:
                shift[first + i], window[i] = best_start(shifted(met[0], shift), hashes, first + i)
        return shift, window

    def _at(
        self,
        new: Sequence[Sequence[PeriodicJob]],
        met: Sequence[MetJobs],
        more: Sequence[Uses],
        shift: NDArray[np.float64],
    ) -> list[OfSeed]:
        n, found = len(shift), []
        for (uses, known, before), jobs, of, one, base in zip(self._hashes, new, met, more, self._base, strict=True):
            times, score = JobTimes(*(np.empty(n) for _ in range(4))), np.empty(len(one.link))
            add_jobs(shifted(of, shift), uses, known, one, before, times, score)
            cost = float((times.final / self._period).sum()) - base - len(self._asked)
            found.append(OfSeed(jobs, of, one, times, score, cost))
        return found

    def _with_other_starts(self, one: PlacementBeside) -> PlacementBeside:
        """Take the starts that are best for all hashes together, if the worst hash costs less with them."""
        if round(one.ends[1], PRINTED) <= round(one.of_seed[0].cost, PRINTED):
            return one
        new, met, more = ([getattr(of, name) for of in one.of_seed] for name in ("new", "met", "more"))
        shift, window = self._starts(met, more)
        other = replace(one, shift=shift, window=window, of_seed=self._at(new, met, more, shift))
        return min(one, other, key=lambda at: (round(at.ends[1], PRINTED), round(at.cost, PRINTED)))

    def row(self, one: PlacementBeside, also: Sequence[str] = ()) -> dict[str, Any]:
        """Return the JSON of a candidate: the new jobs, and the running ones whose iteration time they change.

        Parameters
        ----------
        also : sequence of str
            Running jobs whose places and starts are named, too: those that the request has.
        """
        running = [self._kept.jobs[name].job for name in also]
        of, period, first = one.of_seed[one.median], self._period, len(self._kept.jobs)
        names = [*self._kept.jobs, *(job.name for job in one.jobs)]
        before, after = self._hashes[one.median][2].final, of.times.final
        if one.simulated is not None:
            before, after = one.simulated[2].before, one.simulated[2].after
        changed = np.flatnonzero(np.abs(after[:first] - before) > _SAME * period[:first]).tolist()
        shown = [*range(first, len(names)), *changed]
        slow = {names[j]: float(after[j] / of.times.alone[j]) for j in shown}
        worst = max(slow, key=lambda name: round(slow[name], 9))
        links = self._links(one.median, of, names)
        scores = [link["score"] for link in links] or [1.0]
        added = {names[j]: float((after[j] - before[j]) / period[j]) for j in changed}
        meeting = {name for link in links for name in link["jobs"]}
        half = {  # of the window of each new job on links that it shares, as those of `commsim place`
            job.name: float(one.window[i]) * 5e2
            for i, job in enumerate(one.jobs)
            if job.name in meeting and job.start is None
        }
        start = {job.name: self._start_ms(one, i) for i, job in enumerate(one.jobs)}
        given = {job.name: _rounded((job.start or 0.0) * 1e3) for job in running}
        return {
            "generator": one.generator,
            "placement": {job.name: list(job.placement or ()) for job in (*one.jobs, *running)},
            "cost": {
                "total": _rounded(one.cost),
                "total_best": _rounded(one.ends[0]),
                "total_worst": _rounded(one.ends[1]),
                "own": {names[j]: _rounded(float(after[j] / period[j])) for j in range(first, len(names))},
                "added": {name: _rounded(more) for name, more in added.items()},
            },
            "slowdown": _rounded(float(np.mean(list(slow.values())))),
            "stretch": _rounded(float(np.mean(after[shown] / period[shown]))),
            "worst_job": worst,
            "worst_job_slowdown": _rounded(slow[worst]),
            "score_mean": _rounded(sum(scores) / len(scores)),
            "score_min": _rounded(min(scores)),
            "links": links,
            "shifts_ms": start | given,
            "windows_ms": {name: [_rounded(start[name] - w), _rounded(start[name] + w)] for name, w in half.items()},
            "slack_ms": {name: _rounded(w) for name, w in half.items()},
            "window_ms": {job.name: _rounded(float(one.window[i]) * 1e3) for i, job in enumerate(one.jobs)},
            "predicted_iteration_ms": {names[j]: _rounded(float(after[j]) * 1e3) for j in shown},
            "before_iteration_ms": {names[j]: _rounded(float(before[j]) * 1e3) for j in changed},
            "alone_iteration_ms": {names[j]: _rounded(float(of.times.alone[j]) * 1e3) for j in shown},
            "prediction": one.prediction,
            "hash_seed": self._seeds[one.median],
        }  # fmt: skip

    def _start_ms(self, one: PlacementBeside, i: int) -> float:
        start = one.jobs[i].start
        return _rounded(float(one.shift[len(self._kept.jobs) + i] if start is None else start) * 1e3)

    def _links(self, h: int, of: OfSeed, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the links that a new job shares with others, or overloads alone."""
        rows = []
        for i in np.flatnonzero(of.score < 2.5).tolist():
            link, own = int(of.more.link[i]), of.more.job[of.more.first[i] : of.more.first[i + 1]].tolist()
            sharing = [*self._kept.sharing(link, h), *(names[j] for j in own)]
            rows.append(
                {
                    "link": self._cluster.network.link_name(link),
                    "jobs": sharing,
                    "score": _rounded(min(float(of.score[i]), 1.0)),
                }
            )
        return rows

    def remarks(self, ranked: Sequence[PlacementBeside]) -> list[str]:
        """Return what is to be said of candidates, such as jobs that leave their machines by few NICs."""
        lines = [str(remark) for remark in few_nics([one.nics for one in ranked])]
        estimates = [one for one in ranked if one.is_estimate]
        if estimates:
            lines.append(
                f"{len(estimates)} of {len(ranked)} candidates are estimates: full links join up to "
                f"{max(one.n_joined for one in estimates)} jobs, which takes long to simulate"
            )
        return lines


def warm_up_ranking() -> None:
    """Compile the kernels with a small question."""
    network = Network("pair", ("a", "b"), [HOST, HOST], [0, 1], [1, 0], 1.0, 0.0)
    cluster = Cluster(network, [2, 2])
    phases = (JobPhase(0.0, 0.05, 1.0),)
    job = PeriodicJob("old", 2, 0.1, phases, ("a", "b"))
    kept = KeptJobs.none(cluster, (0,)).changed(with_links(cluster, [job], (0,)))
    ranking = RankingBeside(kept, (0,), [PeriodicJob("new", 2, 0.1, phases)])
    ranking.row(ranking.rank(1, ("spread",), 0)[0])


def without_kept(kept: KeptJobs) -> Cluster:
    """Return the cluster with the GPUs of the jobs that run taken."""
    return Cluster(kept.cluster.network, kept.cluster.gpus, kept.cluster.busy + kept.taken)


def _rounded(value: float) -> float:
    return round(value, 9) + 0.0
