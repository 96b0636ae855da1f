import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.sparse.sparcml import sparcml_dsar, sparcml_split, sparcml_ssar, zen
from commsim.sparse.encodings import coo
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.partition import Partition
from commsim.sparse.propagate import transfer_contents
from commsim.sparse.union_density import densification, union_density

N, PAIR = 40_000, 8


def sent(name, schedule, occupancy):
    return COLLECTIVES[name].metadata["sparse"].transfer_bytes(schedule, occupancy, {})


@given(k=st.integers(1, 4), seed=st.integers(0, 9), density=st.floats(0.001, 0.05))
@settings(max_examples=settings().max_examples * 2 // 3)
def test_doubling_sends_in_round_i_the_union_of_two_to_the_i_ranks(k, seed, density):
    occupancy = drawn_occupancy(2**k, N, density=density, seed=seed)
    schedule = sparcml_ssar(2**k)
    transfers, n_bytes = schedule.expand(), sent("sparcml_ssar", schedule, occupancy)
    bitmap = occupancy.bitmap
    for i in range(k):
        for rank in range(2**k):
            group = [r for r in range(2**k) if r >> i == rank >> i]
            message = (transfers["hop"] == i) & (transfers["src"] == rank)
            assert n_bytes[message].tolist() == [min(4 * N, PAIR * bitmap[group].any(axis=0).sum())]


@pytest.mark.parametrize(
    ("pattern", "factor"), [("overlapping", lambda p: math.log2(p)), ("disjoint", lambda p: p - 1)]
)
@pytest.mark.parametrize("n_ranks", [2, 4, 8, 16])
def test_doubling_sends_between_log_p_and_p_less_one_lists(pattern, factor, n_ranks):
    occupancy = drawn_occupancy(n_ranks, N, density=0.01, pattern=pattern)
    schedule = sparcml_ssar(n_ranks)
    mine = schedule.expand()["src"] == 0
    assert sent("sparcml_ssar", schedule, occupancy)[mine].sum() == PAIR * factor(n_ranks) * N // 100


def test_messages_become_dense_at_half_of_all_elements():
    occupancy = drawn_occupancy(4, N, density=0.2, pattern="disjoint")
    schedule = sparcml_ssar(4)
    transfers, n_bytes = schedule.expand(), sent("sparcml_ssar", schedule, occupancy)
    assert set(n_bytes[transfers["hop"] == 0]) == {PAIR * N // 5}
    assert set(n_bytes[transfers["hop"] == 1]) == {PAIR * 2 * N // 5}  # 40 % of the elements
    three = drawn_occupancy(4, N, density=0.25, pattern="disjoint")
    assert set(sent("sparcml_ssar", schedule, three)[transfers["hop"] == 1]) == {4 * N}  # 50 %: both take as much
    assert set(coo(transfer_contents(schedule, drawn_occupancy(4, N, density=1.0)))) == {8 * N}
    assert set(sent("sparcml_ssar", schedule, drawn_occupancy(4, N, density=1.0))) == {4 * N}


@given(n_ranks=st.integers(2, 17), density=st.floats(0.001, 0.02), seed=st.integers(0, 9))
@settings(max_examples=settings().max_examples * 2 // 3)
def test_split_sends_every_element_to_its_owner_once_and_gathers_the_union(n_ranks, density, seed):
    occupancy = drawn_occupancy(n_ranks, N, density=density, seed=seed)
    schedule = sparcml_split(n_ranks)
    transfers, n_bytes = schedule.expand(), sent("sparcml_split", schedule, occupancy)
    bounds = N * np.arange(n_ranks + 1) // n_ranks
    bitmap = occupancy.bitmap
    union = bitmap.any(axis=0)
    for rank in range(n_ranks):
        own = slice(bounds[rank], bounds[rank + 1])
        first = (transfers["src"] == rank) & (transfers["stage"] == 0) & (transfers["op"] == 1)
        assert n_bytes[first].sum() == PAIR * (bitmap[rank].sum() - bitmap[rank, own].sum())
        if n_ranks & (n_ranks - 1) == 0:  # beyond powers of two folded ranks get back what is theirs, too
            second = (transfers["dst"] == rank) & (transfers["op"] == 0)
            assert n_bytes[second].sum() == PAIR * (union.sum() - union[own].sum())


@pytest.mark.parametrize("n_ranks", [2, 4, 8, 16])
def test_the_second_phase_is_dense_when_asked_for_and_pays_where_the_union_is_more_than_half(n_ranks):
    totals = {}
    for density in (0.01, 0.6):
        occupancy = drawn_occupancy(n_ranks, N, density=density)
        for name, build in (("sparcml_dsar", sparcml_dsar), ("sparcml_split", sparcml_split)):
            schedule = build(n_ranks)
            copies = schedule.expand()["op"] == 0
            totals[name, density] = sent(name, schedule, occupancy)[copies].sum() / n_ranks
    for density in (0.01, 0.6):
        assert totals["sparcml_dsar", density] == (n_ranks - 1) / n_ranks * 4 * N
    assert totals["sparcml_split", 0.01] < totals["sparcml_dsar", 0.01]
    assert totals["sparcml_split", 0.6] == totals["sparcml_dsar", 0.6]  # which has switched by itself


def test_the_split_form_sends_less_than_doubling_where_lists_are_long_and_more_messages_always():
    occupancy = drawn_occupancy(16, N, density=0.02)
    assert union_density(occupancy) < 0.5
    sizes = [sent(name, COLLECTIVES[name].build(16), occupancy).sum() for name in ("sparcml_split", "sparcml_ssar")]
    assert sizes[0] < sizes[1]
    assert sparcml_split(16).n_transfers > sparcml_ssar(16).n_transfers


ZEN_FORM = COLLECTIVES["zen"].metadata["sparse"]


@pytest.mark.parametrize("pattern", ["random", "zipf", "overlapping", "disjoint"])
def test_as_lists_it_takes_the_bytes_of_the_published_formula(pattern):
    n, n_elements, density = 8, 400_000, 0.05
    occupancy = drawn_occupancy(n, n_elements, density=density, pattern=pattern)
    n_bytes = coo(transfer_contents(zen(n), occupancy, hashed=True))
    # (n-1)/n (gamma^n + 1) 2 M d, with M = 4 bytes an element; sent or received by a rank, so half of what all send
    formula = (n - 1) / n * (densification(occupancy) + 1) * 2 * 4 * n_elements * density
    assert n_bytes.sum() / n == pytest.approx(formula, rel=0.01)


@given(n_ranks=st.integers(2, 9), k=st.integers(1, 400), seed=st.integers(0, 5))
@settings(max_examples=settings().max_examples * 2 // 3)
def test_elements_go_to_the_rank_of_their_hash_and_come_back_behind_a_bitmap(n_ranks, k, seed):
    n_elements = 1000
    occupancy = drawn_occupancy(n_ranks, n_elements, density=k / n_elements, seed=seed)
    schedule = zen(n_ranks)
    transfers, n_bytes = schedule.expand(), ZEN_FORM.transfer_bytes(schedule, occupancy, {})
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

    hashed = received(zen(n), ZEN_FORM.transfer_bytes(zen(n), occupancy, {}))
    ranges = received(sparcml_split(n), coo(transfer_contents(sparcml_split(n), occupancy)))
    assert hashed.max() / hashed.mean() < 1.1
    assert ranges.max() / ranges.mean() > 2
