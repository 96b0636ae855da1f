"""Hand-solved max-min examples.

Messages have as many bytes as they should get per second, so that a right allocation ends all of them at 1 s together,
and no rate but the right one does: whoever gets less ends later, and whoever gets more ends earlier.
"""

import dataclasses

import pytest
from flow_networks import cabled, finish_times, message

from commsim.core.network import Network

FAST = 100.0


def assert_rates(network: Network, expected: dict[str, float], **kwargs: str) -> None:
    jobs = [message(network, pair) for pair in expected]
    assert finish_times(network, jobs, list(expected.values()), **kwargs) == pytest.approx(1.0, rel=1e-12)


def test_three_flows_on_two_links_share_as_in_the_textbook() -> None:
    # A crosses both links, B the first (1 B/s), C the second (2 B/s). The first is full at 1/2, which freezes A
    # and B at 1/2; the second has 2 - 1/2 = 3/2 left, all for C.
    network = cabled({"s0-s1": 1, "s1-s2": 2, "h0-s0": FAST, "h1-s0": FAST, "h2-s1": FAST, "h3-s1": FAST,
                      "h4-s2": FAST, "h5-s2": FAST})  # fmt: skip
    assert_rates(network, {"h0>h4": 0.5, "h1>h2": 0.5, "h3>h5": 1.5})


def test_a_parking_lot_gives_the_long_flow_the_share_of_its_worst_link() -> None:
    # One flow over links of 1, 0.6 and 2 B/s, each of which one short flow uses as well. Level 0.3 fills the middle
    # one: long = short = 0.3. The others keep 1 - 0.3 = 0.7 and 2 - 0.3 = 1.7 for their short flows.
    network = cabled({"s0-s1": 1, "s1-s2": 0.6, "s2-s3": 2, "h0-s0": FAST, "h1-s0": FAST, "h2-s1": FAST,
                      "h3-s1": FAST, "h4-s2": FAST, "h5-s2": FAST, "h6-s3": FAST, "h7-s3": FAST})  # fmt: skip
    assert_rates(network, {"h0>h6": 0.3, "h1>h2": 0.7, "h3>h4": 0.3, "h5>h7": 1.7})


def test_a_flow_held_elsewhere_leaves_its_share_to_the_others() -> None:
    # Into one link of 1 B/s come flows from access links of 0.1, 0.2 and 5 B/s: the first two are held at 0.1 and 0.2
    # by their own access (0.1 < 1/3, 0.2 < 0.9/2), the last gets 1 - 0.3 = 0.7.
    network = cabled({"s0-s1": 1, "h0-s0": 0.1, "h1-s0": 0.2, "h2-s0": 5, "h3-s1": FAST, "h4-s1": FAST, "h5-s1": FAST})
    assert_rates(network, {"h0>h3": 0.1, "h1>h4": 0.2, "h2>h5": 0.7})


def test_opposite_directions_of_a_cable_do_not_share() -> None:
    assert_rates(cabled({"h0-s0": 1, "h1-s0": 1}), {"h0>h1": 1.0, "h1>h0": 1.0})


def test_a_sprayed_flow_fills_two_paths_and_shares_one_of_them() -> None:
    # h0 sprays over s1 and s2, half of its rate x on each (1 B/s). h2, cabled to s1 only, shares the link s1-s3 with
    # it: fair rate by rate, x + x/2 = 1, so both get x = 2/3; of s2-s3 the sprayed flow uses 1/3 only.
    network = cabled({"h0-s0": FAST, "s0-s1": 1, "s0-s2": 1, "s1-s3": 1, "s2-s3": 1, "h1-s3": FAST, "h2-s1": FAST,
                      "h3-s3": FAST})  # fmt: skip
    assert_rates(network, {"h0>h1": 2 / 3, "h2>h3": 2 / 3}, routing="spray")
    assert_rates(network, {"h0>h1": 2.0}, routing="spray")
    assert_rates(network, {"h0>h1": 1.0}, routing="shortest")


@pytest.fixture
def bottleneck() -> Network:
    """Two pairs of hosts whose only common link has 4 B/s."""
    return cabled({"s0-s1": 4, "h0-s0": FAST, "h1-s0": FAST, "h2-s1": FAST, "h3-s1": FAST})


def test_the_rest_is_shared_again_when_a_flow_ends(bottleneck: Network) -> None:
    # 4 and 12 bytes at 2 B/s each: the first ends at 2 s; the second has 12 - 4 = 8 left for 4 B/s: 2 + 2 = 4 s.
    jobs = [message(bottleneck, "h0>h2"), message(bottleneck, "h1>h3")]
    assert finish_times(bottleneck, jobs, [4, 12]) == pytest.approx([2, 4])


def test_a_late_flow_takes_its_share_from_when_it_comes(bottleneck: Network) -> None:
    # 8 bytes alone at 4 B/s until 1 s, 4 are left; then 2 B/s each for 4 bytes each: both end at 3 s.
    jobs = [message(bottleneck, "h0>h2"), message(bottleneck, "h1>h3")]
    assert finish_times(bottleneck, jobs, [8, 4], [0.0, 1.0]) == pytest.approx([3, 3])


def test_weights_decide_the_shares_of_a_full_link(bottleneck: Network) -> None:
    # Weights 3 and 1: fair rate 4 / (3 + 1) = 1, rates 3 and 1.
    jobs = [message(bottleneck, "h0>h2", weight=3.0), message(bottleneck, "h1>h3")]
    assert finish_times(bottleneck, jobs, [3, 1]) == pytest.approx([1, 1])


def test_what_a_cap_leaves_goes_to_the_other_flow(bottleneck: Network) -> None:
    # The cap of 0.5 is below the equal share of 2, so the other gets 4 - 0.5 = 3.5.
    jobs = [message(bottleneck, "h0>h2", rate_cap=0.5), message(bottleneck, "h1>h3")]
    assert finish_times(bottleneck, jobs, [0.5, 3.5]) == pytest.approx([1, 1])


def test_a_later_priority_waits_for_a_full_link_and_then_has_it_alone(bottleneck: Network) -> None:
    # Class 0 gets 4 B/s and ends 4 bytes at 1 s; class 1 gets nothing until then: 1 + 8/4 = 3 s.
    jobs = [message(bottleneck, "h0>h2", priority=1), message(bottleneck, "h1>h3")]
    assert finish_times(bottleneck, jobs, [8, 4]) == pytest.approx([3, 1])


def test_a_later_priority_gets_what_an_earlier_one_leaves_over(bottleneck: Network) -> None:
    jobs = [message(bottleneck, "h0>h2", priority=1), message(bottleneck, "h1>h3", rate_cap=1.0)]
    assert finish_times(bottleneck, jobs, [3, 1]) == pytest.approx([1, 1])


def test_two_overheads_at_one_port_share_it(bottleneck: Network) -> None:
    # Two messages leave h0, whose port moves FAST bytes a second: its overhead of 1 s is FAST bytes. Sharing the port
    # they take 2 s; then 4 bytes each at 2 B/s take 2 s more.
    network = dataclasses.replace(bottleneck, overhead=1.0)
    jobs = [message(network, "h0>h2"), message(network, "h0>h3")]
    assert finish_times(network, jobs, [4, 4]) == pytest.approx([4, 4])
    assert finish_times(network, jobs[:1], [4]) == pytest.approx([2])
