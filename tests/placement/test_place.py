"""Candidates are scored, ranked, and compared with simulations of the same jobs."""

import dataclasses
import json

import numpy as np
import pytest
from remark_codes import codes

from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.core.remark import Remark
from commsim.placement import evaluation
from commsim.placement.candidate import PlacementCandidate, simulated
from commsim.placement.cluster import Cluster
from commsim.placement.evaluation import evaluate, evaluate_all
from commsim.placement.place import place_jobs, rank_placements
from commsim.placement.ranking import PlacementRanking
from commsim.placement.ranking_remarks import agreement, disagreements, rank_correlation
from commsim.placement.scores import ScoreSettings
from commsim.placement.starts.link_scores import score_link
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(4, 1, 2, bandwidth=50 * GBPS)
CLUSTER = Cluster(NETWORK, np.where(NETWORK.kind == 0, 1, 0))


def job(name: str, *placement: str, period: float = 0.1, busy: float = 0.05, rate: float = 50.0) -> PeriodicJob:
    return PeriodicJob(name, len(placement), period, (JobPhase(period - busy, busy, rate * GBPS),), placement)


def homeless(one: PeriodicJob) -> PeriodicJob:
    return dataclasses.replace(one, placement=None)


# a and b share leaf0's and leaf1's cables to the spine, both ways
TWO = (job("a", "h0", "h2"), job("b", "h1", "h3"))


@pytest.mark.parametrize("check", [True, False])
def test_a_new_job_costs_itself_and_each_running_one_what_they_lose(check) -> None:
    running = [dataclasses.replace(one, start=0.0) for one in (job("a", "h0", "h2"), job("c", "h4", "h5"))]
    placed = {"beside": job("b", "h1", "h3", busy=0.08), "away": job("b", "h6", "h7", busy=0.08)}
    found = rank_placements(CLUSTER, {name: [*running, b] for name, b in placed.items()}, check=check, new=["b"])
    away, beside = (one.cost for one in found.candidates)
    assert (away["total"], away["own"], away["added"]) == (0.0, {"b": 1.0}, {})
    shared, period = found.candidates[1].predicted, 0.1
    assert list(beside["added"]) == ["a"]  # c is alone in its rack
    assert beside["added"]["a"] > 0.05
    assert beside["added"]["a"] == pytest.approx(shared["a"] / period - 1)
    assert beside["own"] == pytest.approx({"b": shared["b"] / period})
    assert beside["total"] == pytest.approx(beside["own"]["b"] - 1 + beside["added"]["a"])
    by_place = place_jobs(CLUSTER, [*running, homeless(placed["away"])], check=check, costs=True).candidates
    assert next(one.cost for one in by_place if one.placement["b"] == ("h6", "h7")) == away
    assert "cost" not in rank_placements(CLUSTER, {"x": running}).candidates[0].row()


def test_running_jobs_stay_where_they_are_beside_new_ones() -> None:
    placed = {"x": [job("a", "h0", "h2"), job("b", "h1", "h3")], "y": [job("a", "h4", "h5"), job("b", "h1", "h3")]}
    with pytest.raises(InputError, match="y: job a runs, as it is not new, and must stay where it is"):
        rank_placements(CLUSTER, placed, new=["b"])
    with pytest.raises(InputError, match="new: no job is named c"):
        rank_placements(CLUSTER, placed, new=["c"])


def test_a_step_that_one_circle_cannot_have_is_refused_before_any_search(monkeypatch) -> None:
    """`place rank --step 1us` searched other links for 19 s before it was refused."""

    def search(*_):
        raise AssertionError("a search before all circles were made")

    monkeypatch.setattr("commsim.placement.scores.best_shifts", search)
    slow = (job("c", "h4", "h6", period=2.0, busy=1.5), job("d", "h5", "h7", period=2.0, busy=1.5))
    with pytest.raises(InputError, match="a circle of 2 s has 2000000 steps of 1e-06 s"):
        evaluate(CLUSTER, (*TWO, *slow), settings=ScoreSettings(step=1e-6))


