"""NCCL's rings through machines: each half of an all-reduce as written out round by round, in one hop a loop."""

import dataclasses

import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.dense.multi_ring import ring_order
from collectives.nccl.launch import NcclParameters, launch
from collectives.nccl.pieces import pieces_of
from commsim.core.checking.check import check
from commsim.core.data_order.chunk_orders import ChunkOrders
from commsim.core.program import Program
from commsim.core.schedule import Block
from commsim.engine.recurrence.ring_phases import find_ring_phases


def machines_of(n_machines: int, per_machine: int, seed: int | None = None) -> tuple[tuple[int, ...], ...]:
    n = n_machines * per_machine
    ranks = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    return tuple(tuple(row) for row in ranks.reshape(n_machines, per_machine).tolist())


def asked(operation: str, machines: tuple[tuple[int, ...], ...], n_bytes: int, channels: int = 4) -> NcclParameters:
    n = sum(map(len, machines))
    name = f"nccl_{operation}"
    return NcclParameters(name, operation, n, "ring", "simple", channels, n_bytes=n_bytes, machines=machines)


def written_out(parameters: NcclParameters) -> Program:
    """Write each round of each loop: a ring's member passes on the piece that it has got in the round before."""
    n, reduces = parameters.n_ranks, parameters.operation == "reduce_scatter"
    parts = parameters.parts(parameters.call())
    orders, pieces = [ring_order(parameters.units, channel) for channel in range(len(parts))], pieces_of(parts, n)
    p = Program(n, n * pieces.width)
    for loops in pieces.loops:
        for round_ in range(n - 1):
            rows = [
                (order[i], order[(i + 1) % n], order[(i - round_ - reduces) % n] * pieces.width + loop.first + begin,
                 count, loop.channel)
                for loop in loops for order in [orders[loop.channel]] for begin, count in loop.slices for i in range(n)
            ]  # fmt: skip
            src, dst, chunk, count, channel = np.array(rows).T
            (p.reduce if reduces else p.copy)(chunk, src=src, dst=dst, count=count, channel=channel)
    return p


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize(
    "machines",
    [machines_of(1, 5), machines_of(2, 4), machines_of(3, 4), machines_of(2, 3, seed=1), machines_of(5, 1, seed=2)],
    ids=["one machine", "even", "odd", "ranks in any order", "a rank each"],
)
@pytest.mark.parametrize("n_bytes", [2**16, 2**26])
def test_each_half_is_the_same_as_written_out_and_is_proved(operation, machines, n_bytes):
    parameters = asked(operation, machines, n_bytes)
    schedule = dataclasses.replace(launch(parameters), operation=operation)
    assert np.array_equal(schedule.expand(), written_out(parameters).build().expand())
    check(schedule)


@pytest.mark.parametrize("n_machines", [127, 128])
@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
def test_a_thousand_ranks_list_one_hop_and_stay_one_phase(operation, n_machines):
    """Their rounds are 1,023: of 33,521,664 transfers of 16 channels and 1,024 ranks one in 1,023 is listed."""
    n = 8 * n_machines
    schedule = launch(asked(operation, machines_of(n_machines, 8), 2**30, channels=16))
    listed = sum(len(block.body) for block in schedule.blocks)
    assert listed * (n - 1) == schedule.n_transfers
    assert listed == 2 * 16 * n
    (phase,) = find_ring_phases(schedule) or ()
    assert (phase.src.shape, phase.n_rounds) == ((n, 2 * 16), n - 1)


@pytest.mark.parametrize("n_bytes", [2**20, 2**28])
def test_phases_are_those_of_all_rounds_written_out(n_bytes):
    schedule = launch(asked("all_gather", machines_of(3, 4), n_bytes))
    plain = dataclasses.replace(schedule, blocks=(Block(schedule.expand(), schedule.n_hops),))
    found, wanted = find_ring_phases(schedule), find_ring_phases(plain)
    assert (found is None) == (wanted is None)
    for one, other in zip(found or (), wanted or (), strict=True):
        for field in dataclasses.fields(one):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


def test_connections_that_are_fed_along_another_order_are_no_phase():
    """Both orders have one step in common, from the chunks of the first round to those of the second, but no other."""
    n, rank = 6, np.arange(6)
    p = Program(n, n)
    with p.repeat(n - 1, chunk=-1, orders=np.array([[0, 3, 4, 1, 2, 5], rank])):
        p.copy(rank, src=rank, dst=(rank + 1) % n, channel=rank % 2)
    schedule = p.build()
    (block,) = schedule.blocks
    assert find_ring_phases(schedule) is None
    alike = dataclasses.replace(block, orders=ChunkOrders(np.array([rank]), np.zeros(n, np.int32)))
    for round_ in range(2):
        both = schedule.repetitions(block, [round_]), schedule.repetitions(alike, [round_])
        assert np.array_equal(*both)
    assert not np.array_equal(schedule.repetitions(block, [2]), schedule.repetitions(alike, [2]))
    assert find_ring_phases(dataclasses.replace(schedule, blocks=(alike,))) is not None


def test_rings_of_a_mesh_list_one_hop_of_each_channel():
    schedule = COLLECTIVES["rccl_all_gather"].build(8, channels=14, n_bytes=2**22)
    assert sum(len(block.body) for block in schedule.blocks) * 7 == schedule.n_transfers
