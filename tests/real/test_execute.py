import threading
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numeric_run import run_reference
from one_run import run_once
from thread_transport import ThreadTransport, World

from collectives import COLLECTIVES
from commsim.core.errors import BackendError, InputError, ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, SCRATCH, Schedule
from commsim.real.execute import Execution, for_processes
from commsim.real.plan import SEND, plan_rank


def inputs_for(schedule: Schedule, n_elements: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(n_elements).astype(np.float32) for _ in range(schedule.n_ranks)]


def executed(schedule: Schedule, inputs: list[np.ndarray], **world: object) -> list[np.ndarray]:
    world_of_all = World(schedule.n_participants, **world)
    return world_of_all.run(lambda t: run_once(t, schedule, inputs[t.rank % schedule.n_ranks]))[: schedule.n_ranks]


def assert_equals_reference(schedule: Schedule, n_elements: int, **world: object) -> None:
    inputs = inputs_for(schedule, n_elements)
    for got, wanted in zip(executed(schedule, inputs, **world), run_reference(schedule, inputs), strict=True):
        np.testing.assert_array_equal(got.view(np.int32), wanted.view(np.int32))


@pytest.mark.sample(1, each="name")
@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_every_collective_gives_the_bits_of_the_reference(name: str, n_ranks: int) -> None:
    schedule = COLLECTIVES[name].build(n_ranks)
    assert_equals_reference(schedule, schedule.n_chunks * 5)


@pytest.mark.parametrize("n_elements", [1, 2, 5, 11])
def test_chunks_may_differ_in_size_or_be_empty(n_elements: int) -> None:
    assert_equals_reference(COLLECTIVES["ring_all_reduce"].build(4), n_elements)


def test_two_ranks_may_exchange_the_same_chunk_in_one_hop() -> None:
    p = Program(2, n_chunks=1)
    p.reduce(0, src=[0, 1], dst=[1, 0])
    p.copy(0, src=[0, 1], dst=[1, 0])
    for rendezvous in (True, False):
        assert_equals_reference(p.build(), 6, rendezvous=rendezvous)


def test_sums_of_one_hop_are_made_in_program_order_even_when_a_later_one_is_needed_first() -> None:
    p = Program(4, n_chunks=2)
    p.reduce(src=[1, 2], dst=[0, 0], src_chunk=[0, 0], dst_chunk=[0, 0], count=[1, 2])
    p.copy(1, src=0, dst=3)  # needs only what rank 2 sent
    schedule = p.build()
    big = np.array([1e8, 0], np.float32)
    inputs = [big, -big, np.array([1.0, 2.0], np.float32), np.zeros(2, np.float32)]
    got = executed(schedule, inputs)
    assert got[0][0] == 1.0  # (1e8 - 1e8) + 1; in the other order 1e8 + 1 is rounded and the sum is 0
    assert got[3][1] == 2.0


def test_a_chunk_is_not_overwritten_while_it_is_still_being_sent() -> None:
    p = Program(3, n_chunks=1)
    p.copy(0, src=0, dst=2)
    p.copy(0, src=1, dst=0)
    assert_equals_reference(p.build(), 4)


def test_local_copies_of_one_hop_may_swap_two_chunks() -> None:
    p = Program(2, n_chunks=2)
    p.copy(src=0, dst=0, src_chunk=[0, 1], dst_chunk=[1, 0])
    p.copy(src=0, dst=[1, 1], src_chunk=[0, 1], dst_chunk=[0, 1])
    assert_equals_reference(p.build(), 6)


