"""Fewer, slower and dead cables are never faster, in the median over hashes of routes."""

import dataclasses

import numpy as np
import pytest

import commsim as cs
from benchmarks.accuracy.less_capacity import ROUNDED, drawn, measured
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.engine.flow import simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of

# What breaks it, of 1,808 drawn pairs (`python -m benchmarks.accuracy.less_capacity`): 13, of which 9 by less than 2 %.
# Number 1001, 4.7 % in flows and 0.6 % in packets: max-min sharing gives a message of the next step as much as one that
# others wait for. With two spines ranks get out of step; up to four messages, of two steps, meet on a link. With one
# spine there are two, of one step. The first test below has this effect in three messages. Number 1691 is the sample:
# every hash gives one of two times, and the median of 32 or 400 falls on either side.
# Where the hash changes nothing: at most 0.01 %.
BY_HASH, BY_ORDER = 0.05, 0.002
RAILS = "rail_optimized:machines=16,hosts_per_group=8,oversubscription="


def test_max_min_sharing_itself_can_be_faster_with_less_capacity():
    """Two messages leave one host; another waits for the first. A slower link of the second leaves the first more."""
    ends = {rate: times_of_three(rate) for rate in (1.0, 0.2)}
    assert ends[1.0] == pytest.approx([2, 2, 7])  # half of the host's link each; then 5 s
    assert ends[0.2] == pytest.approx([1.25, 5, 6.25])  # 0.8 and 0.2 of it


def times_of_three(rate):
    """Return when three messages of a byte end, where the second one's last link has this rate."""
    program = Program(4, n_chunks=2)
    program.copy(0, src=0, dst=1)
    program.copy(1, src=0, dst=2)
    program.copy(0, src=1, dst=3)
    network = load_network("star:n_hosts=4,latency=0us")
    last = {2: rate, 3: 0.2}
    bandwidth = [last.get(dst, 1.0) for dst in network.dst.tolist()]
    network = dataclasses.replace(network, bandwidth=np.array(bandwidth))
    plan = plan_flows(network, [FlowJob(program.build(), place(network, 4))])
    return simulate_plan(plan, 1.0).done


def test_an_all_reduce_out_of_step_is_slower_than_one_in_step_on_half_of_the_cables():
    """Number 1001: of 32 hashes 29 are slower with two spines; the next step's messages share links with this one's."""
    fabric = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2,bandwidth=25Gbps,oversubscription="
    found = [most_at_once(f"{fabric}{ratio}", seed=1) for ratio in (1, 2)]
    assert [most for most, _ in found] == [3, 2]
    assert found[1][1] < found[0][1] < 1.06 * found[1][1]


def most_at_once(network, seed):
    """Return how many messages are on one link at once at most, and the time, of a halving-doubling."""
    asked = {"seed": seed, "hashes": 1, "method": "events", "trace": True}
    plan = plan_of(scenario_of("halving_doubling_all_reduce", network, seed=seed))
    result = plan.predict(15845443.0, **asked)
    tables = plan.paths.plan
    links, first = tables.routes.link, tables.routes.first
    on = {}
    for start, sent, of in zip(result.trace.start, result.trace.sent, tables.connection_of, strict=True):
        for link in links[first[of] : first[of + 1]].tolist():
            on.setdefault(link, []).append((start + 1e-7, sent))
    return max(sum(a <= at < b for a, b in them) for them in on.values() for at, _ in them), result.time


def gains(numbers):
    pairs = [pair for pair in map(drawn, numbers) if pair]
    rows = [row for row in map(measured, pairs) if row]
    assert len(rows) > len(numbers) / 2
    for row in rows:
        assert row["gain"] <= (BY_HASH if row["spread"] > ROUNDED else BY_ORDER), row
    return [row["gain"] for row in rows]


@pytest.mark.parametrize(("first", "last"), [(20, 26), pytest.param(26, 44, marks=pytest.mark.deep)])
def test_less_capacity_is_not_faster(first, last):
    found = gains(range(first, last))
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
