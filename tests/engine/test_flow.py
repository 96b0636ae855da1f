"""What a run reports, the faults of other simulators that must not be ours, and what is refused."""

import contextlib
import dataclasses
import io
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from flow_cases import Case, cases
from flow_networks import cabled, finish_times, message, on_star, star_of, table
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from slow_flow import simulate

from collectives import COLLECTIVES
from collectives.dense.ring import ring_all_reduce
from commsim.core.cost import Framing, LogGP
from commsim.core.errors import InputError, RoutingError
from commsim.core.network import Network
from commsim.core.placement import Placement, place
from commsim.core.schedule import Schedule
from commsim.engine.flow import payload, simulate_flows, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.flow_times import FlowTimes
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring

LINK = LogGP(L=2e-6, o=1e-6, B=1e9, gamma=1e-10)


@pytest.mark.nojit
def test_one_rank_takes_no_time() -> None:
    result = on_star(ring_all_reduce(1), 1e9, LINK)
    assert (result.time, result.time_from_last_start, result.bytes_on_wire) == (0.0, 0.0, 0.0)


@pytest.mark.nojit
def test_late_starters_are_counted_from_the_first_and_from_the_last_start() -> None:
    # The first of two ranks waits 5 s for the other; only then do they exchange and reduce, each half of the vector.
    alone = on_star(ring_all_reduce(2), 1e6, LINK)
    late = on_star(ring_all_reduce(2), 1e6, LINK, starts=[3.0, 8.0])
    assert late.time_from_last_start == pytest.approx(alone.time, rel=1e-6)
    assert late.time == pytest.approx(5.0 + alone.time, rel=1e-12)
    assert alone.time == alone.time_from_last_start


def test_a_transfer_needs_only_its_own_two_ends_to_have_started() -> None:
    # In a broadcast along 0 -> 1 -> 2 the first message goes while rank 2 is still away.
    result = on_star(COLLECTIVES["chain_broadcast"].build(3, 1), 1e9, LogGP(B=1e9), starts=[0, 0, 9.0], trace=True)
    assert result.trace is not None
    assert result.trace.start.tolist() == [0.0, 9.0]


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 2 // 3)
@given(n_ranks=st.integers(2, 6), seed=st.integers(0, 999))
def test_a_ring_with_jitter_is_what_the_oracle_says(n_ranks: int, seed: int) -> None:
    network = star_of(n_ranks, LINK)
    jobs = (FlowJob(ring_all_reduce(n_ranks), place(network, n_ranks)),)
    case = Case(network, jobs, (1e6,), tuple(np.random.default_rng(seed).uniform(0, 1e-3, n_ranks)), "ecmp", 0)
    plan = plan_flows(network, jobs)
    ours = table(simulate_plan(plan, payload(plan, case.sizes), starts=case.starts))
    np.testing.assert_allclose(ours, simulate(network, jobs, case.sizes, case.starts), rtol=1e-9, atol=1e-15)


def test_the_links_carry_each_message_once_with_its_headers() -> None:
    # Ring of 4: 6 rounds of a quarter leave each host; 1e6 / 4 bytes are 250 packets of 1000 with 50 bytes beside each.
    result = on_star(ring_all_reduce(4), 1e6, LINK, framing=Framing(1000, 50))
    assert result.link_bytes == pytest.approx(6 * 250 * 1050)
    assert result.bytes_on_wire == pytest.approx(4 * 6 * 250 * 1050)


@pytest.mark.parametrize("name", ["direct_all_to_all", "pairwise_all_to_all"])
@pytest.mark.parametrize("routing", ["ecmp", "shortest", "spray"])
def test_an_exchange_is_never_faster_than_its_busiest_link(name: str, routing: str) -> None:
    # 2 leaves of 8 hosts at 1 GB/s with one uplink of 1 GB/s to each of 2 spines: half of each leaf's 8 * 8/16 S cross.
    network = leaf_spine(n_leaves=2, n_spines=2, hosts_per_leaf=8, bandwidth=1e9, uplink_bandwidth=1e9, latency=0.0)
    plan = plan_flows(network, [FlowJob(COLLECTIVES[name].build(16), place(network, 16))], routing=routing)
    result = simulate_flows(plan, 1e9)[0]
    assert result.time >= (result.link_bytes / network.bandwidth).max() * (1 - 1e-9)
    assert result.time >= 8 * 8 / 16 * 1e9 / (2 * 1e9) * (1 - 1e-9)


