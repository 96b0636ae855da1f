import pytest
from place_service import pod, row, small_cluster
from pydantic import ValidationError

from commsim.core.errors import InputError
from commsim.placement.service.answers import HostPriority
from commsim.placement.service.guard import Refusal
from commsim.placement.service.limits import MAX_GPUS_OF_POD
from commsim.placement.service.models import Pod
from commsim.placement.service.pod_jobs import gpus_of_pod
from commsim.placement.service.rating import MAX_POINTS, Rater
from commsim.placement.service.state import ClusterState, JobRecord, read_known_jobs
from commsim.placement.starts.link_scores import score_link


def known(*rows):
    return read_known_jobs(list(rows), "test") if rows else []


def rated(state, asked, pod_gpus=1):
    return Rater(state).rate(asked, pod_gpus)


def state_with(*rows, **cluster):
    state = ClusterState(small_cluster(**cluster))
    state.put(known(*rows))
    return state


def test_an_empty_cluster_likes_every_host_best():
    (asked,) = known(row(gpus=4))
    ratings = rated(state_with(), asked)
    assert len(ratings) == 12
    assert {(r.points, r.n_free, r.worst, r.is_local) for r in ratings.values()} == {(10, 2, 1.0, True)}


def test_hosts_behind_a_link_that_is_full_get_fewer_points():
    # The running job goes from rack 0 to rack 1; 8 GPUs of the new one fill rack 2, but no longer racks 0 and 1.
    running = row("old", 4, placement=["h0", "h0", "h4", "h4"], up=200.0)
    state = state_with(running)
    (asked,) = known(row(gpus=8, up=200.0))
    ratings = rated(state, asked, 2)
    assert ratings["h8"].points == 10
    assert ratings["h1"].points < ratings["h8"].points
    jobs = [asked.job, state.jobs["old"].job]
    assert ratings["h1"].worst == pytest.approx(score_link(jobs, 6.25e9).score) == pytest.approx(0.4)
    assert ratings["h1"].worst_link in {"leaf0:spine0", "spine0:leaf0", "leaf1:spine0", "spine0:leaf1"}
    assert not ratings["h1"].is_local
    assert (ratings["h0"].n_free, ratings["h0"].points) == (0, 0)


def test_links_on_which_jobs_fit_do_not_hide_a_full_one():
    # Beside the second job more links are shared, which carry both.
    full = row("old", 4, placement=["h0", "h0", "h4", "h4"], up=200.0)
    fits = row("fits", 2, placement=["h2", "h3"], rate=1.0)
    (asked,) = known(row(gpus=8, up=200.0))
    alone, beside = (rated(state_with(*rows), asked, 2)["h1"] for rows in ((full,), (full, fits)))
    assert beside.worst < 0.5
    assert beside.points <= alone.points == round(9 * alone.worst)


def test_jobs_that_take_turns_on_a_link_are_as_good_as_alone():
    running = row("old", 4, placement=["h0", "h0", "h4", "h4"])
    (asked,) = known(row(gpus=8))
    rating = rated(state_with(running), asked, 2)["h1"]
    assert rating.worst == pytest.approx(1.0)
    assert rating.points == 9


def test_a_job_that_would_overload_a_link_alone_is_rated_as_placements_are_scored():
    (asked,) = known(row(gpus=4, rate=70.0))
    rating = rated(state_with(), asked, 2)["h0"]  # two hosts of one rack, at 70 Gb/s on cables of 50
    assert rating.worst == pytest.approx(asked.job.period / score_link([asked.job], 6.25e9).alone[0])
    assert rating.worst < 1
    assert rating.worst_link.startswith(("h0:", "leaf0:", "h1:"))


def test_the_job_s_pods_so_far_count():
    state = state_with()
    (near,) = known(row(gpus=4, placed=["h0", "h0"]))
    ratings = rated(state, near, 2)
    assert ratings["h1"].is_local
    assert not ratings["h8"].is_local
    assert ratings["h0"].n_free == 0


def test_ratings_are_those_of_every_host_by_itself():
    rows = [row("a", 4, placement=["h0", "h1", "h4", "h5"], up=150), row("b", 3, placement=["h2", "h8", "h8"], up=180)]
    state = state_with(*rows)
    (asked,) = known(row(gpus=6, up=120))
    rater = Rater(state)
    together = rater.rate(asked, 1)
    rater._kinds = lambda _, free, n: {host: host for host, seats in free.items() if len(seats) >= n}
    alone = rater.rate(asked, 1)
    assert together == alone
    assert len({r.points for r in alone.values()}) > 1


def test_jobs_are_where_the_cluster_has_room():
    state = state_with(row("old", 2, placement=["h0", "h0"]))
    for wrong, status, message in [
        (row("x", 1, placement=["h0"]), 409, "takes 1 GPU of h0, which has 2, 2 of them taken"),
        (row("x", 1, placement=["leaf0"]), 400, "'leaf0', which has no GPUs here"),
        (row("x", 3, placement=["h1"] * 3), 409, "takes 3 GPUs of h1, which has 2, 0 of them"),
    ]:
        with pytest.raises(Refusal, match=message) as caught:
            state.put(known(wrong))
        assert caught.value.status == status
    state.put(known(row("old", 2, placement=["h0", "h1"])))  # the same job elsewhere
    assert state.free("")["h0"] == ["h0"]
    state.remove("old")
    with pytest.raises(Refusal, match="not known"):
        state.remove("old")
    assert state.free("")["h0"] == ["h0", "h0"]


def test_a_job_of_which_a_part_is_placed_uses_the_links_of_that_part():
    state = ClusterState(small_cluster())
    (job,) = known(row(gpus=4))
    state.put([JobRecord(job.job, ("h0", "h4"))])
    used = {state.cluster.network.link_name(int(i)) for i in state.kept.used}
    assert used == {"h0:leaf0", "leaf0:spine0", "spine0:leaf1", "leaf1:h4",
                    "h4:leaf1", "leaf1:spine0", "spine0:leaf0", "leaf0:h0"}  # fmt: skip


def test_links_that_any_other_job_uses_are_scored():
    # Of two running jobs one is within rack 2, so that no link carries both.
    rows = [row("old", 4, placement=["h0", "h0", "h4", "h4"], up=200.0), row("near", 2, placement=["h8", "h9"])]
    (asked,) = known(row(gpus=8, up=200.0))
    rating = rated(state_with(*rows), asked, 2)["h1"]
    assert rating.worst == rated(state_with(rows[0]), asked, 2)["h1"].worst < 1


def test_a_pod_asks_for_at_most_as_many_gpus_as_are_allowed():
    resource = "nvidia.com/gpu"
    assert gpus_of_pod(Pod.model_validate(pod(gpus=MAX_GPUS_OF_POD)), resource) == MAX_GPUS_OF_POD
    with pytest.raises(InputError, match=f"must be at most {MAX_GPUS_OF_POD}"):
        gpus_of_pod(Pod.model_validate(pod(gpus=MAX_GPUS_OF_POD + 1)), resource)


@pytest.mark.parametrize("rows", [{}, "jobs", [3], [row(), None]])
def test_jobs_that_are_no_list_of_objects_are_refused(rows):
    with pytest.raises(InputError, match="test"):
        read_known_jobs(rows, "test")


def test_a_node_has_no_more_points_than_the_scheduler_takes():
    with pytest.raises(ValidationError):
        HostPriority(Host="h0", Score=MAX_POINTS + 1)
    assert HostPriority(Host="h0", Score=MAX_POINTS).Score == MAX_POINTS
