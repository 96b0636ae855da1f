"""NCCL's all-to-all and send-receive: proved, in parts and batches, and as long as their closed forms say."""

import random

import pytest
from flow_networks import on_star

from collectives import COLLECTIVES
from commsim.core.checking.check import check
from commsim.core.cost import LogGP

LINK = LogGP(L=3e-6, o=1e-6, B=1e9)


@pytest.mark.parametrize("name", ["nccl_all_to_all", "nccl_send_recv"])
@pytest.mark.parametrize(("n_ranks", "channels"), [(1, 4), (2, 4), (5, 1), (20, 1), (8, 16)])
def test_the_time_on_a_star_is_the_closed_form(name, n_ranks, channels):
    entry, given = COLLECTIVES[name], {"channels": channels, "n_bytes": 2**24}
    schedule = entry.build(n_ranks, **given)
    check(schedule)
    expected = entry.metadata["cost"](n_ranks, 2**24, LINK, **given)
    assert on_star(schedule, 2**24, LINK).time == pytest.approx(expected, rel=1e-9, abs=0)


def test_a_channel_serves_eight_peers_and_then_the_next_eight():
    transfers = COLLECTIVES["nccl_all_to_all"].build(20, channels=1, n_bytes=20 * 2**16).expand()
    shift = (transfers["dst"] - transfers["src"]) % 20
    assert (transfers["stage"] == shift // 8).all()


@pytest.mark.parametrize("n_ranks", [2, 9, 20])
@pytest.mark.parametrize("channels", [1, 16])
def test_unequal_messages_are_proved_and_their_time_is_within_its_bounds(n_ranks, channels):
    draw = random.Random(n_ranks)
    counts = (*(draw.choice([0, 0, 1, 5, 40]) for _ in range(n_ranks**2 - 1)), 3)
    entry, given = COLLECTIVES["nccl_all_to_all_v"], {"channels": channels, "n_bytes": 2**26, "counts": counts}
    schedule = entry.build(n_ranks, **given)
    check(schedule)
    low, high = entry.metadata["bounds"](n_ranks, 2**26, LINK, **given)
    assert low * (1 - 1e-9) <= on_star(schedule, 2**26, LINK).time <= high * (1 + 1e-9)


def test_a_large_message_is_sent_in_more_parts_than_a_small_one():
    """Of 64 MiB, 63 go one way in 16 parts, and one the other way in as many as 1 MiB has: at least 64 KiB each."""
    transfers = COLLECTIVES["nccl_all_to_all_v"].build(2, counts=(0, 63, 1, 0), n_bytes=63 * 2**20).expand()
    assert [int((transfers["src"] == rank).sum()) for rank in (0, 1)] == [8, 8]
    small = COLLECTIVES["nccl_all_to_all_v"].build(2, counts=(0, 2**10, 1, 0), n_bytes=2**20).expand()
    assert [int((small["src"] == rank).sum()) for rank in (0, 1)] == [8, 1]


def test_with_equal_counts_it_is_the_all_to_all():
    equal = COLLECTIVES["nccl_all_to_all_v"].build(20, channels=4, n_bytes=20 * 2**20)
    other = COLLECTIVES["nccl_all_to_all"].build(20, channels=4, n_bytes=20 * 2**20)
    assert on_star(equal, 20 * 2**20, LINK).time == pytest.approx(on_star(other, 20 * 2**20, LINK).time, rel=1e-9)