@pytest.mark.nojit
def test_messages_into_one_port_share_it() -> None:
    # 7 messages of 1 s each into one host: 7 s, not 1.
    network = star_of(8, LogGP(B=1e9))
    jobs = [message(network, f"h{i}>h7") for i in range(7)]
    assert simulate_plan(plan_flows(network, jobs), 1e9).done == pytest.approx(7.0)


@pytest.mark.nojit
def test_a_switch_does_not_double_the_time_of_an_unchunked_ring() -> None:
    cabled_hosts, switched = ring(6, 1e9, 0.0), star_of(6, LogGP(B=1e9))
    times = [
        simulate_flows(plan_flows(network, [FlowJob(ring_all_reduce(6), place(network, 6))]), 1e9)[0].time
        for network in (cabled_hosts, switched)
    ]
    assert times == pytest.approx([10 / 6, 10 / 6])


def test_no_message_of_the_double_tree_holds_the_whole_vector() -> None:
    schedule = COLLECTIVES["double_tree_all_reduce"].build(8, 16)
    assert schedule.expand()["count"].max() / schedule.n_chunks == 1 / 32
    assert on_star(schedule, 1e9, LogGP(B=1e9)).time < 3.0  # log2(8) whole vectors up, and as many down, are 6 s


@pytest.mark.nojit
@pytest.mark.parametrize("n_switches", [1, 2, 5])
def test_a_message_over_many_hops_pays_its_bytes_once(n_switches: int) -> None:
    line = {f"s{i}-s{i + 1}": 2.0 for i in range(n_switches - 1)} | {"h0-s0": 2.0, f"h1-s{n_switches - 1}": 2.0}
    times = simulate_plan(plan_flows(network := cabled(line, 0.25), [message(network, "h0>h1")]), 6.0)
    assert times.done[0] == pytest.approx(6 / 2 + (n_switches + 1) * 0.25)


@pytest.mark.nojit
@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(size: float) -> None:
    with pytest.raises(InputError, match=f"size must be positive and finite, got {size}"):
        on_star(ring_all_reduce(2), size, LINK)


@pytest.mark.nojit
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_start_or_payload_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=f"start must be 0 or more and finite, got {value}"):
        on_star(ring_all_reduce(2), 1.0, LINK, starts=[0.0, value])
    network = star_of(2, LINK)
    with pytest.raises(InputError, match=f"payload must be 0 or more and finite, got {value}"):
        simulate_plan(plan_flows(network, [message(network, "h0>h1")]), value)


@pytest.mark.nojit
@pytest.mark.parametrize("sharing", [{"weight": 0.0}, {"weight": float("nan")}, {"rate_cap": 0.0}])
def test_a_job_without_a_share_is_refused(sharing: dict[str, float]) -> None:
    with pytest.raises(InputError, match="a job needs weight > 0 and rate_cap > 0"):
        message(star_of(2, LINK), "h0>h1", **sharing)


@pytest.mark.nojit
def test_a_plan_without_a_job_is_refused() -> None:
    with pytest.raises(InputError, match="at least one job"):
        plan_flows(star_of(2, LINK), [])


@pytest.mark.nojit
def test_a_disconnected_pair_is_named() -> None:
    network = cabled({"h0-s0": 1.0, "h1-s1": 1.0})
    with pytest.raises(RoutingError, match="no path from h0 to h1"):
        plan_flows(network, [message(network, "h0>h1")])


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("nodes", "reason"),
    [([0, 4], "a switch"), ([0, 0], "share node h0"), ([0], "1 participant,"), ([0, 9], "names node 9")],
)
def test_a_placement_that_does_not_fit_is_refused(nodes: list[int], reason: str) -> None:
    network: Network = dataclasses.replace(star_of(4, LINK), name="four")
    with pytest.raises(InputError, match=reason):
        plan_flows(network, [FlowJob(ring_all_reduce(2), Placement(nodes))])


# The flow engine against the slow oracle, on random networks with random jobs.
def simulated(case: Case) -> FlowTimes:
    plan = plan_flows(case.network, case.jobs, routing=case.routing, seed=case.seed)
    return simulate_plan(plan, payload(plan, case.sizes), starts=case.starts)


@pytest.mark.slow
@given(case=cases())
def test_every_transfer_starts_and_ends_when_the_oracle_says(case: Case) -> None:
    ours = simulated(case)
    theirs = np.array(
        simulate(case.network, case.jobs, case.sizes, case.starts, routing=case.routing, seed=case.seed)
    ).reshape(-1, 3)
    for got, expected in zip((ours.start, ours.sent, ours.done), theirs.T, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12 * theirs.max())