def test_two_equal_jobs_share_four_links_and_start_half_an_iteration_apart() -> None:
    found = evaluate(CLUSTER, TWO)
    assert [row.link for row in found.links] == ["leaf0:spine0", "leaf1:spine0", "spine0:leaf0", "spine0:leaf1"]
    assert {row.jobs for row in found.links} == {("a", "b")}
    assert found.score_mean == found.score_min == found.score_weighted == 1.0
    assert found.shifts == pytest.approx({"a": 0.0, "b": 0.05})
    assert found.predicted == pytest.approx({"a": 0.1, "b": 0.1})
    assert not found.has_loop
    assert found.inconsistency == 0.0


def test_by_the_literal_rule_these_four_links_are_a_loop_and_the_candidate_is_discarded() -> None:
    assert evaluate(CLUSTER, TWO, loops="literal").has_loop
    ranking = place_jobs(CLUSTER, TWO, loops="literal")
    assert not ranking.candidates
    assert len(ranking.discarded) == 1
    assert "1 of 1 candidates have a loop and are discarded" in str(ranking.remarks[0])


def test_without_contended_links_the_score_is_one() -> None:
    found = evaluate(CLUSTER, (job("a", "h0", "h1"), job("b", "h2", "h3"), job("c", "h4", "h4")))
    assert found.links == ()
    assert found.score_mean == found.score_min == found.score_weighted == 1.0


def test_links_that_carry_all_peaks_at_once_are_listed_but_bind_nothing() -> None:
    found = evaluate(CLUSTER, (job("a", "h0", "h2", rate=20), job("b", "h1", "h3", rate=20)))
    assert len(found.links) == 4
    assert found.score_min == 1.0
    assert found.shifts == {"a": 0.0, "b": 0.0}


def test_a_chain_of_jobs_gets_shifts_that_suit_both_links() -> None:
    chain = (job("a", "h0", "h2"), job("b", "h3", "h4", period=0.2, busy=0.1), job("c", "h5", "h6", busy=0.03))
    found = evaluate(CLUSTER, chain)
    assert not found.has_loop
    assert found.score_min == pytest.approx(evaluate(CLUSTER, chain[:2]).score_min, abs=1e-9)
    run = simulated(CLUSTER, chain, found)
    assert run.prediction == "simulation"


def test_a_loop_that_contradicts_itself_is_solved_together_and_measured() -> None:
    """Three jobs, each two of which share a rack's cables: half an iteration apart suits any two, but not all three."""
    three = (job("a", "h0", "h2"), job("b", "h3", "h4"), job("c", "h5", "h1"))
    found = evaluate(CLUSTER, three)
    assert found.has_loop
    assert found.inconsistency > 0.01
    pairs = [set(row.jobs) for row in found.links]
    assert all(pairs.count(pair) == 2 for pair in ({"a", "b"}, {"b", "c"}, {"a", "c"}))
    assert found.score_mean == pytest.approx((1 + 1 + 0.5) / 3, abs=0.01)  # two pairs fit, the third collides


def test_the_weighted_mean_counts_busy_links_more() -> None:
    rows = evaluate(CLUSTER, (job("a", "h0", "h2"), job("b", "h1", "h3"), job("c", "h0", "h2"))).links
    found = evaluate(CLUSTER, (job("a", "h0", "h2"), job("b", "h1", "h3"), job("c", "h0", "h2")))
    weights = np.array([row.demand for row in rows])
    scores = np.array([row.score for row in rows])
    assert found.score_weighted == pytest.approx(float(scores @ weights / weights.sum()))
    assert len({round(w) for w in weights}) > 1


def test_estimate_and_simulation_agree_where_nothing_drifts() -> None:
    overlapping = evaluate(CLUSTER, (job("a", "h0", "h2", busy=0.1), job("b", "h1", "h3", busy=0.1)))
    assert overlapping.score_min == pytest.approx(0.0)
    assert overlapping.predicted == pytest.approx({"a": 0.2, "b": 0.2})
    run = simulated(CLUSTER, (job("a", "h0", "h2", busy=0.1), job("b", "h1", "h3", busy=0.1)), overlapping)
    assert run.predicted == pytest.approx(dict(overlapping.predicted))