def test_an_execution_can_be_run_again() -> None:
    schedule = COLLECTIVES["ring_all_reduce"].build(3)
    inputs = inputs_for(schedule, 10)

    def twice(transport: ThreadTransport) -> np.ndarray:
        execution = Execution(transport, schedule, 10)
        for _ in range(2):
            execution.load(inputs[transport.rank])
            execution.run()
        return execution.result().copy()

    for got, wanted in zip(World(3).run(twice), run_reference(schedule, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_after_a_fence_nothing_starts_before_all_of_the_earlier_stage_is_complete() -> None:
    p = Program(2, n_chunks=2)
    p.copy(0, src=0, dst=1)
    p.fence()
    p.copy(1, src=1, dst=0)  # depends on nothing but the fence
    order: list[str] = []

    class Recorder(ThreadTransport):
        def isend(self, array: np.ndarray, peer: int, tag: int) -> object:
            order.append(f"{self.rank} sends")
            return super().isend(array, peer, tag)

        def _wait_some(self, handles: list) -> list[int]:
            complete = super()._wait_some(handles)
            order.append(f"{self.rank} waited")
            return complete

    schedule, world = p.build(), World(2)
    world.run(lambda t: run_once(Recorder(world, t.rank), schedule, np.zeros(2, np.float32)))
    assert order.index("1 waited") < order.index("1 sends")


@pytest.mark.parametrize("acknowledges", [False, True])
def test_a_rank_that_acknowledges_hears_from_its_receivers_before_it_passes_a_fence(acknowledges: bool) -> None:
    p = Program(3, n_chunks=2)
    p.copy(0, src=0, dst=1)
    p.fence()
    p.copy(1, src=0, dst=2)  # rank 1 has no part in this stage, but must answer
    order, passed = [], threading.Event()

    class Recorder(ThreadTransport):
        def isend(self, array: np.ndarray, peer: int, tag: int) -> object:
            if peer == 2:
                order.append("0 passes")
                passed.set()
            return super().isend(array, peer, tag)

        def irecv(self, array: np.ndarray, peer: int, tag: int) -> object:
            if self.rank == 1:
                passed.wait(0.1 if acknowledges else 10)  # the message lies in a buffer meanwhile
                order.append("1 receives")
            return super().irecv(array, peer, tag)

    schedule, world = p.build(), World(3, rendezvous=False, acknowledges=acknowledges)
    world.run(lambda t: run_once(Recorder(world, t.rank), schedule, np.zeros(2, np.float32)))
    assert order == (["1 receives", "0 passes"] if acknowledges else ["0 passes", "1 receives"])


@pytest.mark.parametrize("acknowledges", [False, True])
def test_nothing_is_sent_to_a_rank_that_is_still_in_an_earlier_stage_where_ranks_say_that_they_are_ready(
    acknowledges: bool,
) -> None:
    p = Program(3, n_chunks=2)
    p.copy(0, src=0, dst=1)
    p.fence()
    p.copy(1, src=2, dst=1)  # rank 2 has no part in the stage before
    order, sent = [], threading.Event()

    class Recorder(ThreadTransport):
        def isend(self, array: np.ndarray, peer: int, tag: int) -> object:
            if tag == 0 and self.rank == 0:
                sent.wait(0.1 if acknowledges else 10)
            if tag == 0:
                order.append(self.rank)
            if tag == 0 and self.rank == 2:
                sent.set()
            return super().isend(array, peer, tag)

    schedule, world = p.build(), World(3, rendezvous=False, acknowledges=acknowledges)
    world.run(lambda t: run_once(Recorder(world, t.rank), schedule, np.zeros(2, np.float32)))
    assert order == ([0, 2] if acknowledges else [2, 0])


def test_a_send_that_is_ready_is_not_held_back_by_one_before_it_that_waits() -> None:
    p = Program(3, n_chunks=2)
    p.copy(0, src=2, dst=0)
    p.copy(0, src=0, dst=1)  # waits for the first
    p.copy(1, src=0, dst=2)  # is ready
    overtaken = threading.Event()

    class Late(ThreadTransport):
        def isend(self, array: np.ndarray, peer: int, tag: int) -> object:
            if self.rank == 2:
                assert overtaken.wait(10), "rank 0 has not sent what was ready"
            elif peer == 2:
                overtaken.set()
            return super().isend(array, peer, tag)

    schedule, world = p.build(), World(3)
    world.run(lambda t: run_once(Late(world, t.rank), schedule, np.zeros(2, np.float32)))


@pytest.mark.parametrize("look_ahead", [0, 8])
def test_where_a_library_can_wait_for_one_message_only_sends_keep_the_order_of_the_program(look_ahead: int) -> None:
    schedule = COLLECTIVES["double_tree_all_reduce"].build(4, n_chunks=3)
    sends: dict[int, list[int]] = defaultdict(list)

    class Recorder(ThreadTransport):
        def isend(self, array: np.ndarray, peer: int, tag: int) -> object:
            sends[self.rank].append(peer)
            return super().isend(array, peer, tag)

    world = World(4, look_ahead=look_ahead, any_order=False)
    world.run(lambda t: run_once(Recorder(world, t.rank), schedule, np.zeros(12, np.float32)))
    for rank in range(4):
        assert sends[rank] == [step.peer for step in plan_rank(schedule, rank, 12) if step.kind == SEND]


def test_a_helper_is_a_process_behind_the_ranks_and_starts_empty() -> None:
    p = Program(2, n_chunks=1, n_helpers=1)
    p.reduce(0, src=[0, 1], dst=2)
    p.copy(0, src=2, dst=[0, 1])
    schedule, inputs = p.build(), [np.array([-0.0, 1.0], np.float32), np.array([-0.0, 2.0], np.float32)]
    for got in executed(schedule, inputs):
        assert got[1] == 3.0
        assert np.signbit(got[0])  # adding to 0.0 would have made it 0.0


def test_processes_are_shared_out_between_ranks_and_helpers() -> None:
    build = COLLECTIVES["switchml"].build
    assert [getattr(for_processes(build, n), "n_ranks", None) for n in (1, 2, 3, 8)] == [1, None, 2, 7]
    assert for_processes(COLLECTIVES["ring_all_reduce"].build, 4).n_ranks == 4


def test_chunks_of_different_sizes_are_not_copied_onto_each_other() -> None:
    p = Program(2, n_chunks=3, n_scratch=1)
    p.copy(src=0, dst=1, src_chunk=0, dst_chunk=0, dst_buffer=SCRATCH)
    with pytest.raises(InputError, match="multiple of 3 elements, got 10"):
        plan_rank(p.build(), 0, 10)
    p = Program(2, n_chunks=3)
    p.copy(src=0, dst=1, src_chunk=0, dst_chunk=2)
    with pytest.raises(InputError, match="sends chunk 0 to chunk 2, which has another size"):
        plan_rank(p.build(), 0, 4)


def test_the_wrong_number_of_ranks_is_refused() -> None:
    with pytest.raises(BackendError, match="4 ranks are needed and 1 are running; start them with mpirun -n 4"):
        Execution(ThreadTransport(World(1), 0), COLLECTIVES["ring_all_reduce"].build(4), 8)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    n_ranks, n_chunks = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    n_scratch = draw(st.integers(0, 2))
    p = Program(n_ranks, n_chunks, n_scratch=n_scratch)
    rank = st.integers(0, n_ranks - 1)
    for _ in range(draw(st.integers(1, 6))):
        n = draw(st.integers(1, 4))
        rows = []
        for _ in range(n):
            ends = [draw(st.sampled_from([0, SCRATCH] if n_scratch else [0])) for _ in range(2)]
            room = [n_scratch if b == SCRATCH else n_chunks for b in ends]
            count = draw(st.integers(1, min(room)))
            at = [draw(st.integers(0, r - count)) for r in room]
            rows.append((draw(rank), draw(rank), at[0], at[1], count, draw(st.integers(0, 1)), *ends))
        src, dst, src_chunk, dst_chunk, count, channel, src_buffer, dst_buffer = (
            list(c) for c in zip(*rows, strict=True)
        )
        hop = p.reduce if draw(st.booleans()) else p.copy
        hop(
            src=src, dst=dst, src_chunk=src_chunk, dst_chunk=dst_chunk, count=count, channel=channel,
            src_buffer=src_buffer, dst_buffer=dst_buffer,
        )  # fmt: skip
        if draw(st.integers(0, 4)) == 0:
            p.fence()
    return p.build()


@pytest.mark.slow
@given(
    schedule=schedules(),
    rendezvous=st.booleans(),
    look_ahead=st.sampled_from([0, 1, 8]),
    any_order=st.booleans(),
    acknowledges=st.booleans(),
)
def test_any_legal_schedule_gives_the_bits_of_the_reference(schedule: Schedule, **world: object) -> None:
    try:
        plan_rank(schedule, 0, schedule.n_chunks)
    except ScheduleError:
        return  # two copies of a hop into one chunk: not a schedule
    assert_equals_reference(schedule, 3 * schedule.n_chunks, **world)


def test_all_to_all_reads_its_input_and_writes_its_output() -> None:
    p = Program(2, n_chunks=2)
    p.copy(src=[0, 0, 1, 1], dst=[0, 1, 0, 1], src_chunk=[0, 1, 0, 1], dst_chunk=[0, 0, 1, 1], dst_buffer=OUTPUT)
    schedule = p.build("a", "all_to_all")
    inputs = [np.array([1, 2], np.float32), np.array([3, 4], np.float32)]
    got = executed(schedule, inputs)
    assert got[0].tolist() == [1, 3]
    assert got[1].tolist() == [2, 4]
    assert inputs[0].tolist() == [1, 2]
