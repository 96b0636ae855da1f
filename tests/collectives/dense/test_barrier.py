import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.barrier import dissemination_barrier
from commsim.core.checking.check import check
from commsim.core.errors import ScheduleError
from commsim.core.program import Program


@given(n_ranks=st.integers(1, 300))
def test_every_rank_signals_once_in_each_of_a_logarithm_of_rounds(n_ranks):
    schedule = dissemination_barrier(n_ranks)
    assert schedule.n_hops == (n_ranks - 1).bit_length()
    assert (volumes(schedule)[2] == schedule.n_hops).all()


@pytest.mark.parametrize("n_ranks", [100, 1000])
def test_a_barrier_is_proved_exactly_at_any_size(n_ranks):
    assert check(dissemination_barrier(n_ranks)).method == "exact"


@pytest.mark.parametrize("n_ranks", [5, 8, 100])
def test_a_round_too_few_is_found(n_ranks):
    p = Program(n_ranks, 1)
    for distance in (2**j for j in range((n_ranks - 1).bit_length() - 1)):
        p.reduce(0, src=range(n_ranks), dst=[(r + distance) % n_ranks for r in range(n_ranks)])
    with pytest.raises(ScheduleError, match=r"rank 0 ends .* contribution of rank 1 is in it 0 times, not 1"):
        check(p.build("early", "barrier"))


def test_hearing_twice_is_right_for_a_barrier_and_wrong_for_a_sum():
    p = Program(2, 1)
    for _ in range(2):
        p.reduce(0, src=[0, 1], dst=[1, 0])
    check(p.build("twice", "barrier"))
    with pytest.raises(ScheduleError):
        check(p.build("twice", "all_reduce"))