def test_a_phase_of_a_lower_rate_is_late_for_as_long_as_it_sends() -> None:
    """A phase at 25 of a job's 50 Gbit/s counted as half of the time in which it sends."""
    phases = (JobPhase(0.0, 0.04, 25 * GBPS), JobPhase(0.05, 0.01, 50 * GBPS))
    slow = [
        PeriodicJob(name, 2, 0.1, phases, placement, start=0.0) for name, placement in
        (("a", ("h0", "h2")), ("b", ("h1", "h3")), ("c", ("h0", "h3")))
    ]  # fmt: skip
    found = evaluate(CLUSTER, slow, settings=ScoreSettings(angles=100))
    run = simulated(CLUSTER, slow, found)
    assert found.predicted == pytest.approx(dict(run.predicted))
    assert found.predicted["a"] == pytest.approx(0.1 + 0.5 * 0.04 + 2 * 0.01)


def test_estimates_say_what_they_leave_out_and_simulations_do_not() -> None:
    jobs = [job("a", "h0", "h2", busy=0.1), job("b", "h1", "h3", busy=0.1)]
    by_check = {check: place_jobs(CLUSTER, jobs, check=check).remarks for check in (False, True)}
    assert "estimated" in [note.code for note in by_check[False]]
    assert "estimated" not in [note.code for note in (*by_check[True], *place_jobs(CLUSTER, TWO).remarks)]


def test_one_job_that_wants_more_than_a_link_has_is_slow_without_others() -> None:
    mixed = (job("a", "h0", "h2", "h1", "h3", rate=40),)  # crosses the only spine twice each way
    found = evaluate(CLUSTER, mixed)
    assert found.links == ()
    assert found.predicted["a"] == pytest.approx(0.1 + 0.05 * (80 / 50 - 1))
    assert simulated(CLUSTER, mixed, found).predicted["a"] == pytest.approx(found.predicted["a"])


def test_a_shift_of_half_an_iteration_restores_what_fair_sharing_halves() -> None:
    found = simulated(CLUSTER, TWO, evaluate(CLUSTER, TWO))
    assert found.predicted == pytest.approx({"a": 0.1, "b": 0.1})
    together = dataclasses.replace(evaluate(CLUSTER, TWO), shifts={"a": 0.0, "b": 0.0})
    assert simulated(CLUSTER, TWO, together).predicted == pytest.approx({"a": 0.15, "b": 0.15})


def test_candidates_come_best_first_and_every_number_is_finite() -> None:
    jobs = [homeless(one) for one in (*TWO, job("c", "h4", "h5", "h6", period=0.12))]
    ranking = place_jobs(CLUSTER, jobs, n=8, generators=("packed", "spread", "random", "themis"), check=True)
    slow = [round(candidate.slowdown, 4) for candidate in ranking.candidates]
    assert slow == sorted(slow)
    assert slow[0] == 1.0 < slow[-1]
    for candidate in ranking.candidates:
        row = candidate.row()
        assert row["prediction"] == "simulation"
        assert set(row["shifts_ms"]) == set(row["predicted_iteration_ms"]) == {"a", "b", "c"}
        assert all(0 <= row["shifts_ms"][one.name] < one.period * 1e3 for one in jobs)
    assert place_jobs(CLUSTER, jobs, n=8, generators=("packed", "spread", "random", "themis"), check=True) == ranking
    assert not hasattr(ranking, "notes")  # remarks are called remarks in every answer


def test_it_can_rank_by_the_worst_link() -> None:
    jobs = [homeless(job(f"j{i}", "h0", "h1", "h2", busy=0.04 + i / 100)) for i in range(2)]
    ranking = place_jobs(CLUSTER, jobs, generators=("random",), rank_by="min", settings=ScoreSettings(seed=3))
    scores = [candidate.score_min for candidate in ranking.candidates]
    assert scores == sorted(scores, reverse=True)


def test_of_equal_scores_the_one_with_fewer_contended_links_comes_first() -> None:
    # jobs that a shift keeps apart score 1 spread over the racks as they do packed into them
    jobs = tuple(homeless(one) for one in TWO)
    for generators in (("random", "packed"), ("packed", "random")):
        ranking = place_jobs(CLUSTER, jobs, generators=generators, n=20)
        contended = [len(c.links) for c in ranking.candidates if c.score_mean == 1.0]
        assert contended == sorted(contended)
        assert contended[0] == 0 < contended[-1]


