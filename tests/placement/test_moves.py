"""Moves: which running job to place again, so that the jobs lose less to each other."""

from dataclasses import replace

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.placement import moves
from commsim.placement.moves import rank_moves

CLUSTER = {
    "topology": {"spec": "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=50Gbps"},
    "hosts": {"gpus": 2},
}


def job(name, *hosts, up=80, rate=40, **more):
    phases = [{"offset_ms": 0, "dur_ms": up, "rate_Gbps": rate}]
    return {"job": name, "gpus": len(hosts), "iter_time_ms": 100, "phases": phases, "placement": [*hosts], **more}


def test_the_move_that_gains_most_comes_first_and_what_should_stay_stays():
    apart, near = job("apart", "h0", "h4"), job("near", "h2", "h2", rate=1)
    found = rank_moves(CLUSTER, [near, apart, job("wide", "h0", "h4")], check=True)
    assert [one.job for one in found.moves] == ["apart", "wide", "near"]
    first, _, last = found.moves
    assert first.gain == pytest.approx(first.now.slowdown - 1)
    assert first.gain > 0.05
    assert first.others[1] == pytest.approx(1.0)
    assert first.others[0] > 1.01
    assert len(set(first.after.placement["apart"])) == 1
    assert (last.gain, last.after) == (0.0, last.now)
    # what is said of after is what a ranking of that placement by itself says
    jobs = [
        replace(one, placement=first.after.placement[one.name])
        for one in cs.read_jobs([near, apart, job("wide", "h0", "h4")])
    ]
    (same,) = cs.rank_placements(CLUSTER, {"after": jobs}, check=True).candidates
    assert same.slowdown == pytest.approx(first.after.slowdown)


def test_others_stay_where_and_when_they_run():
    jobs = [job("a", "h0", "h4", start_ms=20), job("b", "h0", "h4", start_ms=20), job("c", "h5", "h5")]
    found = rank_moves(CLUSTER, jobs)
    for move in found.moves:
        for one in jobs:
            if one["job"] != move.job:
                assert [*move.after.placement[one["job"]]] == one["placement"]
                if "start_ms" in one:
                    assert move.after.shifts[one["job"]] == pytest.approx(0.02)


def test_jobs_that_do_not_run_are_left_out_and_named():
    waiting = {key: value for key, value in job("w", "h0").items() if key != "placement"}
    found = rank_moves(CLUSTER, [job("a", "h0", "h1"), waiting])
    assert [one.job for one in found.moves] == ["a"]
    assert found.remarks[0].text == "1 job without a placement left out: w"
    assert str(found).splitlines()[0] == "a: stretch 1.0000x now, 1.0000x after, from h0-1: stays"
    assert list(found.to_frame("pandas")["gain"]) == [0.0]
    with pytest.raises(InputError, match="no job has a placement, so none can be moved"):
        rank_moves(CLUSTER, [waiting])


def test_the_moves_that_a_failed_host_forces_come_first_with_what_the_others_lose_by_them():
    """Python had no `fail`, and the value before the failure, which tells what the move costs others, was not given."""
    jobs = [job("a", "h0", "h1"), job("b", "h2", "h4"), job("c", "h3", "h5")]
    cluster = CLUSTER | {"hosts": {"gpus": 1}}
    found = rank_moves(cluster, jobs, fail=["host:h1"])
    (forced,) = found.forced
    assert (forced.job, forced.now, forced.after[0]) == ("a", ("h0", "h1"), "h0")
    assert forced.after[1] in ("h6", "h7")  # what is left is in the other rack, beside the traffic of b and c
    alone = rank_moves(cluster, jobs)
    assert found.before.predicted == alone.moves[0].now.predicted
    now = found.moves[0].now
    assert now.placement["a"] == forced.after
    assert now.stretch > found.before.stretch
    told = str(found).splitlines()
    assert told[0] == f"# job a has to be moved: h0 {forced.after[1]}"
    assert f"{found.before.stretch:.4f}x" in told[1]
    assert f"{now.stretch:.4f}x" in told[1]
    placed = cs.place_jobs(cluster, jobs, fail=["host:h1"])
    assert placed.candidates[0].placement["a"] == forced.after
    assert placed.remarks[0].text.startswith("job a is moved off hosts that failed, h1")
    with pytest.raises(InputError, match=r"fail must be a list such as \['host:h2'\]"):
        cs.place_jobs(cluster, jobs, fail="host:h1")


