"""NCCL's all-to-all and send-receive: proved, in parts and batches, and as long as their closed forms say."""

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
