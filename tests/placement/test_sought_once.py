"""What a ranking seeks late and remembers: the answers, to the last bit, are those of seeking all at once and anew."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

from commsim.placement import evaluation, scores
from commsim.placement.cluster import Cluster
from commsim.placement.link_classes import KnownClass
from commsim.placement.place import place_jobs
from commsim.placement.ranking import PlacementRanking
from commsim.placement.scores import Scores
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine


class Sought(NamedTuple):
    """A link's demands, sought before they are asked for."""

    jobs: tuple[int, ...]
    shifts: tuple[float, ...]
    is_held: bool


def drawn(seed: int) -> tuple[Cluster, list[PeriodicJob]]:
    """Return seven jobs of several racks, some with a start, whose links contradict each other."""
    rng, jobs = np.random.default_rng(seed), []
    network = leaf_spine(4, 2, 4, bandwidth=50 * GBPS, oversubscription=2)
    for i in range(7):
        period = float(rng.choice([0.1, 0.12, 0.15, 0.1234]))
        phases = (JobPhase(0.0, float(rng.uniform(0.2, 0.5)) * period, float(rng.uniform(20, 50)) * GBPS),)
        jobs.append(PeriodicJob(f"j{i}", 4, period, phases, start=0.02 if seed % 2 and i == 3 else None))
    return Cluster(network, (network.kind == 0).astype(int) * 2), jobs


def ranked(monkeypatch: pytest.MonkeyPatch, seed: int, *, is_slow: bool) -> tuple[PlacementRanking, int]:
    """Return a ranking, and how many searches of single links it took."""
    searches, search, wishes = [], scores.best_shifts, evaluation._wishes

    def counted(*args):
        searches.append(args)
        return search(*args)

    def at_once(tight, scores, n_jobs):
        sought, period = wishes(tight, scores, n_jobs)
        return [Sought(one.jobs, one.shifts, one.is_held) for one in sought], period

    def anew(self, links):
        member = np.array(links.jobs, np.int64)
        key = tuple(self.ids[j] for j in links.jobs), links.part.tobytes()
        return KnownClass(links, key, member, float(links.part @ self.peak[member]) > 1 + 1e-9)

    def joined(self, classes):
        self._joined.clear()
        return tight(self, classes)

    tight = Scores.tight
    with monkeypatch.context() as changed:
        changed.setattr(scores, "best_shifts", counted)
        if is_slow:
            changed.setattr(evaluation, "_wishes", at_once)
            changed.setattr(Scores, "known", anew)
            changed.setattr(Scores, "tight", joined)
        cluster, jobs = drawn(seed)
        return place_jobs(cluster, jobs, n=4, generators=("spread", "random")), len(searches)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sought_late_changes_no_answer_and_less_is_sought(monkeypatch, seed) -> None:
    (fast, few), (slow, many) = (ranked(monkeypatch, seed, is_slow=how) for how in (False, True))
    assert any(one.inconsistency for one in fast.candidates)
    assert [dataclasses.asdict(one) for one in fast.candidates] == [dataclasses.asdict(one) for one in slow.candidates]
    assert few < 0.8 * many


def test_phases_that_jobs_achieve_on_the_links_of_a_placement_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were found anew each time that a candidate's start times were tried: 186 times for 80 lists of links."""
    found, worst = [], scores._worst_parts
    monkeypatch.setattr(scores, "_worst_parts", lambda n, classes, on: found.append(classes) or worst(n, classes, on))
    cluster, jobs = drawn(0)
    place_jobs(cluster, jobs, n=4)
    assert len(found) == len({id(classes) for classes in found}) > 4