def candidate(score: float, time: float) -> PlacementCandidate:
    base = evaluate(CLUSTER, TWO)
    links = tuple(dataclasses.replace(row, score=score) for row in base.links)
    return dataclasses.replace(base, links=links, predicted={"a": time, "b": time}, prediction="simulation")


def test_where_ranking_and_simulation_disagree_is_said_once() -> None:
    """A line for each pair of candidates was 25 lines."""
    ranked = [candidate(0.9, 0.13), candidate(0.8, 0.12), candidate(0.7, 0.11), candidate(0.6, 0.12)]
    (said,) = disagreements(ranked)
    assert said.text == "candidate 3 has the least simulated slow-down, 1.1; candidate 1 has 1.3"
    assert disagreements(ranked[2:]) == []


def test_sharing_more_links_makes_no_placement_better() -> None:
    """The mean of the scores put `far` first, since its links fit better than those on which a and b collide."""
    full = {"busy": 0.1, "rate": 26.0}
    running = [dataclasses.replace(one, start=0.0) for one in (*FULL_RACKS, job("d", "h4", "h6", **full))]
    placed = {"far": (*running, job("c", "h5", "h7", **full)), "near": (*running, job("c", "h5", "h5", **full))}
    cluster = dataclasses.replace(CLUSTER, gpus=2 * CLUSTER.gpus)
    for check in (False, True):
        ranking = rank_placements(cluster, placed, check=check)
        assert [one.generator for one in ranking.candidates] == ["near", "far"]
        assert "other-best" not in [note.code for note in ranking.remarks]
    by_mean = rank_placements(cluster, placed, rank_by="mean", check=True)
    assert [one.generator for one in by_mean.candidates] == ["far", "near"]
    assert "other-best" in codes(by_mean.remarks)


def test_an_estimate_is_no_less_than_what_a_job_loses_alone_in_its_place() -> None:
    """Slack of all phases together hid what one of them loses: 1.0000x was printed for 1.89x."""
    phases = (JobPhase(0.0, 0.02, 100 * GBPS, 0.05), JobPhase(0.07, 0.03, 100 * GBPS))
    alone = PeriodicJob("a", 2, 0.1, phases, ("h0", "h2"))
    (found,) = rank_placements(CLUSTER, {"far": (alone,)}).candidates
    assert (found.predicted["a"], found.alone["a"]) == pytest.approx((0.13, 0.13))
    assert simulated(CLUSTER, (alone,), found).predicted["a"] == pytest.approx(0.13)
    phases = tuple(dataclasses.replace(phase, rate=50 * GBPS) for phase in phases)
    two = [
        PeriodicJob(name, 2, 0.1, phases, at, 0.0) for name, at in (("a", ("h0", "h2")), ("b", ("h1", "h3")))
    ]  # fmt: skip
    ranking = rank_placements(CLUSTER, {"far": two}, settings=ScoreSettings(angles=100))
    assert ranking.candidates[0].alone == pytest.approx({"a": 0.1, "b": 0.1})
    assert ranking.candidates[0].predicted == pytest.approx({"a": 0.13, "b": 0.13})
    assert ranking.candidates[0].prediction == "simulation"
    without = rank_placements(CLUSTER, {"far": two}, settings=ScoreSettings(angles=100), check=False)
    assert without.candidates[0].predicted == pytest.approx({"a": 0.13, "b": 0.13})
    assert "estimated" in [note.code for note in without.remarks]


def test_an_estimate_is_no_less_than_the_bytes_of_a_link_need() -> None:
    """Bursts that are shorter than an angle looked as if they fitted beside each other."""
    bursts = tuple(JobPhase(0.01 * k, 0.001, 300 * GBPS, 0.009) for k in range(100))
    two = [PeriodicJob(name, 2, 1.0, bursts, at) for name, at in (("a", ("h0", "h2")), ("b", ("h1", "h3")))]
    light = PeriodicJob("c", 2, 1.0, (JobPhase(0.0, 0.01, 50 * GBPS),), ("h0", "h2"))
    found = evaluate(CLUSTER, (*two, light))
    assert found.predicted["a"] == found.predicted["b"] == pytest.approx(1.21, rel=1e-3)
    assert found.predicted["c"] == pytest.approx(1.02)  # a third of the link is enough for it


