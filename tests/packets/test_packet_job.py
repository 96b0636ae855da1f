"""The rounds of slots, against workers that look ahead in their columns one packet at a time."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.packets.aggregated.packet_job import BlockRounds
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.occupancy import Occupancy


def played(has: NDArray[np.bool_], first: int, end: int, slot: int, slots: int) -> list[int]:
    """Play one slot as the protocol does: every worker says where its next block is, and the least comes next."""
    column = list(range(first + slot, end, slots))
    now, rounds = column[:1], []
    while now:
        rounds += now
        nexts = [next((b for b in column if b > now[0] and row[b]), None) for row in has]
        left = [b for b in nexts if b is not None]
        now = [min(left)] if left else []
    return rounds


@given(
    n_ranks=st.integers(1, 5),
    n_blocks=st.integers(1, 90),
    slots=st.integers(1, 7),
    cores=st.integers(1, 4),
    density=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_a_slot_has_the_blocks_that_workers_find_one_block_ahead_at_a_time(
    n_ranks: int, n_blocks: int, slots: int, cores: int, density: float, seed: int
) -> None:
    has = np.random.default_rng(seed).random((n_ranks, n_blocks)) < density
    rounds = BlockRounds(Occupancy.from_bitmap(has, n_blocks * 3, 3), slots * cores, cores)
    for core in range(cores):
        first, end = core * n_blocks // cores, (core + 1) * n_blocks // cores
        for slot in range(slots):
            j = core * slots + slot
            assert rounds.block[rounds.first[j] : rounds.first[j + 1]].tolist() == played(has, first, end, slot, slots)
    assert sorted([*rounds.block.tolist(), *rounds.skipped().tolist()]) == list(range(n_blocks))
    assert not has[:, rounds.skipped()].any()


def test_rounds_are_values() -> None:
    rounds = BlockRounds(drawn_occupancy(2, 1000, density=0.3, block=10), 8, 2)
    assert copy.copy(rounds) == rounds
    assert rounds != BlockRounds(rounds.occupancy, 8, 4)


def test_slots_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(InputError, match="9 slots cannot be shared out among 2 cores"):
        BlockRounds(drawn_occupancy(2, 1000, density=0.3, block=10), 9, 2)
