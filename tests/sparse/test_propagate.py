import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_sparse import slow_contents
from sparse_run import run_sparse

from collectives import COLLECTIVES
from commsim.core.errors import InputError, ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import COPY, SCRATCH
from commsim.sparse.block_sets import UNLIMITED, limits_of
from commsim.sparse.encodings import bitmap, blocks, coo, dense
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.propagate import transfer_contents
from commsim.sparse.sparse_vector import SparseVector
from commsim.sparse.union_density import densification, union_density

ALL_REDUCES = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["operation"] == "all_reduce"]


def through_servers(n_ranks, n_servers, n_chunks):
    """All-reduce by servers, chunk c at server c mod n_servers."""
    p = Program(n_ranks, n_chunks, n_helpers=n_servers)
    rank, chunk = (x.ravel() for x in np.meshgrid(np.arange(n_ranks), np.arange(n_chunks)))
    p.reduce(chunk, src=rank, dst=n_ranks + chunk % n_servers)
    p.copy(chunk, src=n_ranks + chunk % n_servers, dst=rank)
    return p.build("servers", "all_reduce")


def gathered_by_ring(n_ranks):
    """All-reduce by passing every rank's vector around through scratch, each adding what it sees."""
    p = Program(n_ranks, 1, n_scratch=2)
    rank = np.arange(n_ranks)
    after = (rank + 1) % n_ranks
    p.copy(src=rank, dst=after, src_chunk=0, dst_chunk=0, dst_buffer=SCRATCH)
    for step in range(n_ranks - 1):
        here, there = step % 2, (step + 1) % 2
        p.reduce(src=rank, dst=rank, src_chunk=here, dst_chunk=0, src_buffer=SCRATCH)
        if step < n_ranks - 2:
            p.copy(src=rank, dst=after, src_chunk=here, dst_chunk=there, src_buffer=SCRATCH, dst_buffer=SCRATCH)
    return p.build("gathered", "all_reduce")


def tree(n_ranks):
    """All-reduce of one chunk up and down a binomial tree; n_ranks a power of two."""
    p = Program(n_ranks, 1)
    distances = [2**j for j in range(n_ranks.bit_length() - 1)]
    for distance in distances:
        low = np.arange(0, n_ranks, 2 * distance)
        p.reduce(0, src=low + distance, dst=low)
    for distance in reversed(distances):
        low = np.arange(0, n_ranks, 2 * distance)
        p.copy(0, src=low, dst=low + distance)
    return p.build("tree", "all_reduce")


def drawn_bitmap(seed, density, n_ranks, n_blocks):
    return np.random.default_rng(seed).random((n_ranks, n_blocks)) < density


def as_rows(contents):
    fields = (contents.blocks, contents.elements, contents.all_blocks, contents.all_elements)
    return list(zip(*(field.tolist() for field in fields), strict=True))


def at_random(rng, n_ranks, n_helpers, n_chunks, n_hops):
    """Any hops that read what is written and copy to where nobody else writes."""
    p = Program(n_ranks, n_chunks, n_helpers=n_helpers)
    n = n_ranks + n_helpers
    written = np.zeros((n, n_chunks), bool)
    written[:n_ranks] = True
    for _ in range(n_hops):
        src, chunk = np.nonzero(written)
        some = rng.random(len(src)) < 0.7
        src, chunk = src[some], chunk[some]
        dst = (src + rng.integers(1, n, len(src))) % n if n > 1 else src
        if rng.random() < 0.3:
            _, first = np.unique(dst * n_chunks + chunk, return_index=True)
            src, dst, chunk = src[first], dst[first], chunk[first]
            p.copy(chunk, src=src, dst=dst)
        else:
            p.reduce(chunk, src=src, dst=dst)
        written[dst, chunk] = True
    return p.build("at_random")