def test_without_room_for_a_job_whose_host_failed_it_and_its_host_are_named():
    jobs = [job("a", "h0", "h1"), job("b", "h2", "h3", "h4", "h5", "h6", "h7")]
    full = CLUSTER | {"hosts": {"gpus": 1}}
    with pytest.raises(InputError, match=r"failed need 1 other GPU, and 0 are free: a \(h1\)"):
        cs.place_jobs(full, jobs, fail=["host:h1"])
    waiting = [{key: value for key, value in job(name, "h0", "h1").items() if key != "placement"} for name in "cd"]
    with pytest.raises(InputError, match=r"not placed \(c, d\) need 4 GPUs, and 0 are free"):
        cs.place_jobs(full, [*jobs, *waiting])


def test_places_are_sought_only_for_jobs_whose_move_can_gain(monkeypatch) -> None:
    """25 jobs that lose nothing took 7 s: ten places were scored for each."""
    sought: list[object] = []
    monkeypatch.setattr(moves, "place_jobs", lambda *args, **how: sought.append(args) or cs.place_jobs(*args, **how))
    found = rank_moves(CLUSTER, [job("a", "h0", "h1"), job("b", "h2", "h3")])
    assert [one.to() for one in found.moves] == ["stays", "stays"]
    assert not sought
    # near loses nothing, and its move frees the cable of neither; wide alone asks more than the uplink has
    found = rank_moves(CLUSTER, [job("near", "h2", "h2"), job("wide", "h0", "h4", rate=60)])
    assert len(sought) == 1
    assert [one.job for one in found.moves if one.gain] == ["wide"]


def test_a_switch_stands_for_the_hosts_that_are_cabled_to_it() -> None:
    """It was refused: firmware of a leaf needed the names of its hosts."""
    jobs = [job("a", "h0", "h1"), job("b", "h2", "h6")]
    of_switch, of_hosts = (rank_moves(CLUSTER, jobs, drain=[what]) for what in ("leaf0", "h[0-3]"))
    assert [one.after for one in of_switch.forced] == [one.after for one in of_hosts.forced]
    assert not {"h0", "h1", "h2", "h3"} & {host for one in of_switch.forced for host in one.after}
    with pytest.raises(
        InputError, match="no cable from a host to switch 'spine0' to drain; leaf0 stands for the hosts"
    ):
        rank_moves(CLUSTER, jobs, drain=["spine0"])
    rails = {"topology": {"spec": "dgx-h100@rail_optimized:machines=4,hosts_per_group=2"}}
    with pytest.raises(InputError, match=r"has no host 'm0\.gpu0' to drain"):
        rank_moves(rails, [job("a", "m0.gpu0", "m1.gpu0")], drain=["m0.gpu0"])


def test_drained_hosts_are_freed_and_other_ranks_stay() -> None:
    jobs = [job("a", "h0", "h1"), job("b", "h2", "h3")]
    found = rank_moves(CLUSTER, jobs, drain=["h1", "h5"], restart=90.0)
    (forced,) = found.forced
    assert (forced.job, forced.after[0]) == ("a", "h0")
    assert not {"h1", "h5"} & set(forced.after)
    assert "stopped: 1 job for 90 s, 180 GPU-seconds together (--restart)" in str(found)
    assert "x with this move\n" in str(found)  # of one job, of which there were "these moves" with a restart
    with pytest.raises(InputError, match="no host 'h9' to drain"):
        rank_moves(CLUSTER, jobs, drain=["h9"])
    assert rank_moves(CLUSTER, jobs, drain=["h[1,5]"]).forced[0].after == forced.after
    with pytest.raises(InputError, match="no host 'h8' to drain"):
        rank_moves(CLUSTER, jobs, drain=["h5-8"])
    placed = cs.place_jobs(CLUSTER, jobs, drain=["h1", "h5"])
    assert placed.candidates[0].placement["a"] == forced.after
    assert placed.remarks[0].text == "job a is moved off hosts that are drained, h1; its other ranks stay"


