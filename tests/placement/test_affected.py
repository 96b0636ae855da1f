"""Running jobs on failed links are named with what they lose, and one that is cut off with its hosts."""

import dataclasses

import pytest

from commsim.core.errors import InputError
from commsim.placement.affected import affected, after_faults
from commsim.placement.cluster import Cluster, on_network
from commsim.placement.moves import rank_moves
from commsim.placement.place import place_jobs
from commsim.placement.scores import ScoreSettings
from commsim.prediction.faults import with_faults
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 2, 4, bandwidth=50 * GBPS)
CLUSTER = Cluster(NETWORK, (NETWORK.kind == 0).astype(int))


def job(name: str, *placement: str) -> PeriodicJob:
    return PeriodicJob(name, len(placement), 0.1, (JobPhase(0.02, 0.08, 50 * GBPS),), placement, start=0.0)


FAR, NEAR = job("far", "h0", "h4"), job("near", "h1", "h2")


def without(*faults: str, scale: tuple[str, ...] = ()) -> Cluster:
    return on_network(CLUSTER, with_faults(NETWORK, faults, scale, 0)[0])[0]


def test_the_job_over_a_slower_link_is_named_with_its_slowdown() -> None:
    (said,) = affected(CLUSTER, without(scale=("link:leaf0:spine*=0.5",)), (FAR, NEAR), ScoreSettings())
    assert "far (1.0000x before, 1.8000x after)" in said.text
    assert "near" not in said.text
    assert said.effect == pytest.approx(0.8, rel=1e-3)


def test_what_a_dead_spine_costs_does_not_depend_on_one_hash() -> None:
    """Two jobs share a spine one way or the other with three of four hashes; one hash said 1.0 for some seeds."""
    both = (job("a", "h0", "h4"), job("b", "h1", "h5"))
    (said,), *others = (
        affected(CLUSTER, without("switch:spine1"), both, ScoreSettings(seed=seed)) for seed in range(9)
    )
    assert said.details.endswith("a (1.8000x before, 1.8000x after), b (1.8000x before, 1.8000x after)")
    assert {one.details for (one,) in others} == {said.details}


def test_nothing_is_said_where_no_placed_job_sends_over_what_failed() -> None:
    waiting = dataclasses.replace(FAR, placement=None)
    assert affected(CLUSTER, without("link:leaf0:spine0"), (NEAR, waiting), ScoreSettings()) == []
    assert affected(CLUSTER, without("link:leaf0:spine0"), (waiting,), ScoreSettings()) == []


def test_a_job_that_is_cut_off_is_named_with_its_hosts() -> None:
    """The error said only that there is no path from h4 to h0."""
    with pytest.raises(
        InputError, match="without its placement it is moved; h0 cannot be reached: --fail host:h0 moves"
    ):
        affected(CLUSTER, without("switch:leaf0"), (FAR, NEAR), ScoreSettings())


def test_a_job_on_a_host_that_failed_is_placed_again_and_its_other_ranks_stay() -> None:
    """Nothing could say that a host fails; without its link, the job was only cut off."""
    wide = job("wide", "h0", "h1", "h2", "h3")
    cluster, (moved, other), said = after_faults(CLUSTER, (wide, job("b", "h5")), ["host:h1"], (), ScoreSettings())
    assert (other.placement, other.start) == (("h5",), 0.0)
    assert (moved.placement, moved.start) == (None, None)
    assert "job wide is moved off hosts that failed, h1; its other ranks stay" in [one.text for one in said]
    for one in place_jobs(cluster, (moved, other)).candidates:
        first, second, *rest = one.placement["wide"]
        assert (first, *rest) == ("h0", "h2", "h3")
        assert second in {"h4", "h6", "h7"}


def test_of_two_hosts_the_one_that_failed_is_the_one_cut_off() -> None:
    two = leaf_spine(1, 1, 2)
    cluster = Cluster(two, (two.kind == 0).astype(int))
    after, (moved,), _ = after_faults(cluster, [job("a", "h0")], ["host:h0"], (), ScoreSettings())
    assert place_jobs(after, [moved]).candidates[0].placement["a"] == ("h1",)


def test_every_job_behind_a_dead_leaf_is_moved_and_named() -> None:
    """A job inside of one host stayed behind the dead leaf, and `moves` said that it stays."""
    cluster = {"topology": {"spec": "leaf_spine:n_leaves=3,n_spines=1,hosts_per_leaf=2"}, "hosts": {"gpus": 2}}
    jobs = [job("a", "h2", "h2"), job("b", "h3", "h4"), job("c", "h5", "h5")]
    moved = place_jobs(cluster, jobs, fail=["switch:leaf1"])
    placement = moved.candidates[0].placement
    assert not {"h2", "h3"} & {*placement["a"], *placement["b"]}
    assert (placement["b"][1], placement["c"]) == ("h4", ("h5", "h5"))
    said = " ".join(map(str, moved.remarks))
    assert "jobs are moved off hosts that are cut off: a (h2x2), b (h3; its other ranks stay)" in said
    forced = rank_moves(cluster, jobs, fail=["switch:leaf1"]).forced
    assert [one.job for one in forced] == ["a", "b"]
