"""A cost of messages means the same in every engine, or is refused by its name."""

import pytest

import commsim as cs
from commsim.core.errors import InputError

STAR = "star:n_hosts=17,bandwidth=400Gbps"
ON_MESSAGES = ("flow", "alpha-beta", "closed-form")


def took(collective, engine, size="1MB", network=STAR, **costs):
    return cs.predict(collective, network, size, n_ranks=16, engine=engine, **costs).time


@pytest.mark.parametrize("collective", ["netreduce", "switchml", "sharp", "atp", "flare"])
def test_packets_of_switch_systems_refuse_a_receive_overhead(collective):
    with pytest.raises(InputError, match=r"no receive overhead.*--recv-overhead"):
        took(collective, "packet", recv_overhead="500ns")


def test_a_message_of_netreduce_has_one_overhead_whether_it_is_sent_or_received():
    """The million bytes are 977 packets, and 31 messages of 32; each engine counts 500 ns for each message."""
    for engine in ON_MESSAGES:
        more = took("netreduce", engine, recv_overhead="500ns") - took("netreduce", engine)
        assert 31 * 500e-9 <= more <= 80 * 500e-9
    assert took("netreduce", "flow", overhead="500ns") == pytest.approx(
        took("netreduce", "packet", overhead="500ns"), rel=0.01
    )


@pytest.mark.parametrize("cost", ["overhead", "recv_overhead"])
@pytest.mark.parametrize("n_channels", [1, 2, 4])
def test_overheads_of_channels_that_share_a_port_add_up_in_both_engines(n_channels, cost):
    collective, size = f"multi_ring_all_reduce:n_channels={n_channels}", "64KiB"
    without = "star:n_hosts=16,bandwidth=400Gbps,latency=0ns"
    flow, packet = (took(collective, e, size, without, **{cost: "10us"}) for e in ("flow", "packet"))
    assert flow == pytest.approx(packet, rel=0.01)
    assert flow >= 30 * n_channels * 10e-6
    # With a latency the channels of the flow engine go in step, and wait for it at every step; packets hide it.
    flow, packet = (took(collective, e, size, **{cost: "10us"}) for e in ("flow", "packet"))
    assert packet <= flow * 1.01
    assert flow - packet <= 30 * 1.01e-6