@given(
    n_ranks=st.integers(1, 6),
    n_helpers=st.integers(0, 3),
    n_chunks=st.integers(1, 4),
    n_hops=st.integers(0, 8),
    hashed=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_schedule_is_played_as_on_python_sets(n_ranks, n_helpers, n_chunks, n_hops, hashed, seed):
    rng = np.random.default_rng(seed)
    schedule = at_random(rng, n_ranks, n_helpers, n_chunks, n_hops)
    given_bitmap = rng.random((n_ranks, 90)) < 0.15
    got = transfer_contents(schedule, Occupancy.from_bitmap(given_bitmap, 179, 2), hashed=hashed)
    assert as_rows(got) == slow_contents(schedule, given_bitmap.tolist(), 179, 2, hashed)


@given(n_ranks=st.integers(2, 6), n_hops=st.integers(1, 6), least=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_any_truncated_schedule_sends_as_much_as_the_numeric_one(n_ranks, n_hops, least, seed):
    rng = np.random.default_rng(seed)
    schedule = at_random(rng, n_ranks, 1, 1, n_hops)
    transfers = schedule.expand()
    keep = least + n_hops - transfers["hop"].astype(np.int64)  # falls from hop to hop
    keep[(transfers["op"] == COPY) & (rng.random(len(keep)) < 0.5)] = UNLIMITED  # a copy need not cut again
    gradients = rng.standard_normal((n_ranks, 60)) * (rng.random((n_ranks, 60)) < 0.2)
    vectors = [SparseVector.from_dense(gradient) for gradient in gradients]
    got = transfer_contents(schedule, Occupancy.from_bitmap(gradients != 0, 60), keep=keep)
    assert got.elements.tolist() == run_sparse(schedule, vectors, keep=keep).sent.tolist()


def test_truncated_blocks_count_as_whole_ones():
    occupancy = Occupancy.from_bitmap(np.ones((2, 3)), 8, 3)  # the last block has 2 elements
    contents = transfer_contents(tree(2), occupancy, keep=2)
    assert contents.elements.tolist() == [8, 6]  # what is sent first has not been cut yet
    assert contents.all_elements.tolist() == [8, 8]


@st.composite
def schedules(draw):
    kind = draw(st.sampled_from(["servers", "gathered", "tree", "registered"]))
    n_ranks = draw(st.integers(1, 9))
    if kind == "servers":
        return through_servers(n_ranks, draw(st.integers(1, 4)), draw(st.integers(1, 12)))
    if kind == "gathered":
        return gathered_by_ring(n_ranks) if n_ranks > 1 else tree(1)
    if kind == "tree":
        return tree(2 ** draw(st.integers(0, 3)))
    entry = COLLECTIVES[draw(st.sampled_from(ALL_REDUCES))]
    return entry.build(n_ranks, **({"n_chunks": 5} if "n_chunks" in entry.parameters else {}))


@given(
    schedule=schedules(),
    n_blocks=st.integers(1, 150),
    block=st.integers(1, 5),
    short=st.integers(0, 4),
    density=st.sampled_from([0, 0.05, 0.5, 1]),
    hashed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_kernel_is_the_play_on_python_sets(schedule, n_blocks, block, short, density, hashed, seed):
    given_bitmap = drawn_bitmap(seed, density, schedule.n_ranks, n_blocks)
    n_elements = n_blocks * block - min(short, block - 1)
    occupancy = Occupancy.from_bitmap(given_bitmap, n_elements, block)
    got = transfer_contents(schedule, occupancy, hashed=hashed)
    assert as_rows(got) == slow_contents(schedule, given_bitmap.tolist(), n_elements, block, hashed)


@pytest.mark.nojit
@pytest.mark.parametrize("hashed", [False, True])
def test_the_kernel_is_the_play_on_python_sets_without_compilation(hashed):
    for schedule in (through_servers(3, 2, 5), gathered_by_ring(4), tree(4)):
        given_bitmap = drawn_bitmap(0, 0.2, schedule.n_ranks, 150)
        got = transfer_contents(schedule, Occupancy.from_bitmap(given_bitmap, 449, 3), hashed=hashed)
        assert as_rows(got) == slow_contents(schedule, given_bitmap.tolist(), 449, 3, hashed)


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", ALL_REDUCES)
def test_messages_are_as_long_as_those_of_the_numeric_run(name):
    schedule = COLLECTIVES[name].build(6)
    gradients = drawn_gradients(drawn_occupancy(6, 300, density=0.1), whole=True)
    vectors = [SparseVector.from_dense(gradient) for gradient in gradients]
    got = transfer_contents(schedule, drawn_occupancy(6, 300, density=0.1))
    assert got.elements.tolist() == run_sparse(schedule, vectors).sent.tolist()


@pytest.mark.parametrize("name", ALL_REDUCES)
def test_a_dense_tensor_costs_what_dense_chunks_do(name):
    schedule = COLLECTIVES[name].build(8)
    n = 8 * schedule.n_chunks
    full = Occupancy.from_bitmap(np.ones((8, n)), n)
    expected = schedule.expand()["count"] * 8.0 * 4
    assert np.array_equal(dense(transfer_contents(schedule, full)), expected)
    assert np.array_equal(coo(transfer_contents(schedule, full)), 2 * expected)


@given(
    pattern=st.sampled_from(PATTERNS),
    density=st.sampled_from([0.01, 0.05, 0.1]),
    n_ranks=st.integers(1, 8),
    n_servers=st.integers(1, 4),
    n_chunks=st.integers(1, 60),
    block=st.sampled_from([1, 32, 256]),
)
def test_every_worker_sends_its_density_and_gets_the_union_back(pattern, density, n_ranks, n_servers, n_chunks, block):
    n_blocks = 2000
    occupancy = drawn_occupancy(n_ranks, n_blocks * block, density=density, block=block, pattern=pattern)
    schedule = through_servers(n_ranks, n_servers, n_chunks)
    contents = transfer_contents(schedule, occupancy)
    transfers, size = schedule.expand(), n_blocks * block * 4
    values = contents.elements * 4
    for rank in range(n_ranks):
        assert values[transfers["src"] == rank].sum() == round(density * n_blocks) * block * 4  # up = d S
        # down = U S, in whole bytes
        assert values[transfers["dst"] == rank].sum() == round(union_density(occupancy) * n_blocks) * block * 4
        assert contents.all_elements[transfers["dst"] == rank].sum() * 4 == size
    with_offsets = blocks(transfer_contents(schedule, occupancy))
    assert with_offsets.sum() == values.sum() + 4 * contents.blocks.sum()


def test_balanced_parallelism_takes_the_bytes_of_its_formula():
    n, density = 8, 0.05
    occupancy = drawn_occupancy(n, 80_000, density=density)
    p = Program(n, n)
    rank, chunk = (x.ravel() for x in np.meshgrid(np.arange(n), np.arange(n)))
    away = rank != chunk
    p.reduce(chunk[away], src=rank[away], dst=chunk[away])
    p.copy(chunk[away], src=chunk[away], dst=rank[away])
    schedule = p.build("balanced", "all_reduce")
    total = coo(transfer_contents(schedule, occupancy, hashed=True)).sum()
    # (n-1)/n (gamma^n + 1) 2 M d bytes each, on average over the hash
    formula = n * (n - 1) / n * (densification(occupancy) + 1) * 2 * 4 * 80_000 * density
    own = coo(transfer_contents(schedule, occupancy)).sum()
    assert total == pytest.approx(formula, rel=0.01)
    assert own == pytest.approx(formula, rel=0.01)


def test_incremental_merging_takes_the_bytes_of_its_formula():
    occupancy = drawn_occupancy(8, 10_000, density=0.05, pattern="disjoint")
    schedule = COLLECTIVES["recursive_doubling_all_reduce"].build(8)
    contents = transfer_contents(schedule, occupancy)
    hop = schedule.expand()["hop"]
    # sum over i = 1 .. log2 n of gamma^(2^(i-1)) 2 M d, and gamma^m = m without overlap
    for i in range(3):
        assert set(contents.elements[hop == i].tolist()) == {2**i * 500}
    one = drawn_occupancy(8, 10_000, density=0.05, pattern="overlapping")
    assert set(transfer_contents(schedule, one).elements.tolist()) == {500}


@given(
    n_ranks=st.sampled_from([1, 2, 4, 8]), k=st.integers(1, 40), density=st.floats(0.02, 0.5), seed=st.integers(0, 99)
)
def test_a_truncated_tree_sends_as_much_as_the_numeric_one(n_ranks, k, density, seed):
    n_blocks = 100
    occupancy = drawn_occupancy(n_ranks, n_blocks, density=density, seed=seed)
    vectors = [SparseVector.from_dense(g) for g in drawn_gradients(occupancy, seed=seed)]
    vectors = [v.top_k(k) for v in vectors]
    occupancy = Occupancy.from_bitmap(np.array([v.to_dense() != 0 for v in vectors]), n_blocks)
    got = transfer_contents(tree(n_ranks), occupancy, keep=k)
    assert got.elements.tolist() == run_sparse(tree(n_ranks), vectors, keep=k).sent.tolist()
    assert (got.blocks <= k).all()


def test_the_gtop_k_tree_sends_k_each_way():
    occupancy = drawn_occupancy(8, 1000, density=0.02)
    assert coo(transfer_contents(tree(8), occupancy, keep=20)).tolist() == [160.0] * 14


def test_a_limit_may_fall_but_not_rise():
    occupancy = drawn_occupancy(4, 1000, density=0.02)
    falling = np.array([20, 20, 10, 5, 5, 5])
    assert transfer_contents(tree(4), occupancy, keep=falling).blocks.tolist() == [20, 20, 20, 10, 10, 5]
    rising = np.array([20, 20, 25, UNLIMITED, UNLIMITED, UNLIMITED])
    with pytest.raises(InputError, match="in hop 1 participant 0 merges truncated chunks and keeps more"):
        transfer_contents(tree(4), occupancy, keep=rising)
    few = drawn_occupancy(4, 1000, density=0.005)
    united = transfer_contents(tree(4), few, keep=rising)  # nothing is cut, so nothing is unknown
    assert np.array_equal(united.blocks, transfer_contents(tree(4), few).blocks)


def test_reads_of_a_hop_see_the_state_before_it():
    p = Program(2, 1)
    p.reduce(0, src=[0, 1], dst=[1, 0])
    p.reduce(0, src=[0, 1], dst=[1, 0])
    exchange = p.build()
    occupancy = Occupancy.from_bitmap([[1, 1, 0, 0], [0, 1, 1, 1]], 4)
    assert transfer_contents(exchange, occupancy).blocks.tolist() == [2, 3, 4, 4]


def test_a_schedule_that_makes_no_sense_is_refused():
    occupancy = Occupancy.from_bitmap(np.ones((2, 4)), 4)
    p = Program(2, 1, n_helpers=1)
    p.copy(0, src=2, dst=0)
    with pytest.raises(ScheduleError, match="in hop 0 participant 2 sends chunk 0, which no transfer has written"):
        transfer_contents(p.build(), occupancy)
    p = Program(2, 2)
    p.reduce(src=0, dst=1, src_chunk=0, dst_chunk=1)
    with pytest.raises(ScheduleError, match="participant 1 adds different chunks to each other, into chunk 1"):
        transfer_contents(p.build(), occupancy)


def test_what_does_not_fit_the_schedule_is_refused():
    occupancy = Occupancy.from_bitmap(np.ones((2, 4)), 4)
    with pytest.raises(InputError, match="tree has 4 ranks, the occupancy is that of 2 ranks"):
        coo(transfer_contents(tree(4), occupancy))
    with pytest.raises(InputError, match="value_bytes=0"):
        coo(transfer_contents(tree(2), occupancy, value_bytes=0))
    with pytest.raises(InputError, match="keep must be"):
        coo(transfer_contents(tree(2), occupancy, keep=0))
    with pytest.raises(InputError, match=r"would take \d+ GiB of memory, .*: ask for fewer chunks"):
        coo(transfer_contents(Program(2, 2**30).build(), occupancy))


def test_messages_of_empty_chunks_are_empty():
    occupancy = Occupancy.from_bitmap(np.ones((4, 2)), 2)
    schedule = through_servers(4, 1, 5)
    contents = transfer_contents(schedule, occupancy)
    assert contents.all_blocks.sum() == 2 * 4 * 2
    assert bitmap(transfer_contents(schedule, occupancy))[contents.all_blocks == 0].tolist() == [0.0] * 24


def test_what_a_whole_message_holds_need_not_be_known():
    p = Program(2, 1, n_scratch=1)
    p.copy(src=[0, 1], dst=[0, 1], src_chunk=0, dst_chunk=0, dst_buffer=2)  # cut to 3 blocks
    p.reduce(src=0, dst=1, src_chunk=0, dst_chunk=0, src_buffer=2, dst_buffer=2)
    p.copy(src=1, dst=0, src_chunk=0, dst_chunk=0, src_buffer=2)  # between 3 and 6 of 10
    schedule, occupancy = p.build(), Occupancy.from_bitmap(np.ones((2, 10), np.bool_), 19, 2)
    keep = [3, 3, 10, 10]
    with pytest.raises(InputError, match="in hop 1 participant 1 merges truncated chunks and keeps more"):
        transfer_contents(schedule, occupancy, keep=keep)
    contents = transfer_contents(schedule, occupancy, keep=keep, whole=np.array([False, False, False, True]))
    assert contents.blocks.tolist() == [10, 10, 3, 10]
    assert contents.elements.tolist() == [19, 19, 6, 19]


def test_a_message_of_several_lists_of_one_chunk_holds_the_short_last_block_once_for_each():
    schedule, bitmap = COLLECTIVES["topk_a"].build(4), np.ones((4, 3), np.bool_)
    got = transfer_contents(schedule, Occupancy.from_bitmap(bitmap, 5, 2))
    assert as_rows(got) == slow_contents(schedule, bitmap.tolist(), 5, 2)
    assert (got.elements == got.all_elements).all()
    assert got.elements.max() == 10  # two lists of 5 elements


@pytest.mark.nojit
def test_one_limit_is_that_of_every_transfer():
    assert limits_of(None, 2).tolist() == [UNLIMITED] * 2
    assert limits_of(7, 3).tolist() == [7, 7, 7]
    assert limits_of([1, UNLIMITED], 2).tolist() == [1, UNLIMITED]
    assert limits_of(None, 0).tolist() == []


@pytest.mark.nojit
@pytest.mark.parametrize("keep", [0, -1, [1, 0], 1.5, [1, 2, 3], np.nan, "5"])
def test_other_limits_are_refused(keep):
    with pytest.raises(InputError, match="keep must be"):
        limits_of(keep, 2)