FULL_RACKS = (job("a", "h0", "h2", busy=0.1), job("b", "h1", "h3", busy=0.1))


FAST = dataclasses.replace(TWO[0], phases=(JobPhase(0.05, 0.05, 90 * GBPS),))


def test_a_link_that_one_job_overloads_alone_only_makes_its_phases_longer() -> None:
    found, on_its_own = evaluate(CLUSTER, (FAST,)), score_link([FAST], 50 * GBPS)
    assert (on_its_own.score, found.score_mean, found.links) == (1.0, 1.0, ())
    assert (found.alone["a"], on_its_own.alone[0]) == pytest.approx((0.14, 0.14))
    beside = evaluate(CLUSTER, (FAST, TWO[1]))
    assert {row.jobs for row in beside.links} == {("a", "b")}
    assert not beside.has_loop


def test_start_times_are_those_of_the_phases_that_the_uplink_delivers() -> None:
    """Starts for the phases of the NICs gave an estimate of 1.0000x, and 1.0661x when simulated."""
    cluster = Cluster(leaf_spine(2, 1, 4, bandwidth=100 * GBPS, uplink_bandwidth=50 * GBPS), [4] * 8 + [0] * 3)
    two = [
        PeriodicJob(name, 2, 0.25, (JobPhase(0.15, 0.09, 60 * GBPS),), at)
        for name, at in (("b", ("h0", "h4")), ("d", ("h1", "h5")))
    ]
    (found,) = rank_placements(cluster, {"far": two}).candidates
    assert found.windows["d"] == pytest.approx((0.108, 0.160))
    assert found.shifts["d"] == pytest.approx(0.134)
    assert found.slack("d") == pytest.approx(0.026)
    assert found.prediction == "simulation"
    assert found.predicted == pytest.approx({"b": 0.268, "d": 0.268})
    assert (found.slowdown, found.slowdown_estimated) == pytest.approx((1.0, 1.0))


def test_a_job_that_overloads_a_link_alone_is_named() -> None:
    (said,) = rank_placements(CLUSTER, {"far": (FAST,)}).remarks
    assert said.text == "candidate 1: job a alone needs 90 Gb/s (11.25 GB/s) of h0:leaf0 (50 Gb/s (6.25 GB/s))"
    assert (said.effect, said.needed) == (pytest.approx(0.8), True)
    assert rank_placements(CLUSTER, {"far": TWO[:1]}).remarks == ()
    places = {f"{i}": (dataclasses.replace(FAST, placement=("h0", f"h{i}")),) for i in range(2, 7)}
    (said,) = rank_placements(CLUSTER, places).remarks  # the same sentence stood there for each candidate
    assert said.text.startswith("candidates 1, 2, 3 and 2 more: job a alone needs 90 Gb/s")


def test_routes_are_walked_once_for_candidates_and_their_remarks(monkeypatch) -> None:
    calls = []
    walked = evaluation.job_uses
    monkeypatch.setattr(evaluation, "job_uses", lambda *args: calls.append(args) or walked(*args))
    unhashed = dataclasses.replace(CLUSTER, network=dataclasses.replace(NETWORK, routing="shortest"))
    assert rank_placements(unhashed, {"far": (FAST,), "near": (FAST,)}).remarks
    assert len(calls) == 1


TWO_SPINES = Cluster(leaf_spine(2, 2, 2, bandwidth=50 * GBPS), [1] * 4 + [0] * 4)
FULL = (job("a", "h0", "h2", busy=0.1), job("b", "h1", "h3", busy=0.1))
HALF = (job("a", "h0", "h2", busy=0.06), job("b", "h1", "h3", busy=0.07))


