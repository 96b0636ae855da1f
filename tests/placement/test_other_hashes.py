"""Start times that hold with the worst of the hashes that choose paths."""

import dataclasses

import numpy as np
import pytest

from commsim.placement import evaluation
from commsim.placement.cluster import Cluster
from commsim.placement.evaluation import evaluate, evaluate_placed, inconsistency_of, links_of_jobs, shifts_of
from commsim.placement.place import place_jobs, rank_placements
from commsim.placement.scores import Scores, ScoreSettings
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

TWO_SPINES = Cluster(leaf_spine(2, 2, 2, bandwidth=50 * GBPS), [1] * 4 + [0] * 4)


def job(name: str, busy: float, *placement: str) -> PeriodicJob:
    return PeriodicJob(name, len(placement), 0.1, (JobPhase(0.0, busy, 50 * GBPS),), placement)


PAIR = (job("a", 0.043, "h0", "h2"), job("b", 0.057, "h1", "h3"))


def worst_of(cluster: Cluster, jobs: list[PeriodicJob], shifts: dict[str, float]) -> float:
    started = [dataclasses.replace(one, start=shifts[one.name] % one.period) for one in jobs]
    return max(
        evaluate(cluster, started, settings=ScoreSettings(seed=seed)).slowdown for seed in ScoreSettings().hash_seeds
    )


@pytest.mark.parametrize("seed", range(6))
def test_jobs_that_meet_with_another_hash_only_are_kept_apart(seed: int) -> None:
    """With a seed that sent them over different spines both started at 0, and lost 1.43 times with other seeds."""
    (found,) = rank_placements(TWO_SPINES, {"far": PAIR}, settings=ScoreSettings(seed=seed)).candidates
    assert (found.slowdown, found.slowdown_worst) == pytest.approx((1.0, 1.0))
    assert found.shifts == pytest.approx({"a": 0.0, "b": 0.043})


def drawn(seed: int) -> tuple[Cluster, list[PeriodicJob]]:
    rng, jobs = np.random.default_rng(seed), []
    network = leaf_spine(2, 2, 4, bandwidth=50 * GBPS)
    for i in range(3):
        phases = (JobPhase(0.0, float(rng.uniform(0.02, 0.045)), float(rng.uniform(20, 50)) * GBPS),)
        jobs.append(PeriodicJob(f"j{i}", 2, 0.1, phases, (f"h{i}", f"h{4 + i}")))
    return Cluster(network, (network.kind == 0).astype(int)), jobs


def test_start_times_are_never_worse_with_the_worst_hash_than_those_for_one() -> None:
    n_better = 0
    for seed in range(20):
        cluster, jobs = drawn(seed)
        (found,) = rank_placements(cluster, {"own": jobs}).candidates
        after, before = (worst_of(cluster, jobs, one.shifts) for one in (found, evaluate(cluster, jobs)))
        assert after == pytest.approx(found.slowdown_worst, abs=1e-4)
        assert after <= before + 1e-4
        n_better += after < before - 0.01
    assert n_better >= 4


def test_the_literal_rule_keeps_the_shifts_of_the_paper_and_jobs_that_run_theirs() -> None:
    running = (dataclasses.replace(PAIR[0], start=0.03), PAIR[1])
    for seed in range(5):
        one = ScoreSettings(seed=seed)
        literal = rank_placements(TWO_SPINES, {"far": PAIR}, loops="literal", settings=one)
        (found,) = (*literal.candidates, *literal.discarded)
        assert found.shifts == evaluate(TWO_SPINES, PAIR, loops="literal", settings=one).shifts
        (found,) = rank_placements(TWO_SPINES, {"far": running}, settings=one).candidates
        assert found.shifts == pytest.approx({"a": 0.03, "b": 0.073})


def test_paths_are_walked_once_for_each_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks and the remark on the best candidate walked them anew: nine times in all."""
    calls, walked = [], evaluation.job_uses
    monkeypatch.setattr(evaluation, "job_uses", lambda *args: calls.append(args[2]) or walked(*args))
    jobs = [dataclasses.replace(one, placement=None) for one in PAIR]
    assert any("hash" in note for note in map(str, place_jobs(TWO_SPINES, jobs, generators=("spread",)).remarks))
    assert calls == list(ScoreSettings().hash_seeds)


def looped() -> tuple[Cluster, list[PeriodicJob]]:
    """Return five jobs of three racks, whose links contradict each other."""
    rng, jobs = np.random.default_rng(3), []
    network = leaf_spine(3, 2, 4, bandwidth=50 * GBPS, oversubscription=2)
    for i, period in enumerate((0.1, 0.12, 0.15, 0.1, 0.2)):
        phases = (JobPhase(0.0, float(rng.uniform(0.3, 0.5)) * period, 40 * GBPS),)
        jobs.append(PeriodicJob(f"j{i}", 4, period, phases))
    return Cluster(network, (network.kind == 0).astype(int) * 2), jobs


def test_what_a_link_would_choose_is_not_sought_where_the_starts_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was, for each of all hashes and placements, also of those that are left out; 28 % of the time of ten."""
    cluster, jobs = looped()
    placed = place_jobs(cluster, jobs, n=1, generators=("spread",)).candidates[0].placement
    jobs = [dataclasses.replace(one, placement=placed[one.name]) for one in jobs]
    found = evaluate(cluster, jobs)
    assert found.has_loop
    assert found.inconsistency
    scores = Scores(jobs, ScoreSettings())
    (classes,) = links_of_jobs(cluster, [("given", jobs)], 0, scores)[1]
    shifts = shifts_of(found, jobs)
    with monkeypatch.context() as changed:
        changed.setattr(Scores, "shifts", None)
        at = evaluate_placed(cluster, "given", jobs, classes, scores, "merged", shifts)
    assert at == dataclasses.replace(found, inconsistency=None)
    assert inconsistency_of(at, jobs, classes, scores) == found.inconsistency
    assert inconsistency_of(found, jobs, classes, None) == found.inconsistency


def test_candidates_that_are_left_have_an_inconsistency() -> None:
    cluster, jobs = looped()
    for rank_by in ("stretch", "min"):
        ranking = place_jobs(cluster, jobs, n=4, generators=("spread", "random"), rank_by=rank_by)
        away = [one.inconsistency for one in ranking.candidates]
        assert None not in away
        assert any(away)
