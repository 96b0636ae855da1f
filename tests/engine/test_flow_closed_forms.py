"""Every registered collective with a closed form meets it on a star; the double tree stays inside its bounds."""

import itertools
from typing import Any

import numpy as np
import pytest
from drawn_inputs import links
from flow_cases import Case
from flow_networks import on_star, star_of
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_flow import simulate

from collectives import BLOCKING, COLLECTIVES
from commsim.core.cost import LogGP
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows

FACTS = {name: COLLECTIVES[name].metadata for name in COLLECTIVES}
# What wants helpers on switches meets its closed form in test_in_network.py.
WITH_COST = [
    name
    for name in FACTS
    if FACTS[name]["cost"] is not None and not FACTS[name]["systems"]
    and not name.startswith("rccl_")  # whose exchanges are NCCL's, schedule and cost
]  # fmt: skip
MUST_BE_EXACT = {
    "ring_all_reduce", "ring_reduce_scatter", "ring_all_gather", "halving_doubling_all_reduce", "chain_broadcast",
    "binomial_broadcast", "pairwise_all_to_all", "direct_all_to_all",
}  # fmt: skip
sizes = st.floats(1.0, 1e12)


@st.composite
def grids(draw: st.DrawFn, n_ranks: int) -> tuple[int, ...]:
    """Draw sides whose product is the number of ranks, some of them perhaps 1."""
    sides = []
    while n_ranks > 1 or not sides:
        sides.append(draw(st.sampled_from([d for d in range(1, n_ranks + 1) if n_ranks % d == 0])))
        n_ranks //= sides[-1]
    return tuple(sides)


@st.composite
def parameters(draw: st.DrawFn, name: str, n_ranks: int) -> dict[str, Any]:
    """Draw every parameter that a collective has; a new kind of parameter must be taught here."""
    drawn: dict[str, Any] = {}
    for key in COLLECTIVES[name].parameters:
        if key == "n_chunks":
            drawn[key] = draw(st.integers(1, 9))
        elif key == "root":
            drawn[key] = draw(st.integers(0, n_ranks - 1))
        elif key == "groups":
            n = draw(st.sampled_from([d for d in range(1, n_ranks + 1) if n_ranks % d == 0]))
            ranks = draw(st.permutations(range(n_ranks)))
            drawn[key] = tuple(tuple(ranks[i : i + n]) for i in range(0, n_ranks, n))
        elif key == "n_channels":
            drawn[key] = draw(st.integers(1, 4))
        elif key == "counts":
            n = n_ranks ** (2 if COLLECTIVES[name].metadata["operation"] == "all_to_all_v" else 1)
            drawn[key] = tuple(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)))
        elif key in ("n_servers", "n_aggregators"):
            drawn[key] = draw(st.integers(1, 9))
        elif key == "colocated" and draw(st.booleans()):  # which has a closed form with a server at every rank only
            servers = "n_servers" if "n_servers" in drawn else "n_aggregators"
            drawn |= {"colocated": True, servers: n_ranks, "n_partitions": 1}
        elif key == "pool":
            drawn[key] = draw(st.integers(1, 5))
        elif key in ("slots", "n_threads", "fusion"):  # which decide what zeros are sent, of which there are none here
            drawn[key] = draw(st.integers(1, 3))
        elif key == "n_partitions":
            drawn.setdefault(key, draw(st.integers(1, 4)))
        elif key == "order":
            drawn[key] = draw(st.sampled_from(["nearest", "farthest"]))
        elif key == "dims":
            drawn[key] = draw(grids(n_ranks))
        elif key == "channels":
            drawn[key] = draw(st.integers(1, 4))
        elif key == "n_bytes":
            drawn[key] = draw(st.integers(1, 2**24))
        elif key in ("version", "machines", "buffer", "net_chunk", "all_links"):  # the usual machine, of one port
            continue
        elif key not in ("n_ranks", "colocated", BLOCKING):
            raise NotImplementedError(f"{name}: this test does not know how to draw {key}")
    return drawn