def test_scores_that_depend_on_the_hash_of_paths_are_said_to() -> None:
    """One seed gave 1.0 and another 0.8 for the same placement, without a word; now a range is."""
    ranking, seeds = rank_placements(TWO_SPINES, {"far": HALF}, rank_by="mean"), ScoreSettings().hash_seeds
    started = [dataclasses.replace(one, start=ranking.candidates[0].shifts[one.name]) for one in HALF]
    evaluated = [evaluate(TWO_SPINES, started, settings=ScoreSettings(seed=seed)) for seed in seeds]
    scores = [one.score_mean for one in evaluated]
    assert min(scores) < max(scores)
    said = ranking.remarks[-1].text
    assert f"candidate 1 has a score_mean of {min(scores):.4f} to {max(scores):.4f}" in said
    slow = [one.stretch for one in evaluated]
    told = rank_placements(TWO_SPINES, {"far": HALF}).remarks[-1]
    assert f"over 8 hashes of paths, candidate 1 has a stretch of {min(slow):.4f} to {max(slow):.4f}" in told.text
    assert told.effect == pytest.approx(max(slow) / min(slow) - 1)
    slow = [simulated(TWO_SPINES, HALF, one, seed=seed).stretch for seed, one in zip(seeds, evaluated, strict=True)]
    said = rank_placements(TWO_SPINES, {"far": HALF}, check=True).remarks[-1].text
    assert f"candidate 1 has a stretch of {min(slow):.4f} to {max(slow):.4f}" in said
    near = tuple(
        dataclasses.replace(one, placement=at) for one, at in zip(FULL, (("h0", "h1"), ("h2", "h3")), strict=True)
    )
    told = rank_placements(TWO_SPINES, {"near": near, "far": FULL}).remarks[-1]
    assert told.text.endswith("candidate 1 has a stretch of 1.0000")
    assert told.details == "jobs contend on other links in candidate 2"


def test_nothing_is_said_of_the_hash_where_paths_or_scores_do_not_depend_on_it() -> None:
    sprayed = dataclasses.replace(TWO_SPINES, network=dataclasses.replace(TWO_SPINES.network, routing="spray"))
    assert "hash" not in [note.code for note in rank_placements(sprayed, {"far": FULL}).remarks]
    idle = tuple(dataclasses.replace(one, phases=()) for one in FULL)
    assert rank_placements(TWO_SPINES, {"far": idle}).remarks == ()


def test_a_job_that_runs_keeps_its_start_and_the_others_are_placed_around_it() -> None:
    """A scheduler could not say that a job already runs: it was shifted like the others."""
    a, b = TWO
    found = evaluate(CLUSTER, (a, dataclasses.replace(b, start=0.03)), settings=ScoreSettings(angles=100))
    assert found.shifts == pytest.approx({"a": 0.08, "b": 0.03})
    assert found.score_mean == 1.0
    assert simulated(CLUSTER, TWO, found).predicted == pytest.approx({"a": 0.1, "b": 0.1})
    both = evaluate(CLUSTER, (dataclasses.replace(a, start=0.02), dataclasses.replace(b, start=0.03)))
    assert both.shifts == {"a": 0.02, "b": 0.03}
    assert both.score_mean == pytest.approx(1 - 0.4)  # they collide in 40 of 100 ms


@pytest.mark.parametrize("starts", [(0.0, 0.05), (0.02, 0.04), (0.09, 0.01)])
def test_a_job_between_two_that_run_gets_the_best_start_for_both_links(starts) -> None:
    a, b, c = job("a", "h0", "h2"), job("b", "h3", "h4", busy=0.03), job("c", "h5", "h1")
    a, c = (dataclasses.replace(one, start=at) for one, at in zip((a, c), starts, strict=True))
    found = evaluate(CLUSTER, (a, b, c), settings=ScoreSettings(angles=100))
    assert (found.shifts["a"], found.shifts["c"]) == starts
    fixed = (dataclasses.replace(b, start=k / 100 * 0.1) for k in range(100))
    best = max(evaluate(CLUSTER, (a, one, c), settings=ScoreSettings(angles=100)).score_mean for one in fixed)
    assert found.score_mean == pytest.approx(best)


