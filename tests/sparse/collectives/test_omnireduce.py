import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sparse_measures import expected_union_density
from collectives import COLLECTIVES
from collectives.sparse.omnireduce import omnireduce, streamed
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.layouts import chunk_bounds
from commsim.prediction.build import prepare
from commsim.sparse import long_occupancy
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.union_density import union_density

FORM = COLLECTIVES["omnireduce"].metadata["sparse"]
OFFSET, VALUE = 4, 4


def bytes_of(schedule, occupancy, **parameters):
    n_bytes = FORM.transfer_bytes(schedule, occupancy, parameters)
    transfers = schedule.expand()
    away = transfers["src"] != transfers["dst"]
    up = np.bincount(transfers["src"][away], weights=n_bytes[away], minlength=schedule.n_participants)
    down = np.bincount(transfers["dst"][away], weights=n_bytes[away], minlength=schedule.n_participants)
    return up, down


def first_burst(n_blocks, n_threads, slots, n_aggregators, fusion):
    """Blocks of the first burst, found by walking through every thread's messages."""
    n_messages = -(-n_blocks // fusion)
    bounds = [n_messages * t // n_threads for t in range(n_threads + 1)]
    sent = np.zeros(n_blocks, np.bool_)
    for begin, end in itertools.pairwise(bounds):
        for message in range(begin, min(end, begin + slots * n_aggregators)):
            sent[message * fusion : (message + 1) * fusion] = True
    return sent


@pytest.mark.parametrize("colocated", [False, True])
@given(n_ranks=st.integers(1, 17), data=st.data())
@settings(max_examples=settings().max_examples * 2 // 3)
def test_it_is_an_all_reduce_with_any_aggregators_and_pool(colocated, n_ranks, data):
    schedule = omnireduce(
        n_ranks,
        data.draw(st.integers(1, n_ranks if colocated else 9)),
        colocated,
        data.draw(st.integers(1, 6)),
        data.draw(st.one_of(st.none(), st.integers(1, 7))),
    )
    assert check(schedule).method == "exact"
    assert schedule.n_helpers == 0 if colocated or n_ranks == 1 else schedule.n_helpers > 0


@given(data=st.data(), n_ranks=st.integers(2, 9), n_aggregators=st.integers(1, 8))
def test_up_go_a_ranks_own_blocks_and_down_the_union_with_offsets_and_the_first_burst(data, n_ranks, n_aggregators):
    n_blocks, block = data.draw(st.integers(1, 400)), data.draw(st.sampled_from([1, 8, 256]))
    n_elements = n_blocks * block - data.draw(st.integers(0, block - 1))
    count = data.draw(st.integers(1, n_blocks))
    occupancy = drawn_occupancy(n_ranks, n_elements, density=count / n_blocks, block=block)
    threads, slots, fusion = (data.draw(st.integers(1, 4)) for _ in range(3))
    parameters = {"n_aggregators": n_aggregators, "slots": slots, "n_threads": threads, "fusion": fusion}
    up, down = bytes_of(omnireduce(n_ranks, **parameters), occupancy, **parameters)
    burst = first_burst(n_blocks, threads, slots, n_aggregators, fusion)

    def size(sent):
        elements = sent.sum() * block - (n_blocks * block - n_elements if sent[-1] else 0)
        return VALUE * elements + OFFSET * sent.sum()

    bitmap = occupancy.bitmap
    for rank in range(n_ranks):
        assert up[rank] == size(bitmap[rank] | burst)
        assert down[rank] == size(bitmap.any(axis=0) | burst)
    assert up[n_ranks:].sum() == n_ranks * down[0]
    assert down[n_ranks:].sum() == up[:n_ranks].sum()


def test_the_first_burst_is_shared_evenly_by_the_aggregators():
    empty = Occupancy.from_bitmap(np.zeros((2, 102_400)), 102_400 * 256, 256)
    parameters = {"n_aggregators": 8}
    up, down = bytes_of(omnireduce(2, **parameters), empty, **parameters)
    each = 8 * 8 * 1028  # threads, slots, bytes of a block with its offset
    assert up[:2].tolist() == [8 * each, 8 * each]
    assert down[2:].tolist() == [2 * each] * 8


@given(n_blocks=st.integers(1, 300), n_aggregators=st.integers(1, 9), data=st.data())
def test_the_stream_is_another_order_of_the_same_blocks_with_the_short_one_last(n_blocks, n_aggregators, data):
    bitmap = data.draw(st.lists(st.booleans(), min_size=n_blocks, max_size=n_blocks))
    occupancy = Occupancy.from_bitmap([bitmap, bitmap], n_blocks * 3 - 1, 3)
    parameters = {"n_aggregators": n_aggregators, "slots": 1, "n_threads": data.draw(st.integers(1, 5))}
    sent = streamed(omnireduce(2, **parameters), occupancy, parameters)
    burst = first_burst(n_blocks, parameters["n_threads"], 1, n_aggregators, 1)
    assert sent.counts.tolist() == [(np.array(bitmap) | burst).sum()] * 2
    assert sent.bitmap_of(0)[-1] == bool(bitmap[-1] or burst[-1])


def sorted_stream(n_blocks, n_threads, slots, a, k, fusion):
    """Return the order of all blocks by a sort of them, and which are in the first burst."""
    message = np.arange(n_blocks) // fusion
    bounds = chunk_bounds(int(message[-1]) + 1, n_threads)
    thread = np.searchsorted(bounds, message, side="right") - 1
    turn = message - bounds[thread]
    order = np.lexsort((turn % a, turn * k // np.diff(bounds)[thread]))
    order = np.append(order[order != n_blocks - 1], n_blocks - 1)
    return order, (turn < slots * a)[order]


@given(
    n_blocks=st.integers(1, 700), a=st.integers(1, 5), k=st.integers(1, 9), n_threads=st.integers(1, 5),
    fusion=st.integers(1, 4), piece=st.sampled_from([64, 192, 2**20]),
)  # fmt: skip
def test_a_stream_that_is_written_in_pieces_is_the_sorted_one(n_blocks, a, k, n_threads, fusion, piece):
    occupancy = drawn_occupancy(3, 4 * n_blocks - 1, density=0.3, block=4)
    parameters = {"n_aggregators": a, "n_partitions": k, "n_threads": n_threads, "fusion": fusion, "slots": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_occupancy, "PIECE", piece)
        sent = streamed(omnireduce(3, **parameters), occupancy, parameters)
    order, burst = sorted_stream(n_blocks, n_threads, 2, a, k, fusion)
    assert np.array_equal(sent.bitmap, occupancy.bitmap[:, order] | burst)


@pytest.mark.parametrize("density", [0.01, 0.02, 0.04, 0.08, 0.1, 0.2, 0.4, 0.8])
def test_the_unions_of_blocks_drawn_with_seed_rank_are_those_of_independent_draws(density):
    # the table of the authors' micro-benchmark: 102,400 blocks of 256 elements, 8 workers
    table = {0.8: 1.0, 0.4: 0.9832, 0.2: 0.8322, 0.1: 0.5695, 0.08: 0.4868, 0.04: 0.2786, 0.02: 0.1492, 0.01: 0.0773}
    assert round(expected_union_density(density, 8), 4) == table[density]
    drawn = union_density(drawn_occupancy(8, 26_214_400, density=density, block=256))
    assert drawn == pytest.approx(table[density], abs=3 * np.sqrt(0.25 / 102_400))


def test_colocated_the_own_part_of_a_rank_crosses_no_link():
    n, n_blocks = 4, 4_000
    occupancy = drawn_occupancy(n, n_blocks * 256, density=0.25, block=256, pattern="overlapping")
    parameters = {"colocated": True, "slots": 1, "n_threads": 1}
    up, down = bytes_of(omnireduce(n, colocated=True), occupancy, **parameters)
    burst = first_burst(n_blocks, 1, 1, n, 1)
    sent = (occupancy.bitmap_of(0) | burst).sum() * 1028
    # a rank pushes all but its own share and, as an aggregator, sends its share of the union to all others
    assert up.sum() == down.sum() == 2 * (n - 1) * sent
    assert up == pytest.approx(np.full(n, 2 * (n - 1) / n * sent), rel=0.2)


def test_dense_time_is_flat_in_the_number_of_ranks_where_the_ring_grows():
    def time(spec: str, n_ranks: int) -> float:
        return prepare(spec, "star:n_hosts=24,bandwidth=100Gbps,latency=0us", n_ranks=n_ranks).predict(2**26).time

    flat = [time("omnireduce:n_aggregators=8,density=1", n) for n in (2, 4, 8)]
    ring = [time("ring_all_reduce", n) for n in (2, 4, 8)]
    assert max(flat) / min(flat) < 1.03
    assert [t / ring[0] for t in ring] == pytest.approx([1.0, 1.5, 1.75])  # 2(n-1)/n


def test_a_small_pool_leaves_links_idle_and_a_large_one_does_not():
    def time(pool: str) -> float:
        spec = f"omnireduce:n_aggregators=2,n_partitions=32{pool}"
        return prepare(spec, "star:n_hosts=6,bandwidth=100Gbps,latency=50us", n_ranks=4).predict(2**22).time

    assert time(",pool=1") > 1.5 * time("")
    assert time(",pool=32") == time("")
    assert time(",pool=1") > time(",pool=2") > time(",pool=8")


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_aggregators": 0}, "needs n_aggregators of at least 1, got n_aggregators=0"),
        ({"n_aggregators": 5, "colocated": True}, "n_aggregators must be 1..4, got 5"),
        ({"pool": 0}, "needs pool of at least 1, got pool=0"),
        ({"slots": 0}, "needs slots of at least 1, got slots=0"),
        ({"n_threads": -1}, "needs n_threads of at least 1, got n_threads=-1"),
        ({"fusion": 0}, "needs fusion of at least 1, got fusion=0"),
        ({"n_partitions": 0}, "needs n_partitions of at least 1, got n_partitions=0"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        omnireduce(4, **parameters)


@pytest.mark.nojit
def test_colocated_aggregators_have_a_closed_form_only_at_every_rank():
    from commsim.core.cost import LogGP

    with pytest.raises(InputError, match="one colocated with each rank"):
        COLLECTIVES["omnireduce"].metadata["cost"](4, 1e6, LogGP(), n_aggregators=2, colocated=True)
