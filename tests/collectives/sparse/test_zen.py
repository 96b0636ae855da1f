import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.sparse.sparcml import sparcml_split, zen
from commsim.sparse.encodings import coo
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.measures import densification
from commsim.sparse.partition import Partition
from commsim.sparse.propagate import transfer_bytes

FORM = COLLECTIVES["zen"].metadata["sparse"]


@pytest.mark.parametrize("pattern", ["random", "zipf", "overlapping", "disjoint"])
def test_as_lists_it_takes_the_bytes_of_the_published_formula(pattern):
    n, n_elements, density = 8, 400_000, 0.05
    occupancy = drawn_occupancy(n, n_elements, density=density, pattern=pattern)
    n_bytes = transfer_bytes(zen(n), occupancy, coo, hashed=True)
    # (n-1)/n (gamma^n + 1) 2 M d, with M = 4 bytes an element; sent or received by a rank, so half of what all send
    formula = (n - 1) / n * (densification(occupancy) + 1) * 2 * 4 * n_elements * density
    assert n_bytes.sum() / n == pytest.approx(formula, rel=0.01)


@given(n_ranks=st.integers(2, 9), k=st.integers(1, 400), seed=st.integers(0, 5))
@settings(max_examples=25)
def test_elements_go_to_the_rank_of_their_hash_and_come_back_behind_a_bitmap(n_ranks, k, seed):
    n_elements = 1000
    occupancy = drawn_occupancy(n_ranks, n_elements, density=k / n_elements, seed=seed)
    schedule = zen(n_ranks)
    transfers, n_bytes = schedule.expand(), FORM.transfer_bytes(schedule, occupancy, {})
    owner = Partition(n_elements, 1, n_ranks, hashed=True).chunk_of_blocks()
    bitmap = occupancy.bitmap
    for t, size in zip(transfers, n_bytes, strict=True):
        if t["op"]:
            assert size == 8 * (bitmap[t["src"]] & (owner == t["dst"])).sum()
        else:
            mine = owner == t["src"]
            assert size == 4 * (bitmap.any(axis=0) & mine).sum() + 4 * -(-mine.sum() // 32)


def test_it_loads_all_ranks_alike_where_contiguous_parts_do_not():
    n = 8
    occupancy = drawn_occupancy(n, 200_000, density=0.02, pattern="zipf")

    def received(schedule, n_bytes):
        transfers = schedule.expand()
        pushed = transfers["op"] == 1
        return np.bincount(transfers["dst"][pushed], weights=n_bytes[pushed], minlength=n)

    hashed = received(zen(n), FORM.transfer_bytes(zen(n), occupancy, {}))
    ranges = received(sparcml_split(n), transfer_bytes(sparcml_split(n), occupancy, coo))
    assert hashed.max() / hashed.mean() < 1.1
    assert ranges.max() / ranges.mean() > 2