# Simulated time depends on what is sent, never on the order in which it was written down; and it repeats exactly.
def times_of_jobs(case: Case) -> list[NDArray[np.float64]]:
    """Times of each job's transfers."""
    plan = plan_flows(case.network, case.jobs, routing=case.routing, seed=case.seed)
    times = table(simulate_plan(plan, payload(plan, case.sizes), starts=case.starts))
    return [times[mine] for mine in plan.transfers_of]


def shuffled(schedule: Schedule, rng: np.random.Generator) -> tuple[Schedule, NDArray[np.intp]]:
    """Permute the transfers inside every hop; those of one connection stay in order, which is part of their meaning."""
    blocks, orders, offset = [], [], 0
    for block in schedule.blocks:
        key = rng.random(len(block.body))
        for same in np.unique(block.body[["hop", "src", "dst", "channel"]]):
            rows = block.body[["hop", "src", "dst", "channel"]] == same
            key[rows] = np.sort(key[rows])
        order = np.lexsort((key, block.body["hop"]))
        blocks.append(dataclasses.replace(block, body=block.body[order]))
        orders.append(order + offset)
        offset += len(order)
    return dataclasses.replace(schedule, blocks=tuple(blocks)), np.concatenate(orders)


@pytest.mark.slow
@given(case=cases(plain=True, routings=("shortest", "ecmp")), seed=st.integers(0, 999))
def test_the_order_of_transfers_inside_hops_changes_no_bit(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    schedules, orders = zip(*(shuffled(job.schedule, rng) for job in case.jobs), strict=True)
    jobs = tuple(dataclasses.replace(job, schedule=s) for job, s in zip(case.jobs, schedules, strict=True))
    again = times_of_jobs(dataclasses.replace(case, jobs=jobs))
    for before, after, order in zip(times_of_jobs(case), again, orders, strict=True):
        assert (before[order] == after).all()


@pytest.mark.slow
@given(case=cases(plain=True, routings=("shortest",)), seed=st.integers(0, 999))  # ECMP hashes the number of the job
def test_the_order_of_jobs_changes_no_bit(case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(case.jobs))
    starts = np.split(np.array(case.starts), np.cumsum([j.schedule.n_participants for j in case.jobs])[:-1])
    moved = dataclasses.replace(
        case,
        jobs=tuple(case.jobs[k] for k in order),
        sizes=tuple(case.sizes[k] for k in order),
        starts=tuple(np.concatenate([starts[k] for k in order])),
    )
    times, again = times_of_jobs(case), times_of_jobs(moved)
    assert all((times[k] == again[place]).all() for place, k in enumerate(order))


@pytest.mark.nojit
def test_what_slow_flows_leave_over_does_not_depend_on_their_order() -> None:
    # 1 - 0.1 - 0.2 - 0.3 and 1 - 0.3 - 0.2 - 0.1 differ in their last bits: the fourth job once did as well.
    access = {"h0-s0": 0.1, "h1-s0": 0.2, "h2-s0": 0.3, "h3-s0": 5.0}
    network = cabled(access | {"s0-s1": 1.0} | {f"h{i}-s1": 9.0 for i in range(4, 8)})
    seen = set()
    for order in itertools.permutations(range(4)):
        jobs = [message(network, f"h{i}>h{i + 4}") for i in order]
        starts = [0.25 if i == 3 else 0.0 for i in order]
        sent = finish_times(network, jobs, [1.0] * 4, starts, routing="shortest")
        seen.add(tuple(sent[np.argsort(order)]))
    assert len(seen) == 1


@given(case=cases())
def test_the_same_inputs_give_the_same_bits_twice(case: Case) -> None:
    assert all((a == b).all() for a, b in zip(times_of_jobs(case), times_of_jobs(case), strict=True))


PROGRAM = """
import numpy as np
from collectives.dense.ring import ring_all_reduce
from commsim.core.placement import place
from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from topologies.fat_tree import fat_tree
network = fat_tree(4)
placed = place(network, 16, "random", 1)
plan = plan_flows(network, [FlowJob(ring_all_reduce(16), placed, weight=w) for w in (0.3, 0.7)])
times = simulate_plan(plan, payload(plan, 1e6), starts=np.random.default_rng(0).uniform(0, 1e-4, 32))
print(times.done.tobytes().hex())
"""


@pytest.mark.slow
def test_two_processes_give_the_same_bits() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert len(done.stdout) > 1000
    with contextlib.redirect_stdout(io.StringIO()) as here:  # whose seed of hashes is drawn
        exec(PROGRAM, {})
    assert done.stdout == here.getvalue()
