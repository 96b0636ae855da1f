import itertools
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.papers.systems.gemini import (
    fit_checkpoint,
    idle_spans,
    network_idle,
    placement_sets,
    recovery_bound,
    recovery_probability,
    wasted_time,
)
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import one_forward_one_backward
from commsim.training.task_graph import simulate_graph


def enumerated(n, m, k):
    """Share of all sets of k failed machines that leave every machine's checkpoint somewhere."""
    sets = placement_sets(n, m)
    cases = [set(failed) for failed in itertools.combinations(range(n), k)]
    return Fraction(sum(all(not held <= failed for held in sets) for failed in cases), len(cases))


@pytest.mark.parametrize(("n", "m"), [(4, 2), (6, 2), (6, 3), (8, 2), (9, 3), (8, 4), (5, 1)])
def test_with_groups_the_probability_of_recovery_is_what_counting_all_cases_gives(n, m):
    for k in range(n + 1):
        exact = enumerated(n, m, k)
        assert recovery_probability(n, m, k) == exact >= recovery_bound(n, m, k)
        if k < 2 * m:
            assert recovery_bound(n, m, k) == exact
        if k < m:
            assert exact == 1


@pytest.mark.parametrize(("n", "m"), [(5, 2), (7, 2), (7, 3), (8, 3), (9, 4), (11, 4), (3, 2)])
def test_mixed_placement_is_within_the_published_gap_of_the_best(n, m):
    sets = placement_sets(n, m)
    assert all(i in held and len(held) == m for i, held in enumerate(sets))
    best = 1 - Fraction(-(-n // m), comb(n, m))  # every machine is in some set, so at least ceil(N/m) differ
    assert 0 <= best - enumerated(n, m, m) <= Fraction(2 * m - 3, comb(n, m))


def test_a_checkpoint_of_42_minutes_to_a_remote_store_wastes_105_minutes():
    assert wasted_time(42.0, 42.0, 42.0) == 105.0
    assert wasted_time(1.0, 10.0, 2.0) == 1 + 5 + 2


spans_lists = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 3)).map(lambda s: (s[0], s[0] + s[1])), max_size=6)


@pytest.mark.slow
@given(busy=spans_lists, size=st.floats(0.1, 1e3), buffer=st.floats(5.0, 100), alpha=st.sampled_from([0.0, 0.05]))
def test_checkpoint_traffic_stays_in_idle_spans_and_within_the_rate(busy, size, buffer, alpha):
    spans = idle_spans(busy, 15.0)
    covered = sum(b - a for a, b in spans)
    points = sorted({0.0, 15.0, *(min(x, 15.0) for span in busy for x in span)})
    free = sum(b - a for a, b in itertools.pairwise(points) if not any(s <= a and b <= e for s, e in busy))
    assert covered == pytest.approx(free)
    traffic = fit_checkpoint(spans, size, 10.0, buffer=buffer, alpha=alpha)
    for start, end, sent in traffic.pieces:
        assert any(a <= start and end <= b for a, b in spans)
        assert 0 < sent <= buffer
        assert end - start >= sent / 10.0 + alpha - 1e-9
    assert all(b[0] >= a[1] for a, b in itertools.pairwise(traffic.pieces))
    total = sum(sent for *_, sent in traffic.pieces)
    assert total == pytest.approx(size) if traffic.iterations == 1 else total * traffic.iterations >= size * (1 - 1e-8)


def test_what_does_not_fit_lowers_the_frequency():
    spans = idle_spans([(1.0, 4.0), (5.0, 9.0)], 10.0)
    assert spans == [(0.0, 1.0), (4.0, 5.0), (9.0, 10.0)]
    assert fit_checkpoint(spans, 30.0, 10.0, buffer=4.0).iterations == 1
    assert fit_checkpoint(spans, 31.0, 10.0, buffer=4.0).iterations == 2
    assert fit_checkpoint(spans, 300.0, 10.0, buffer=4.0).iterations == 10


def test_checkpoints_of_every_iteration_fit_between_the_messages_of_a_pipeline():
    graph = pipeline_graph(one_forward_one_backward(4, 8), StageCosts(2.0, 4.0, activation=50.0))
    timeline = simulate_graph(graph, closed_form_costs(0.0, 100.0))
    for worker in range(4):
        spans = network_idle(timeline, f"gpu{worker}")
        idle = sum(end - start for start, end in spans)
        ports = [t for t in graph.tasks if t.operation and any(r.startswith(f"gpu{worker}.") for r in t.resources)]
        assert timeline.iteration_time - len(ports) * 0.5 <= idle < timeline.iteration_time
        assert fit_checkpoint(spans, 100.0 * idle, 100.0, buffer=32.0).iterations == 1
        assert fit_checkpoint(spans, 101.0 * idle, 100.0, buffer=32.0).iterations == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: placement_sets(2, 3), "replicas must be 1..2, the number of machines, got 3"),
        (lambda: recovery_probability(5, 2, 1), "groups of 2 need a multiple"),
        (lambda: wasted_time(2.0, 1.0, 0.0), "interval must be at least a checkpoint"),
        (lambda: fit_checkpoint([], 1.0, 1.0, buffer=1.0), "no idle span"),
        (lambda: fit_checkpoint([(0.0, 1.0)], 1e12, 1.0, buffer=1.0), "over 1000000 pieces"),
        (lambda: fit_checkpoint([(0.0, 1.0)], 0.0, 1.0, buffer=1.0), "needs a size"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
