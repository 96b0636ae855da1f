"""Networks with measured curves: the cases of transfers, and times against lines and a slow oracle."""

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.curves import Curve, Curves
from commsim.core.data_order.dependencies import dependencies
from commsim.core.data_order.dependencies_kernel import READ_AFTER_WRITE
from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.core.schedule import REDUCE
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.message_costs import LOCAL, REDUCES, RELAYED, TWO_WAY, measured_costs
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs

OVERHEAD, LATENCY, RATE = 2e-6, 3e-6, 1e9
SIZES = 2.0 ** np.arange(4, 27)


def star(n: int, curves: Curves | None = None, **more) -> Network:
    links = both_ways(np.arange(n), np.full(n, n))
    rate = RATE if curves is None else curves.bandwidth
    return Network("star", (*node_names(h=n), "s"), kinds(n, 1), *links, rate, LATENCY / 2, curves=curves, **more)


def line(step: str = "copy", two_way: bool = False, relayed: bool = False, factor: float = 1.0) -> Curve:
    busy = factor * (OVERHEAD + SIZES / RATE)
    return Curve(step, two_way, relayed, 0.0, SIZES, busy + LATENCY, busy)


@pytest.mark.parametrize("engine", ["flow", "alpha-beta"])
@pytest.mark.parametrize(
    "name",
    ["ring_all_gather", "binomial_broadcast", "pairwise_all_to_all", "ring_all_reduce", "chain_broadcast:n_chunks=8"],
)
def test_a_curve_that_is_a_line_gives_the_times_of_the_line(engine, name) -> None:
    """Where every message has the size of a knot, interpolation adds nothing; gamma is 0 and reductions are free."""
    n, size = 4, 2.0**20
    wanted = prepare(name, star(n, overhead=OVERHEAD), n_ranks=n).predict(size, engine=engine)
    got = prepare(name, star(n, Curves((line(),))), n_ranks=n).predict(size, engine=engine)
    assert got.time == pytest.approx(wanted.time, rel=1e-9)
    np.testing.assert_allclose(got.link_bytes, wanted.link_bytes)


def oracle_cases(schedule) -> list[int]:
    """Cases by the definition: levels by search, and every pair of transfers compared."""
    t = schedule.expand()
    waits = dependencies(schedule, t)
    wire = [tuple(int(t[k][f]) for f in ("src", "dst", "channel")) for k in range(len(t))]
    level = []
    for i in range(len(t)):
        before = [int(p) for p in waits.pred[waits.first[i] : waits.first[i + 1]]]
        before += [k for k in range(i) if wire[k] == wire[i]]
        level.append(max((level[k] + 1 for k in before), default=0))
    cases = []
    for i in range(len(t)):
        if t[i]["src"] == t[i]["dst"]:
            cases.append(LOCAL)
            continue
        others = [k for k in range(len(t)) if level[k] == level[i] and t[k]["src"] != t[k]["dst"]]
        both = any(t[k]["src"] == t[i]["dst"] or t[k]["dst"] == t[i]["src"] for k in others)
        read = [
            int(p)
            for p, kind in zip(
                waits.pred[waits.first[i] : waits.first[i + 1]],
                waits.kind[waits.first[i] : waits.first[i + 1]],
                strict=True,
            )
            if kind == READ_AFTER_WRITE
        ]
        relays = any(t[p]["src"] != t[p]["dst"] for p in read)
        cases.append(TWO_WAY * both + RELAYED * relays + REDUCES * int(t[i]["op"] == REDUCE))
    return cases


@pytest.mark.parametrize("n_ranks", [2, 3, 5, 8])
@pytest.mark.parametrize(
    "name",
    ["ring_all_reduce", "halving_doubling_all_reduce", "binomial_broadcast", "direct_all_to_all",
     "double_tree_all_reduce", "chain_broadcast"],
)  # fmt: skip
def test_cases_are_those_of_the_definition(name, n_ranks) -> None:
    ready = prepare(name, star(n_ranks, Curves((line(),))), n_ranks=n_ranks)
    if ready.schedule.n_transfers > 400:
        ready = prepare(f"{name}:n_chunks=4", star(n_ranks, Curves((line(),))), n_ranks=n_ranks)
    np.testing.assert_array_equal(ready.plan.cases, oracle_cases(ready.schedule))


def test_each_case_takes_the_time_of_its_curve() -> None:
    factors = {("copy", False, False): 1, ("copy", True, False): 2, ("copy", False, True): 3, ("copy", True, True): 5,
               ("reduce", True, False): 7}  # fmt: skip
    curves = Curves(tuple(line(*case, factor) for case, factor in factors.items()))
    m = 2.0**16

    def time(name: str, size: float) -> float:
        return prepare(name, star(2, curves), n_ranks=2).predict(size).time

    def alone(factor: float) -> float:
        return factor * (OVERHEAD + m / RATE) + LATENCY

    assert time("binomial_broadcast", m) == pytest.approx(alone(1), rel=1e-9)
    assert time("ring_all_gather", 2 * m) == pytest.approx(alone(2), rel=1e-9)
    assert time("ring_all_reduce", 2 * m) == pytest.approx(alone(7) + alone(5), rel=1e-9)