def test_a_placement_that_was_given_is_not_named_after_a_strategy() -> None:
    (one,) = place_jobs(CLUSTER, TWO).candidates
    assert one.generator == "given"
    assert {one.generator for one in place_jobs(CLUSTER, (TWO[0], homeless(TWO[1]))).candidates} <= {
        "packed", "balanced", "spread", "random",
    }  # fmt: skip


def test_a_phase_that_goes_on_in_the_next_iteration_is_named() -> None:
    wrapping = dataclasses.replace(TWO[0], phases=(JobPhase(0.08, 0.05, GBPS),))
    assert rank_placements(CLUSTER, {"far": (wrapping,)}).remarks == (
        Remark("phase-goes-on", "a phase that ends after its iteration goes on in the next: a by 30 ms"),
    )


def test_phases_shorter_than_an_angle_are_put_beside_each_other() -> None:
    """Bursts of 5 ms collided within angles of 14 ms, and the score was 1.0; a shorter --step was needed."""
    bursts = tuple(JobPhase(0.02 * k, 0.005, 40 * GBPS) for k in range(50))
    a, b = (dataclasses.replace(one, period=1.0, phases=bursts) for one in TWO)
    together = evaluate(CLUSTER, [dataclasses.replace(one, start=0.0) for one in (a, b)])
    assert together.score_min == pytest.approx(1 - 0.25 * 30 / 50)
    ranking = rank_placements(CLUSTER, {"far": (a, b)})
    assert ranking.remarks == ()
    assert ranking.candidates[0].score_min == 1.0
    assert ranking.candidates[0].shifts["b"] % 0.02 == pytest.approx(0.01, abs=0.005 + 1e-12)


def test_of_more_than_two_jobs_phases_shorter_than_an_angle_are_named_with_a_step() -> None:
    bursts = tuple(JobPhase(0.02 * k, 0.005, 40 * GBPS) for k in range(50))
    three = [dataclasses.replace(one, period=1.0, phases=bursts) for one in (*TWO, job("c", "h0", "h3"))]
    two_each = dataclasses.replace(CLUSTER, gpus=2 * CLUSTER.gpus)
    (said,) = (note for note in rank_placements(two_each, {"far": three}).remarks if note.code == "phase-short")
    assert said.text.endswith("the shortest phase of a (5 ms), b (5 ms), c (5 ms): --step 5ms")


def test_rounded_periods_and_circles_that_were_cut_off_are_noted() -> None:
    odd = (job("a", "h0", "h2", period=0.2513), job("b", "h1", "h3", period=0.2391))
    notes = place_jobs(CLUSTER, odd).remarks
    assert any("iteration times rounded by up to 0.3 ms" in note.text for note in notes)
    assert "drifting" in [note.code for note in notes]


def test_names_that_are_unknown_are_refused() -> None:
    with pytest.raises(InputError, match="unknown rule for loops 'none'; known: merged, literal"):
        evaluate(CLUSTER, TWO, loops="none")
    with pytest.raises(InputError, match="unknown ranking 'max'"):
        place_jobs(CLUSTER, TWO, rank_by="max")
    with pytest.raises(InputError, match="at least one generator"):
        place_jobs(CLUSTER, TWO, generators=())
    with pytest.raises(InputError, match="job a has no placement"):
        evaluate(CLUSTER, (homeless(TWO[0]),))
    assert evaluate_all(CLUSTER, []) == []


def test_each_candidate_that_is_simulated_is_named_as_progress(monkeypatch) -> None:
    """`place rank --candidates 4000 --check` said nothing for more than 20 s."""
    parts = []

    def simulated_once(_cluster, _jobs, candidate, *, seed):
        parts.append(EXPECTED.part)
        return dataclasses.replace(candidate, prediction="simulation")

    monkeypatch.setattr("commsim.placement.finalists.simulated", simulated_once)
    ranking = place_jobs(CLUSTER, [homeless(one) for one in TWO], n=2, check=True)
    n = len(ranking.candidates)
    assert parts == [f"simulating candidate {i} of {n}" for i in range(1, n + 1)]
    assert EXPECTED.part == ""


