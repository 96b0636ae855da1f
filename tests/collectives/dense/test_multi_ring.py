import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.multi_ring import leaving, multi_ring_all_reduce, ring_order
from commsim.core.checking.check import check
from commsim.core.errors import InputError


@given(machines=st.lists(st.integers(1, 5), min_size=1, max_size=5), n_channels=st.integers(1, 6), order=st.randoms())
def test_rings_over_machines_of_any_sizes_are_an_all_reduce_of_the_least_volume(machines, n_channels, order):
    n_ranks = sum(machines)
    ranks = list(range(n_ranks))
    order.shuffle(ranks)
    ends = np.cumsum(machines)
    groups = tuple(tuple(ranks[end - size : end]) for size, end in zip(machines, ends, strict=True))
    schedule = multi_ring_all_reduce(n_ranks, n_channels, groups)
    assert check(schedule).method == "exact"
    sent, received, messages = volumes(schedule)
    np.testing.assert_allclose(sent, 2 * (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == 2 * (n_ranks - 1) * n_channels).all()


@pytest.mark.parametrize("n_machines", [2, 4, 6])
@pytest.mark.parametrize("n_channels", [1, 3, 4])
def test_each_ring_leaves_and_enters_machines_on_the_same_rail_and_rails_are_used_alike(n_machines, n_channels):
    rails = 4
    groups = tuple(tuple(range(rails * i, rails * i + rails)) for i in range(n_machines))
    transfers = multi_ring_all_reduce(rails * n_machines, n_channels, groups).expand()
    across = transfers[transfers["src"] // rails != transfers["dst"] // rails]
    assert (across["src"] % rails == across["dst"] % rails).all()
    used = {(int(t["channel"]), int(t["src"]), int(t["dst"])) for t in across}
    assert len(used) == n_channels * n_machines
    assert len({(src, dst) for _, src, dst in used}) == len(used)  # no two rings share a rail in one direction
    leaving_even = {(channel, src % rails) for channel, src, _ in used if src // rails % 2 == 0}
    assert leaving_even == {(c, c * (rails // n_channels)) for c in range(n_channels)}


def test_members_that_share_rails_are_taken_rail_by_rail() -> None:
    assert [leaving(4, channel) for channel in range(5)] == [0, 1, 2, 3, 0]
    assert [leaving(4, channel, 2) for channel in range(5)] == [0, 2, 1, 3, 0]
    assert [leaving(8, channel, 4) for channel in range(8)] == [0, 2, 4, 6, 1, 3, 5, 7]
    assert [leaving(4, channel, 1) for channel in range(5)] == [0, 1, 2, 3, 0]
    assert [leaving(2, channel, 8) for channel in range(9)] == [0, 0, 0, 0, 1, 1, 1, 1, 0]


def test_an_odd_number_of_machines_changes_rails_once():
    groups = tuple(tuple(range(4 * i, 4 * i + 4)) for i in range(3))
    order = ring_order(groups, 1)
    crossing = [(a, b) for a, b in zip(order, np.roll(order, -1), strict=True) if a // 4 != b // 4]
    assert sum(a % 4 != b % 4 for a, b in crossing) == 1


def test_each_ring_is_a_channel_with_an_equal_part():
    transfers = multi_ring_all_reduce(6, 3).expand()
    assert (transfers["channel"] == transfers["src_chunk"] % 3).all()
    assert np.bincount(transfers["channel"]).tolist() == [len(transfers) / 3] * 3


def test_rings_of_a_hundred_thousand_ranks_are_two_rounds():
    assert [len(block.body) for block in multi_ring_all_reduce(131_072, 2).blocks] == [2 * 131_072] * 2


@pytest.mark.parametrize("n_channels", [0, -1, 65])
def test_numbers_of_channels_that_make_no_sense_are_refused(n_channels):
    with pytest.raises(InputError, match=f"needs 1 to 64 channels, got n_channels={n_channels}"):
        multi_ring_all_reduce(4, n_channels)


@pytest.mark.parametrize("groups", [((0, 1), (2,)), ((0, 1), (1, 2, 3)), ()])
def test_groups_that_are_no_partition_are_refused(groups):
    with pytest.raises(InputError, match=r"groups must hold each rank 0\.\.3 exactly once"):
        multi_ring_all_reduce(4, 2, groups)