def test_a_job_that_is_moved_off_a_drained_host_may_start_at_any_time() -> None:
    """It kept its start, at which it met another job, though one off a failed host did not."""
    jobs = [job("a", "h0", "h4", up=40, start_ms=0), job("b", "h1", "h5", up=40, start_ms=0)]
    one_gpu = CLUSTER | {"hosts": {"gpus": 1}}
    for how in ({"fail": ["host:h0"]}, {"drain": ["h0"]}):
        found = rank_moves(one_gpu, jobs, **how)
        assert found.moves[0].now.stretch == pytest.approx(1.0)


def test_a_job_that_would_start_at_another_time_on_its_hosts_stays() -> None:
    """The table said that it moves from its hosts to the same ones."""
    jobs = [job("a", "h0", "h4", up=40, start_ms=0), job("b", *["h1", "h2", "h3", "h5", "h6", "h7"], up=40, start_ms=0)]
    first = rank_moves(CLUSTER | {"hosts": {"gpus": 1}}, jobs).moves[0]
    assert first.gain > 0.1
    assert first.after.placement == first.now.placement
    assert first.to() == f"stays, starts at {first.after.shifts[first.job] * 1e3:.3f} ms"


def test_a_move_has_paid_when_what_all_gained_is_what_the_moved_job_lost() -> None:
    found = rank_moves(CLUSTER, [job("a", "h0", "h4"), job("b", "h1", "h5")], check=True, restart=60.0)
    first = found.moves[0]
    slow = first.now.predicted["a"] / 0.1
    assert first.pays_after(60.0) == pytest.approx(60.0 / (2 - 2 / slow), rel=1e-6)
    assert found.moves[-1].pays_after(0.0) is None or not found.moves[-1].pays_after(0.0)
    assert not any(remark.code == "restart-left-out" for remark in found.remarks)


def test_only_jobs_that_are_asked_for_are_placed_again(monkeypatch):
    """All were, also where a request named one: of 130 running jobs that was refused as too much work."""
    jobs = [job("near", "h2", "h2", rate=1), job("apart", "h0", "h4"), job("wide", "h0", "h4")]
    asked = []
    monkeypatch.setattr(moves, "place_jobs", lambda *given, **how: asked.append(given) or cs.place_jobs(*given, **how))
    assert [one.job for one in rank_moves(CLUSTER, jobs, only=["wide"]).moves] == ["wide"]
    assert len(asked) == 1
    assert {one.job for one in rank_moves(CLUSTER, jobs, most=2).moves} == {"apart", "wide"}
    with pytest.raises(InputError, match="job 'b' does not run here, so it cannot be moved; known: near, apart, wide"):
        rank_moves(CLUSTER, jobs, only=["b"])
    with pytest.raises(InputError, match="most is a number of jobs of 1 or more, got 0"):
        rank_moves(CLUSTER, jobs, most=0)


def test_a_job_that_could_gain_nowhere_stays():
    """It said "none of 0 tried is better" where only another job is slow."""
    found = rank_moves(CLUSTER, [job("a", "h0", "h1"), job("b", "h2", "h3")], scale=["link:h0:leaf0=0.25"])
    assert [(one.job, one.n_tried > 0) for one in found.moves] == [("a", True), ("b", False)]
    assert found.moves[1].now.stretch > 1.2
    assert found.moves[1].to() == "stays"