def test_a_check_of_many_jobs_declares_its_time_before_it_simulates(monkeypatch) -> None:
    told = []

    def simulate(_cluster, _jobs, candidate, **_):
        told.append((EXPECTED.part, EXPECTED.what, EXPECTED.seconds))
        return candidate

    monkeypatch.setattr("commsim.placement.finalists.simulated", simulate)
    idle = [dataclasses.replace(homeless(job(f"j{i}", "h0", "h1")), n_gpus=1) for i in range(4)]
    place_jobs(CLUSTER, idle, n=2, check=True)
    assert [part for part, _, _ in told] == ["simulating candidate 1 of 2", "simulating candidate 2 of 2"]
    assert [what for _, what, _ in told] == ["4 jobs in 2 candidates", "4 jobs in 1 candidate"]
    assert told[0][2] == pytest.approx(2 * told[1][2])
    monkeypatch.setenv("COMMSIM_MAX_SECONDS", "1e-9")
    with pytest.raises(InputError, match=r"4 jobs in 2 candidates would take about .* fewer --candidates"):
        place_jobs(CLUSTER, idle, n=2, check=True)


@pytest.mark.parametrize(
    ("estimates", "simulations"),
    [
        ([1.0, 1.1, 1.2, 1.3], [1.0, 1.2, 1.1, 1.3]),
        ([1.0, 1.0, 1.2, 1.3], [2, 1, 1, 0.5]),
        ([1, 2, 3, 4, 4], [1] * 3 + [2] * 2),
    ],
)
def test_a_rank_correlation_is_spearmans_with_ties(estimates, simulations):
    expected = pytest.importorskip("scipy.stats").spearmanr(estimates, simulations).statistic
    assert rank_correlation(estimates, simulations) == pytest.approx(expected)


def test_no_rank_correlation_is_said_of_few_or_equal_values():
    assert rank_correlation([1, 2, 3], [1, 2, 3]) is None
    assert rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]) is None
    assert rank_correlation([1, 2, 3, 4], [1.00001, 1.00002, 1.00003, 1.00004]) is None  # equal as printed


def test_the_number_of_candidates_has_the_name_of_the_flag_too() -> None:
    assert place_jobs(CLUSTER, [homeless(one) for one in HALF], candidates=3) == place_jobs(
        CLUSTER, [homeless(one) for one in HALF], n=3
    )
    with pytest.raises(InputError, match="two names of one number, got n=2 and candidates=3"):
        place_jobs(CLUSTER, [homeless(one) for one in HALF], n=2, candidates=3)


def test_a_ranking_is_the_json_of_the_verb() -> None:
    ranking = place_jobs(CLUSTER, [homeless(one) for one in HALF], n=2)
    tree = ranking.to_dict()
    assert json.loads(json.dumps(tree)) == tree
    assert tree["candidates"] == [one.row() for one in ranking.candidates]
    assert (tree["notes"], tree["rank_correlation"]) == ([str(one) for one in ranking.remarks], None)
    assert (tree["schema"], tree["remarks"]) == (1, [one.tree() for one in ranking.remarks])


def test_a_printed_ranking_has_the_stretch_that_orders_it() -> None:
    """A candidate in which a job is slow alone was printed last with a slowdown of 1.0000x, below 1.06x."""
    found = dataclasses.replace(evaluate(CLUSTER, TWO), periods={"a": 0.1, "b": 0.1}, predicted={"a": 0.12, "b": 0.1})
    shown = str(PlacementRanking((dataclasses.replace(found, alone=found.predicted),), (), ()))
    assert "1: slowdown 1.0000x, stretch 1.1000x, score" in shown
    assert "stretch" not in str(
        PlacementRanking((dataclasses.replace(found, predicted=found.periods, alone=found.periods),), (), ())
    )


def test_one_candidate_that_differs_is_said_of_whom() -> None:
    """One has no rank correlation, so that the remark began with "they differ"."""
    found = evaluate(CLUSTER, TWO)
    later = {name: 1.1 * seconds for name, seconds in found.predicted.items()}
    simulated_one = dataclasses.replace(found, predicted=later, prediction="simulation")
    (said,) = agreement([simulated_one])
    assert said.text == "simulated slow-downs differ by more than 1 % in candidate 1: +10.0 %"
    assert said.effect == pytest.approx(0.1)
