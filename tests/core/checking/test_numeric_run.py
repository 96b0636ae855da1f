import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_run import expected, run_reference

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.layouts import chunk_bounds
from commsim.core.operations import OPERATIONS
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH


@given(n_elements=st.integers(0, 10**6), n_blocks=st.integers(1, 50), finer=st.integers(1, 9))
def test_blocks_of_ranks_do_not_depend_on_how_finely_they_are_cut(n_elements, n_blocks, finer):
    bounds = chunk_bounds(n_elements, n_blocks)
    assert bounds[0] == 0
    assert bounds[-1] == n_elements
    assert np.ptp(np.diff(bounds)) <= 1
    assert np.array_equal(bounds, chunk_bounds(n_elements, n_blocks * finer)[::finer])


@pytest.mark.parametrize("name", list(COLLECTIVES))
@given(n_ranks=st.integers(1, 12), n_elements=st.integers(1, 100), seed=st.integers(0, 99))
@settings(max_examples=settings().max_examples // 3)
def test_every_collective_gives_what_its_operation_promises(name, n_ranks, n_elements, seed):
    entry = COLLECTIVES[name]
    rng = np.random.default_rng(seed)
    parameters = {"n_chunks": 3} if "n_chunks" in entry.parameters else {}
    parameters |= {"root": int(rng.integers(n_ranks))} if "root" in entry.parameters else {}
    schedule = entry.build(n_ranks, **parameters)
    if schedule.n_scratch or not schedule.in_place:
        n_elements *= schedule.n_chunks
    inputs = rng.integers(-99, 100, (n_ranks, n_elements)).astype(np.float32)
    outputs = run_reference(schedule, inputs)
    parts = expected(schedule.operation, inputs, schedule.root, schedule.layout)
    for output, (part, values) in zip(outputs, parts, strict=True):
        np.testing.assert_array_equal(output[part], values)


@pytest.mark.parametrize("name", [n for n in COLLECTIVES if COLLECTIVES[n].metadata["operation"] == "all_gather"])
@pytest.mark.parametrize("n_ranks", [2, 3, 8, 11])
def test_what_a_rank_does_not_contribute_may_hold_anything(name, n_ranks):
    schedule = COLLECTIVES[name].build(n_ranks)
    n_elements = 4 * n_ranks if schedule.n_scratch else 40  # blocks that move to other chunks must be equal
    home = chunk_bounds(n_elements, n_ranks)
    inputs = np.full((n_ranks, n_elements), np.nan)
    for rank in range(n_ranks):
        inputs[rank, home[rank] : home[rank + 1]] = rank + 1
    outputs = run_reference(schedule, inputs)
    np.testing.assert_array_equal(outputs, np.tile(np.repeat(np.arange(1, n_ranks + 1), np.diff(home)), (n_ranks, 1)))


def test_each_operation_promises_the_right_part():
    inputs = np.arange(12).reshape(3, 4)  # blocks are elements 0, 1 and 2..3
    inputs = np.concatenate((inputs, inputs + 100), axis=1)[:, :6]  # blocks of two
    layouts = {"none": (), "grid": (3,), "ranks": (1, 0, 2), "pairs": (0, 1, 0, 0, 0, 2, 1, 0, 0)}
    layouts["runs"] = (0, 1, 0, 2, 0, 2, 1, 2)  # rank 0 has three chunks of two: two for rank 1, two for rank 2
    got = {name: expected(name, inputs, 1, layouts[op.layout]) for name, op in OPERATIONS.items()}
    total = inputs.sum(axis=0)
    assert [v.tolist() for _, v in got["all_reduce"]] == [total.tolist()] * 3
    assert [v.tolist() for _, v in got["reduce"]] == [[], total.tolist(), []]
    assert [v.tolist() for _, v in got["reduce_scatter"]] == [
        total[:2].tolist(),
        total[2:4].tolist(),
        total[4:].tolist(),
    ]
    gathered = [*inputs[0, :2], *inputs[1, 2:4], *inputs[2, 4:]]
    assert [v.tolist() for _, v in got["all_gather"]] == [gathered] * 3
    assert [v.tolist() for _, v in got["gather"]] == [[], gathered, []]
    assert [v.tolist() for _, v in got["broadcast"]] == [inputs[1].tolist()] * 3
    assert [v.tolist() for _, v in got["scatter"]] == [
        inputs[1, :2].tolist(),
        inputs[1, 2:4].tolist(),
        inputs[1, 4:].tolist(),
    ]
    assert got["all_to_all"][2][1].tolist() == [*inputs[0, 4:], *inputs[1, 4:], *inputs[2, 4:]]
    assert [v.tolist() for _, v in got["barrier"]] == [[], [], []]
    assert [v.tolist() for _, v in got["send_recv"]] == inputs[[2, 0, 1]].tolist()
    assert got["neighbour_exchange"][0][1].tolist() == [*inputs[2, 3:], *inputs[1, :3]]
    assert got["all_gather_v"][1][1].tolist() == [*inputs[0, :2], *inputs[2, 2:]]
    assert [v.tolist() for _, v in got["all_to_all_v"]] == [
        inputs[2, :3].tolist(),
        inputs[0, :3].tolist(),
        inputs[1, :6].tolist(),
    ]
    assert [v.tolist() for _, v in got["ep_dispatch"]] == [[], inputs[0, :4].tolist(), inputs[0, 2:].tolist()]
    both = inputs[1, 2:4] + inputs[2, :2]
    assert [v.tolist() for _, v in got["ep_combine"]] == [[*inputs[1, :2], *both, *inputs[2, 2:4]], [], []]
    assert [part for part, _ in got["reduce_scatter"]] == [slice(0, 2), slice(2, 4), slice(4, 6)]


def test_sums_of_a_hop_are_made_in_program_order():
    p = Program(3, 1)
    p.reduce(0, src=[1, 2], dst=0)
    big = np.array([[1e8], [-1e8], [1.0]], np.float32)
    assert run_reference(p.build(), big)[0, 0] == 1.0
    q = Program(3, 1)
    q.reduce(0, src=[2, 1], dst=0)
    assert run_reference(q.build(), big)[0, 0] == 0.0


def test_reducing_into_an_empty_chunk_is_a_copy_chunk_by_chunk():
    p = Program(2, 2, n_helpers=1)
    p.reduce(1, src=0, dst=2)
    p.reduce(0, src=1, dst=2, count=2)  # chunk 0 of the helper is empty, chunk 1 is not
    p.copy(0, src=2, dst=[0, 1], count=2)
    inputs = np.array([[1.0, 2.0], [-0.0, 4.0]])
    got = run_reference(p.build(), inputs)
    assert got.tolist() == [[-0.0, 6.0], [-0.0, 6.0]]
    assert np.signbit(got[:, 0]).all()


def test_the_inputs_are_left_alone():
    inputs = np.ones((2, 4))
    run_reference(COLLECTIVES["ring_all_reduce"].build(2), inputs)
    assert (inputs == 1).all()


def test_blocks_of_unequal_size_cannot_change_places():
    with pytest.raises(InputError, match="10 elements give blocks of unequal size"):
        run_reference(COLLECTIVES["direct_all_to_all"].build(3), np.zeros((3, 10)))


def test_scratch_holds_chunks_of_equal_size():
    p = Program(2, 2, n_scratch=1)
    p.copy(src=0, dst=1, src_chunk=1, dst_chunk=0, dst_buffer=SCRATCH)
    p.reduce(src=1, dst=1, src_chunk=0, dst_chunk=1, src_buffer=SCRATCH)
    assert run_reference(p.build(), [[1, 2, 3, 4], [5, 6, 7, 8]])[1].tolist() == [5, 6, 10, 12]
