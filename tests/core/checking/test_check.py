import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from commsim.core.checking.check import Fingerprints, check
from commsim.core.errors import ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, SCRATCH


def sum_to_all(n_ranks, skip=None, twice=None):
    """Every rank sends its chunk to rank 0, which sends the sum back."""
    p = Program(n_ranks, 1)
    senders = [r for r in range(1, n_ranks) if r != skip]
    p.reduce(0, src=senders, dst=0)
    if twice is not None:
        p.reduce(0, src=twice, dst=0)
    p.copy(0, src=0, dst=np.arange(1, n_ranks))
    return p.build("sum_to_all", "all_reduce")


@pytest.mark.parametrize("n_ranks", [4, 100])
def test_a_right_schedule_passes(n_ranks):
    report = check(sum_to_all(n_ranks))
    assert report.method == ("exact" if n_ranks <= 64 else "fingerprint")
    assert report.n_transfers == 2 * (n_ranks - 1)


@pytest.mark.parametrize("n_ranks", [5, 100])
def test_a_lost_contribution_is_found(n_ranks):
    with pytest.raises(ScheduleError, match="rank 0 ends with chunk 0 wrong"):
        check(sum_to_all(n_ranks, skip=3))


@pytest.mark.parametrize("n_ranks", [5, 100])
def test_a_contribution_counted_twice_is_found(n_ranks):
    with pytest.raises(ScheduleError, match="rank 0 ends with chunk 0 wrong"):
        check(sum_to_all(n_ranks, twice=2))


def test_the_message_names_rank_chunk_and_origin():
    with pytest.raises(
        ScheduleError, match="rank 0 ends with chunk 0 wrong: the contribution of rank 2 is in it 2 times"
    ):
        check(sum_to_all(4, twice=2))


def test_a_lost_and_a_doubled_contribution_do_not_cancel():
    with pytest.raises(ScheduleError):
        check(sum_to_all(100, skip=3, twice=2))


def test_a_chunk_in_the_wrong_place_is_found():
    p = Program(2, 2)
    p.copy(src=[0, 1], dst=[1, 0], src_chunk=[0, 1], dst_chunk=[1, 0])
    with pytest.raises(ScheduleError, match=r"holds chunk (0 where 1|1 where 0) belongs"):
        check(p.build("swap", "all_gather"))


def test_adding_different_chunks_is_refused():
    p = Program(2, 2)
    p.reduce(src=0, dst=1, src_chunk=0, dst_chunk=1)
    with pytest.raises(ScheduleError, match="adds different chunks"):
        check(p.build("mix", "all_reduce"))


def test_sending_what_nobody_wrote_is_refused():
    p = Program(3, 3)
    p.copy(1, src=0, dst=2)
    with pytest.raises(ScheduleError, match="participant 0 sends chunk 1, which no transfer has written"):
        check(p.build("early", "all_gather"))


def test_reads_of_a_hop_see_the_state_before_it():
    p = Program(2, 1)
    p.reduce(0, src=[0, 1], dst=[1, 0])
    assert check(p.build("exchange", "all_reduce")).method == "exact"
    q = Program(2, 1)
    q.reduce(0, src=0, dst=1)
    q.reduce(0, src=1, dst=0)  # a second hop sends the sum, so rank 0 counts itself twice
    with pytest.raises(ScheduleError, match="rank 0 is in it 2 times"):
        check(q.build("not an exchange", "all_reduce"))


def test_two_copies_to_one_chunk_in_one_hop_are_refused():
    p = Program(3, 1)
    p.copy(0, src=[0, 1], dst=[2, 2])
    with pytest.raises(ScheduleError, match="twice"):
        check(p.build("race", "all_reduce"))


def test_adding_to_what_a_buffer_happens_to_hold_is_refused():
    p = Program(2, 2)
    p.reduce([0, 1], src=[0, 1], dst=[1, 0])
    with pytest.raises(ScheduleError, match="participant 1 adds to memory that holds no contribution, into chunk 0"):
        check(p.build("sum over garbage", "all_gather"))


@pytest.mark.parametrize("doublings", [31, 32, 63, 64])
def test_no_number_of_doublings_wraps_around_to_one(doublings):
    p = Program(2, 1, n_helpers=1)
    p.copy(0, src=0, dst=2)
    for _ in range(doublings):
        p.reduce(0, src=2, dst=2)
    p.reduce(0, src=[0, 1], dst=2)  # 2**32 + 1 and 2**64 + 1 are 1 to a counter that overflows
    p.copy(0, src=2, dst=[0, 1])
    with pytest.raises(ScheduleError, match="the contribution of rank 0 is in it"):
        check(p.build("doubling", "all_reduce"))


def test_helpers_start_empty_so_reducing_into_them_is_a_copy_first():
    p = Program(3, 1, n_helpers=1)
    p.reduce(0, src=[0, 1, 2], dst=3)
    p.copy(0, src=3, dst=[0, 1, 2])
    assert check(p.build("server", "all_reduce")).method == "exact"


def test_scratch_and_output_are_memory_of_their_own():
    p = Program(2, 2, n_scratch=1)
    p.copy(src=[0, 1], dst=[1, 0], src_chunk=[1, 0], dst_chunk=0, dst_buffer=SCRATCH)
    p.copy(src=[0, 1], dst=[0, 1], src_chunk=0, dst_chunk=[1, 0], src_buffer=SCRATCH, dst_buffer=OUTPUT)
    p.copy(src=[0, 1], dst=[0, 1], src_chunk=[0, 1], dst_chunk=[0, 1], dst_buffer=OUTPUT)
    assert check(p.build("through scratch", "all_to_all")).method == "exact"


def test_a_schedule_that_promises_nothing_cannot_be_checked():
    with pytest.raises(ScheduleError, match="has no postcondition"):
        check(Program(2, 1).build())


@given(
    name=st.sampled_from(["ring_all_reduce", "double_tree_all_reduce", "halving_doubling_all_reduce"]), data=st.data()
)
def test_leaving_out_any_transfer_is_found(name, data):
    n_ranks = data.draw(st.integers(2, 9))
    parameters = {"n_chunks": 2} if "double" in name else {}
    transfers = COLLECTIVES[name].build(n_ranks, **parameters).expand()
    lost = data.draw(st.integers(0, len(transfers) - 1))
    p = Program(n_ranks, int(transfers["dst_chunk"].max() + transfers["count"].max()))
    schedule = COLLECTIVES[name].build(n_ranks, **parameters)
    p = Program(n_ranks, schedule.n_chunks)
    kept = np.delete(transfers, lost)
    for hop in np.unique(kept["hop"]):
        now = kept[kept["hop"] == hop]
        for op, write in ((1, p.reduce), (0, p.copy)):
            part = now[now["op"] == op]
            if part.size:
                write(part["src_chunk"], src=part["src"], dst=part["dst"], count=part["count"], channel=part["channel"])
    with pytest.raises(ScheduleError):
        check(p.build(name, "all_reduce"))


@given(st.lists(st.integers(0, 2**61 - 2), min_size=1, max_size=20), st.integers(0, 5))
def test_fingerprints_add_like_whole_numbers_modulo_the_prime(values, start):
    content = Fingerprints(2, 0)
    into = np.array([start, 7], np.uint64)
    where = np.zeros(len(values), np.int64)
    content.add(into, where, np.array(values, np.uint64))
    assert int(into[0]) == (start + sum(values)) % (2**61 - 1)
    assert int(into[1]) == 7
