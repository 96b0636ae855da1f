import pytest

from collectives.parameter_server import parameter_server
from collectives.ring import ring_all_reduce
from commsim.advice.effort import MOST_MEETINGS, MOST_TRANSFERS, Effort, effort_of


@pytest.mark.nojit
def test_what_is_counted_is_that_of_the_schedule():
    effort = effort_of(parameter_server(4, n_servers=2, n_partitions=3), uneven=False)
    assert effort == Effort(transfers=2 * 4 * 2 * 3, wires=2 * 4 * 2, addresses=6 * 6, uneven=False)
    assert effort_of(ring_all_reduce(5), uneven=True) == Effort(40, 5, 25, True)


@pytest.mark.nojit
def test_partitions_multiply_transfers_and_addresses_but_not_wires():
    one = Effort(transfers=1000, wires=100, addresses=10, uneven=False)
    most = int(MOST_TRANSFERS / 1000)
    assert one.fits(most - 1)
    assert not one.fits(most + 1)
    assert not Effort(1, 2**20, 1, False).fits()
    assert not Effort(1, 1, 2**20, False).fits()


@pytest.mark.nojit
def test_uneven_messages_are_counted_by_those_that_they_meet():
    n = 2 * int(MOST_MEETINGS**0.5)
    assert Effort(n, n, 1, uneven=False).fits()
    assert not Effort(n, n, 1, uneven=True).fits()