@pytest.mark.nojit
@pytest.mark.parametrize("n_chunks", [1, 2, 64])
def test_a_chain_broadcast_is_pipelined(n_chunks: int) -> None:
    # Written here and not taken from collectives/: the first chunk crosses 4 connections, the others follow.
    p, link, size = Program(5, n_chunks), LogGP(L=3e-6, o=1e-6, B=1e9), 64e6
    for chunk in range(n_chunks):
        for rank in range(4):
            p.copy(chunk, src=rank, dst=rank + 1)
    busy = link.o + size / n_chunks / link.B
    expected = 4 * (busy + link.L) + (n_chunks - 1) * busy
    assert on_star(p.build(), size, link).time == pytest.approx(expected, rel=1e-9, abs=0)


def test_the_collectives_that_have_an_exact_form_are_among_those_tested() -> None:
    assert set(WITH_COST) >= MUST_BE_EXACT


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_COST)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data(), n_ranks=st.integers(1, 17), size=sizes, link=links)
def test_the_flow_engine_meets_the_closed_form_on_a_star(
    name: str, data: st.DataObject, n_ranks: int, size: float, link: LogGP
) -> None:
    entry, drawn = COLLECTIVES[name], data.draw(parameters(name, n_ranks))
    expected = entry.metadata["cost"](n_ranks, size, link, **drawn)
    assert on_star(entry.build(n_ranks, **drawn), size, link).time == pytest.approx(expected, rel=1e-9, abs=0)


@given(data=st.data(), n_ranks=st.integers(1, 9), size=sizes, link=links)
def test_an_unequal_all_to_all_stays_inside_its_bounds_and_an_equal_one_meets_the_lower(
    data: st.DataObject, n_ranks: int, size: float, link: LogGP
) -> None:
    entry = COLLECTIVES["direct_all_to_all_v"]
    drawn = data.draw(parameters(entry.name, n_ranks))
    low, high = entry.metadata["bounds"](n_ranks, size, link, **drawn)
    time = on_star(entry.build(n_ranks, **drawn), size, link).time
    assert low * (1 - 1e-9) <= time <= high * (1 + 1e-9)
    equal = on_star(entry.build(n_ranks), size, link).time
    assert equal == pytest.approx(entry.metadata["bounds"](n_ranks, size, link)[0], rel=1e-9, abs=0)
    same = COLLECTIVES["direct_all_to_all"].metadata["cost"](n_ranks, size, link)
    assert equal == pytest.approx(same, rel=1e-9, abs=0)


@given(n_ranks=st.integers(1, 17), n_chunks=st.integers(1, 12), size=sizes, link=links)
def test_the_double_tree_stays_inside_its_bounds(n_ranks: int, n_chunks: int, size: float, link: LogGP) -> None:
    entry = COLLECTIVES["double_tree_all_reduce"]
    low, high = entry.metadata["bounds"](n_ranks, size, link, n_chunks=n_chunks)
    assert low == pytest.approx(2 * (n_ranks - 1) / n_ranks * size / link.B)
    time = on_star(entry.build(n_ranks, n_chunks), size, link).time
    assert low * (1 - 1e-9) <= time <= high * (1 + 1e-9)


@pytest.mark.parametrize("n_ranks", [4, 7, 16])
def test_the_double_tree_tends_to_twice_the_vector_as_its_chunks_grow(n_ranks: int) -> None:
    build, link = COLLECTIVES["double_tree_all_reduce"].build, LogGP(B=1.0)
    excess = [on_star(build(n_ranks, n_chunks), 1.0, link).time - 2.0 for n_chunks in (8, 32, 128, 512)]
    assert all(later < earlier for earlier, later in itertools.pairwise(excess))
    assert abs(excess[-1]) < 0.05


@settings(max_examples=15)
@given(n_ranks=st.integers(2, 7), n_chunks=st.integers(1, 3), link=links)
def test_the_double_tree_is_what_the_oracle_says(n_ranks: int, n_chunks: int, link: LogGP) -> None:
    network = star_of(n_ranks, link)
    job = FlowJob(COLLECTIVES["double_tree_all_reduce"].build(n_ranks, n_chunks), place(network, n_ranks))
    case = Case(network, (job,), (1e6,), (0.0,) * n_ranks, "shortest", 0)
    plan = plan_flows(network, case.jobs)
    ours = simulate_plan(plan, payload(plan, case.sizes))
    theirs = np.array(simulate(network, case.jobs, case.sizes, case.starts))
    np.testing.assert_allclose(np.stack((ours.start, ours.sent, ours.done), 1), theirs, rtol=1e-9, atol=1e-15)