def test_a_local_copy_keeps_its_rank_from_sending_and_receiving() -> None:
    """Data moves around in `m` bytes: a copy inside each rank, and one message between them."""
    local = Curve("local", False, False, 0.0, SIZES, 4e-9 * SIZES)
    p = Program(2, n_chunks=2)
    p.copy(src=[0, 1], dst=[0, 1], src_chunk=0, dst_chunk=1)
    p.copy(src=0, dst=1, src_chunk=0, dst_chunk=0)
    schedule, m = p.build(), 2.0**16
    for engine in ("flow", "alpha-beta"):
        got = prepare(schedule, star(2, Curves((line(), local)))).predict(2 * m, engine=engine).time
        assert got == pytest.approx(4e-9 * m + OVERHEAD + m / RATE + LATENCY, rel=1e-9)


def test_every_rank_pays_the_start_of_its_working_set_once() -> None:
    start = Curve("start", False, False, 0.0, [2.0**10, 2.0**20], [1e-5, 8e-5])
    for size, wanted in ((2.0**10, 1e-5), (2.0**20, 8e-5), (2.0**15, (1e-5 * 8e-5) ** 0.5)):
        plain, late = (
            prepare("ring_all_gather", star(2, Curves(curves)), n_ranks=2).predict(size).time
            for curves in ((line(),), (line(), start))
        )
        assert late - plain == pytest.approx(wanted, rel=1e-6)


def test_each_job_pays_for_its_own_messages() -> None:
    """Messages of the second job are twice as long; each is looked up at its own size."""
    p = Program(2, n_chunks=1)
    p.copy(src=0, dst=1, src_chunk=0, dst_chunk=0)
    schedule, m = p.build(), 2.0**16
    network = star(2, Curves((line(),)))
    plan = plan_flows(network, [FlowJob(schedule, place(network, 2))] * 2)
    costs = measured_costs(plan, np.array([m, 2 * m]))
    assert costs is not None
    np.testing.assert_allclose(costs.occupancy, OVERHEAD + np.array([m, 2 * m]) / RATE, rtol=1e-9)


def test_a_link_at_half_its_rate_doubles_what_a_message_occupies() -> None:
    from commsim.core.faults.scaling import scale_links

    network = star(2, Curves((line(),)))
    m = 2.0**16
    got = prepare("binomial_broadcast", scale_links(network, 0.5, pattern="h1:s"), n_ranks=2).predict(m).time
    assert got == pytest.approx(2 * (OVERHEAD + m / RATE) + LATENCY, rel=1e-9)


def test_messages_of_one_connection_arrive_in_order() -> None:
    """A small message that would overtake a large one arrives with it."""
    slow = Curve("copy", False, False, 0.0, SIZES, 1e-6 * SIZES**1.2, 1e-9 * SIZES)
    p = Program(2, n_chunks=9)
    p.copy(src=0, dst=1, src_chunk=0, dst_chunk=0, count=8)
    p.copy(src=0, dst=1, src_chunk=8, dst_chunk=8)
    trace = prepare(p.build(), star(2, Curves((slow,)))).predict(9 * 4096.0, trace=True).trace
    assert trace is not None
    assert trace.done[1] >= trace.done[0]


def test_the_interval_is_that_of_the_bounds() -> None:
    busy = OVERHEAD + SIZES / RATE
    curves = Curves(
        (Curve("copy", False, False, 0.0, SIZES, busy + LATENCY, busy, 0.8 * (busy + LATENCY), 1.5 * (busy + LATENCY)),)
    )
    for engine in ("flow", "alpha-beta"):
        got = prepare("binomial_broadcast", star(2, curves), n_ranks=2).predict(2.0**16, engine=engine)
        assert got.interval == pytest.approx((0.8 * got.time, 1.5 * got.time), rel=1e-9)
        assert got.row()["low_s"] == got.interval[0]


def test_the_interval_is_that_of_the_same_late_starters() -> None:
    """With the same curve as bounds, the interval has no width."""
    network = star(4, Curves((line(),)))
    ready = prepare("ring_all_reduce", network, n_ranks=4)
    for engine in ("flow", "alpha-beta"):
        got = ready.predict(2.0**20, engine=engine, start_jitter=1e-3, iterations=5)
        assert got.time > 1.1 * ready.predict(2.0**20, engine=engine).time
        assert got.interval == (got.time, got.time)


def test_without_curves_there_is_no_interval() -> None:
    got = prepare("binomial_broadcast", star(2, overhead=OVERHEAD), n_ranks=2).predict(2.0**16)
    assert got.interval is None
    assert "low_s" not in got.row()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "closed-form"}, "a closed form takes messages that cost a line, and star has measured curves; use"),
        ({"engine": "packet"}, "the packet engine takes messages that cost a line"),
        ({"method": "recurrence"}, "'recurrence' takes messages that cost a line.*use auto or events"),
    ],
)
def test_what_takes_a_line_only_says_so(options, message) -> None:
    ready = prepare("ring_all_reduce", star(2, Curves((line(),))), n_ranks=2)
    with pytest.raises(InputError, match=message):
        ready.predict(2.0**16, **options)


def test_costs_on_the_command_line_are_refused_beside_curves() -> None:
    with pytest.raises(InputError, match="overhead beside them must be 0"):
        with_costs(star(2, Curves((line(),))), overhead=1e-6)


def test_all_collectives_run_on_curves() -> None:
    network = star(5, Curves((line(), line("reduce", factor=2.0))))
    for name in ("allreduce", *list(COLLECTIVES)[::4]):
        if name in COLLECTIVES and COLLECTIVES[name].metadata["sparse"] is None:
            try:
                ready = prepare(name, network)
            except InputError:
                continue
            flow, ab = (ready.predict(2.0**16, engine=engine).time for engine in ("flow", "alpha-beta"))
            assert 0 < flow < np.inf
            assert 0 < ab < np.inf
