"""Who may join, what workers must agree on, and who is told what when one fails; without sockets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from switch_model.live.authentication import Secrets
from switch_model.live.jobs import MAX_AHEAD, MAX_JOBS, LiveJobs


class World:
    """Records what a plane and connections are told."""

    def __init__(self, pool_size: int = 256, secrets: Secrets | None = None) -> None:
        self.secrets = secrets
        self.pool_size, self.running, self.said = pool_size, dict[int, tuple[int, int]](), dict[int, list[Any]]()
        self.ended: set[int] = set()
        self.jobs = LiveJobs(self, self.send, secrets)

    def open(
        self, job_number: int, peers: list[tuple[str, int]], first_slot: int, n_slots: int, begin: int = 0,
        key: bytes = b"",
    ) -> None:  # fmt: skip
        assert len(set(peers)) == len(peers)
        assert begin % (2 * n_slots) == 0
        assert (key == b"") == (self.secrets is None)
        if any(first < first_slot + n_slots and first_slot < first + n for first, n in self.running.values()):
            raise AssertionError("ranges overlap")
        self.running[job_number] = first_slot, n_slots

    @property
    def job_numbers(self) -> set[int]:
        return set(self.running)

    def close(self, job_number: int) -> None:
        self.running.pop(job_number, None)

    def busy(self, job_number: int) -> list[Any]:
        return [{"slot": self.running[job_number][0], "version": 0}] if job_number in self.running else []

    def send(self, connection: int, message: dict[str, Any], last: bool) -> None:
        assert connection not in self.ended
        self.said.setdefault(connection, []).append(message)
        if last:
            self.ended.add(connection)

    def does(self, connection: int, do: str, **more: object) -> list[Any]:
        """What that connection has been told since it last did something."""
        self.said[connection] = []
        self.jobs.handle(connection, "127.0.0.1", {"do": do, **more})
        return self.said[connection]

    def joins(self, connection: int, rank: int, n_workers: int, job: str = "a", **more: object) -> list[Any]:
        return self.does(
            connection, "join", job=job, rank=rank, n_workers=n_workers, udp_port=9000 + connection, **more
        )

    def last(self, connection: int) -> Any:
        return self.said[connection][-1]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pair(world: World) -> World:
    world.joins(1, 0, 2)
    world.joins(2, 1, 2)
    return world


def test_those_who_wait_know_for_whom_and_all_are_told_when_the_last_has_come(world: World) -> None:
    assert world.joins(1, 2, 3) == [{"waiting_for": [0, 1]}]
    assert world.joins(2, 0, 3) == [{"waiting_for": [1]}]
    assert world.joins(3, 1, 3)[-1]["joined"] == "a"
    assert world.last(1) == world.last(2) == world.last(3)
    assert {name: world.last(1)[name] for name in ("joined", "first_slot", "slots")} == {
        "joined": "a", "first_slot": 0, "slots": 128,
    }  # fmt: skip


def test_number_and_first_packet_of_a_job_are_drawn_and_nobody_has_the_number_of_another() -> None:
    world = World(MAX_JOBS)
    told = [world.joins(n, 0, 1, f"job {n}", slots=1)[-1] for n in range(MAX_JOBS)]
    assert {job["job_number"] for job in told} == set(range(MAX_JOBS))
    assert [job["job_number"] for job in told] != sorted(job["job_number"] for job in told)
    assert len({job["begin"] for job in told}) > MAX_JOBS - 3  # 2**31 places


def test_a_job_never_has_the_number_of_one_that_stays() -> None:
    """A switch in the kernel opens jobs of its own, whose numbers `LiveJobs` has not given out."""
    world = World(MAX_JOBS)
    for number in range(1, MAX_JOBS):
        world.running[number] = 1000 + number, 1
    assert world.joins(1, 0, 1, "a", slots=1)[-1]["job_number"] == 0


def test_jobs_with_secrets_have_keys_of_their_own_and_a_job_without_a_secret_does_not_start() -> None:
    world = World(secrets=Secrets(of_job={"a": "s" * 16}))
    assert world.joins(1, 0, 1, "a")[-1]["salt"]
    with pytest.raises(InputError, match="job 'b' has no secret on this switch"):
        world.joins(2, 0, 1, "b")


def test_jobs_get_disjoint_slots_and_what_does_not_fit_is_told_what_would(world: World) -> None:
    world.joins(1, 0, 1, "a", slots=100)
    world.joins(2, 0, 1, "b", slots=100)
    with pytest.raises(InputError, match="job 'c': 100 slots do not fit in what is free of 256: at most 56 fit"):
        world.joins(3, 0, 1, "c", slots=100)
    assert world.joins(3, 0, 1, "c")[-1]["slots"] == 56
    with pytest.raises(InputError, match="all are taken, until a job ends"):
        world.joins(4, 0, 1, "d")
    world.does(1, "leave")
    assert world.joins(4, 0, 1, "d")[-1]["first_slot"] == 0


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"rank": 0, "n_workers": 2}, "rank 0 of job 'a' has joined already"),
        ({"rank": 1, "n_workers": 3}, "job 'a' has 2 workers, not 3"),
        ({"rank": 1, "n_workers": 2, "slots": 9}, "job 'a' has 128 slots, not 9"),
        ({"rank": 2, "n_workers": 2}, "rank is a whole number from 0 to 1, got 2"),
        ({"rank": True, "n_workers": 2}, "rank is a whole number"),
        ({"rank": 0, "n_workers": 33}, "n_workers is a whole number from 1 to 32, got 33"),
        ({"rank": 0, "n_workers": 2, "slots": 0}, "slots is a whole number"),
        ({"rank": 0, "n_workers": 2, "job": ""}, "job is a text"),
        ({"rank": 0, "n_workers": 2, "job": "a\n"}, "job is a text"),
        ({"rank": 0, "n_workers": 2, "job": "x" * 65}, "job is a text"),
    ],
)
def test_a_join_that_makes_no_sense_is_refused_and_changes_nothing(
    world: World, asked: dict[str, Any], complaint: str
) -> None:
    world.joins(1, 0, 2)
    before = world.jobs.status()
    with pytest.raises(InputError, match=complaint):
        world.joins(2, **asked)
    assert world.jobs.status() == before
    assert world.joins(3, 1, 2)[-1]["joined"] == "a"


def test_a_worker_that_dies_while_others_wait_may_come_again(world: World) -> None:
    world.joins(1, 0, 2)
    world.jobs.lost(1, "has gone")
    assert world.jobs.status()["jobs"] == []
    world.joins(2, 1, 2)
    world.joins(3, 0, 2)
    assert world.last(2)["joined"] == "a"


def test_a_worker_that_dies_ends_its_job_and_frees_name_and_slots_at_once(pair: World) -> None:
    pair.jobs.lost(2, "has gone")
    assert pair.last(1) == {"failed": "rank 1 of job 'a' has gone"}
    assert pair.running == {}
    pair.joins(3, 0, 1)
    assert pair.last(3)["joined"] == "a"
    pair.jobs.lost(1, "has gone")  # it only closes its connection now; the new job has nothing to do with it
    assert len(pair.running) == 1


def test_workers_must_reduce_the_same_tensors(pair: World) -> None:
    pair.does(1, "tensor", elements=10, type="int32")
    pair.does(2, "tensor", elements=10, type="int32")
    pair.does(1, "tensor", elements=10, type="int32")
    pair.does(2, "tensor", elements=10, type="float32")
    assert pair.last(1) == {"failed": "tensor 1 of job 'a' is int32[10] on rank 0, but float32[10] on rank 1"}
    assert pair.running == {}


def test_announcements_may_be_read_late_since_packets_do_not_wait_for_them(pair: World) -> None:
    for elements in (10, 20, 30):
        assert pair.does(1, "tensor", elements=elements, type="int32") == []
    for elements in (10, 20, 30):
        assert pair.does(2, "tensor", elements=elements, type="int32") == []
    assert pair.does(2, "tensor", elements=40, type="int32") == []
    pair.does(1, "tensor", elements=41, type="int32")
    assert pair.last(2) == {"failed": "tensor 3 of job 'a' is int32[40] on rank 1, but int32[41] on rank 0"}


def test_late_announcements_are_compared_each_with_its_own(pair: World) -> None:
    for elements in (10, 20, 30):
        pair.does(1, "tensor", elements=elements, type="int32")
    pair.does(2, "tensor", elements=10, type="int32")
    pair.does(2, "tensor", elements=30, type="int32")
    assert pair.last(1) == {"failed": "tensor 1 of job 'a' is int32[20] on rank 0, but int32[30] on rank 1"}
    assert pair.running == {}


def test_announcements_that_nobody_follows_take_bounded_memory(pair: World) -> None:
    for _ in range(MAX_AHEAD):
        assert pair.does(1, "tensor", elements=10, type="int32") == []
    pair.does(1, "tensor", elements=10, type="int32")
    assert pair.last(2) == {"failed": f"rank 0 of job 'a' begins tensor {MAX_AHEAD}, but rank 1 is still at tensor 0"}


def test_a_tensor_of_a_job_that_somebody_has_left_fails(pair: World) -> None:
    pair.does(1, "leave")
    pair.does(2, "tensor", elements=10, type="int32")
    assert pair.last(2) == {"failed": "rank 1 of job 'a' begins tensor 0, but rank 0 has left"}


def test_leaving_others_in_a_tensor_fails(pair: World) -> None:
    pair.does(1, "tensor", elements=10, type="int32")
    pair.does(2, "leave")
    assert pair.last(1) == {"failed": "rank 1 of job 'a' left, but rank 0 still needs it"}


def test_slots_stay_until_all_have_left_since_the_last_result_may_be_lost(pair: World) -> None:
    for connection in (1, 2):
        pair.does(connection, "tensor", elements=10, type="int32")
    pair.does(1, "leave")
    pair.jobs.lost(1, "has gone")
    assert len(pair.running) == 1
    pair.does(2, "leave")
    assert pair.running == {}
    assert pair.jobs.status()["jobs"] == []


def test_a_barrier_is_left_when_all_have_reached_it(pair: World) -> None:
    assert pair.does(1, "barrier") == []
    assert pair.does(2, "barrier") == [{"barrier": 1}]
    assert pair.last(1) == {"barrier": 1}
    pair.does(1, "leave")
    pair.does(2, "barrier")
    assert "rank 0 has left" in pair.last(2)["failed"]


def test_a_worker_may_say_why_it_gives_up(pair: World) -> None:
    pair.does(1, "fail", why="ValueError: the data are bad")
    assert pair.last(2) == {"failed": "rank 0 of job 'a' failed: ValueError: the data are bad"}


@pytest.mark.parametrize("do", ["tensor", "barrier", "leave", "fail", "dance", 7, None, ["join"]])
def test_what_makes_no_sense_before_joining_is_refused(world: World, do: object) -> None:
    with pytest.raises(InputError):
        world.jobs.handle(1, "127.0.0.1", {"do": do, "why": "x"})


steps = st.tuples(
    st.integers(1, 6),
    st.sampled_from(["join", "join", "tensor", "barrier", "leave", "fail", "lost", "alive"]),
    st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(1, 3), st.sampled_from([None, 5, 200]),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(steps, max_size=60))
def test_whatever_workers_do_slots_are_neither_shared_nor_lost(history: list[Any]) -> None:
    world = World()
    for connection, do, job, rank, n_workers, slots in history:
        if connection in world.ended or do == "lost":
            world.jobs.lost(connection, "has gone")
            world.ended.discard(connection)
            continue
        message = {"do": do, "job": job, "rank": rank, "n_workers": n_workers, "slots": slots, "udp_port": connection,
                   "elements": rank + 1, "type": "int32", "why": "so"}  # fmt: skip
        try:
            world.jobs.handle(connection, "127.0.0.1", message)
        except InputError:
            world.jobs.lost(connection, "made no sense")
        for one in world.jobs.status()["jobs"]:
            assert bool(one["waiting_for"]) != (one["number"] in world.running)
    for connection in range(1, 7):
        world.jobs.lost(connection, "has gone")
    still = world.jobs.status()["jobs"]
    assert not world.running, still
    assert still == []
