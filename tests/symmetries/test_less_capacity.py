"""Fewer, slower and dead cables are never faster, in the median over hashes of routes."""

import pytest

import commsim as cs
from benchmarks.accuracy.less_capacity import ROUNDED, drawn, measured

# What breaks it, of 1,808 drawn pairs (`python -m benchmarks.accuracy.less_capacity`): 13, of which 9 by less than 2 %.
# Number 1001: 4.7 % in flows, 0.6 % in packets; the cause is not traced. Number 1691: 16 % over 32 hashes; every hash
# gives 8.29 or 11.43 us, so that over 400 hashes less capacity is 38 % faster by the median, and 4.8 % by the mean.
# Where the hash changes nothing: at most 0.01 %.
BY_HASH, BY_ORDER = 0.05, 0.002
RAILS = "rail_optimized:machines=16,hosts_per_group=8,oversubscription="


def gains(numbers):
    pairs = [pair for pair in map(drawn, numbers) if pair]
    rows = [row for row in map(measured, pairs) if row]
    assert len(rows) > len(numbers) / 2
    for row in rows:
        assert row["gain"] <= (BY_HASH if row["spread"] > ROUNDED else BY_ORDER), row
    return [row["gain"] for row in rows]


def test_less_capacity_is_not_faster():
    found = gains(range(20, 44))
    assert sum(gain > ROUNDED for gain in found) <= 1
    assert min(found) < -0.3  # cables that are missing matter


@pytest.mark.deep
@pytest.mark.parametrize("piece", range(8))
def test_less_capacity_is_not_faster_in_many_networks(piece):
    found = gains(range(200 + 25 * piece, 225 + 25 * piece))
    assert sum(gain > ROUNDED for gain in found) <= 2


def times(collective, size, ratios=(1, 2, 4, 8)):
    return [cs.predict(collective, f"{RAILS}{ratio}", size).time for ratio in ratios]


@pytest.mark.parametrize("size", ["4MiB", "64MiB"])
def test_nccl_on_rails_is_not_faster_with_fewer_cables(size):
    for collective in ("nccl_all_reduce", "nccl_all_reduce:algorithm=ring"):
        found = times(collective, size)
        assert found == pytest.approx(sorted(found), rel=ROUNDED), collective


@pytest.mark.deep
def test_the_time_of_many_loops_is_not_below_that_with_all_cables():
    """At 4:1 a GiB took 7,952 us, and 8,288 us at 1:1; what is continued from a few loops misses by up to 2 %."""
    found = times("nccl_all_reduce", "1GiB", (1, 2, 4))
    assert found == pytest.approx(sorted(found), rel=ROUNDED)
    assert times("nccl_all_reduce", "1GiB", (8,))[0] >= found[0] * (1 - ROUNDED)
