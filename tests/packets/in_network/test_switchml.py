import pytest
from volumes import volumes

from collectives.in_network.switchml import switchml, switchml_cost
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.prediction.build import prepare


@pytest.mark.parametrize("n_ranks", [2, 5, 16])
def test_a_rank_sends_and_receives_each_byte_once_whatever_their_number(n_ranks):
    sent, received, _ = volumes(switchml(n_ranks, 4))
    assert sent[:n_ranks].tolist() == received[:n_ranks].tolist() == [1.0] * n_ranks
    assert sent[n_ranks] == received[n_ranks] == n_ranks


def test_the_chunks_are_one_round_that_repeats():
    for pool in (None, 16):
        schedule = switchml(1000, 4096, pool)
        assert [block.times for block in schedule.blocks] == [4096]
        assert len(schedule.blocks[0].body) == 2001 + (2000 if pool else 0)


def test_a_chunk_leaves_when_the_result_a_pool_before_it_has_come():
    schedule = switchml(2, 5, pool=2)
    check(schedule)
    assert schedule.n_scratch == 2
    assert switchml(2, 5, pool=5) == switchml(2, 5, pool=9) == switchml(2, 5)


def test_a_pool_of_a_round_trip_is_as_good_as_any():
    link = LogGP(L=5.0, B=1.0)
    round_trip = 2 * (5 + 1)  # of chunks of one byte
    times = {pool: switchml_cost(4, 1000.0, link, 1000, pool) for pool in (1, 6, round_trip, 1000, None)}
    assert times[1] == 1000 * round_trip
    assert times[6] == pytest.approx(1000 / 6 * round_trip, rel=0.01)
    assert times[round_trip] == times[1000] == times[None] == round_trip + 999


def test_an_empty_pool_is_refused():
    with pytest.raises(InputError, match="switchml needs a pool of at least 1 chunk, got pool=0"):
        switchml(4, pool=0)


def test_switches_that_add_packets_do_not_wait():
    where = "fat_tree:k=4,bandwidth=100Gbps,latency=1us"
    with pytest.raises(InputError, match="switches add packets, which have no steps that wait; system=none"):
        prepare("switchml:blocking=true", where)
    assert prepare("switchml:blocking=true,system=none", where).predict(2**20).time > 0
