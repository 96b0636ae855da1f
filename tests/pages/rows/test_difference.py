"""Two results beside each other."""

import pytest

from commsim.core.errors import InputError
from commsim.pages.rows.difference import difference, runs_beside
from commsim.pages.simulated_run import simulate_run
from commsim.prediction.build import prepare


def rows(times, engine="flow", **more):
    """Return a row for each size."""
    return [{"collective": "ring", "engine": engine, "size_B": size, "time_s": t, **more} for size, t in times.items()]


def test_rows_are_matched_by_what_was_asked():
    found = difference(rows({1: 1.0, 2: 2.0, 4: 4.0}), rows({4: 2.0, 2: 3.0, 8: 1.0}))
    assert [(one["size_B"], one["time_ratio"]) for one in found.pairs] == [(2, 1.5), (4, 0.5)]
    assert [one["size_B"] for one in found.only_a] == [1]
    assert [one["size_B"] for one in found.only_b] == [8]
    assert not found.differs


def test_what_each_has_throughout_is_told_and_does_not_keep_rows_apart():
    found = difference(rows({1: 1.0, 2: 2.0}), rows({1: 2.0, 2: 4.0}, "packet"), {"seed": 1}, {"seed": 2})
    assert found.differs == {"seed": (1, 2), "engine": ("flow", "packet")}
    assert {one["time_ratio"] for one in found.pairs} == {2.0}


def test_rows_of_one_collective_are_matched_by_the_parameters_that_it_was_asked_for_with():
    two, one = (rows({1: n / 2}, asked=f"ring:n={n}") for n in (2, 4))
    found = difference(two + one, one)
    assert [pair["time_ratio"] for pair in found.pairs] == [1.0]
    assert [row["asked"] for row in found.only_a] == ["ring:n=2"]
    ring = [{"collective": "other", "size_B": 1, "time_s": 1.0}]
    assert len(difference(two + ring, one + ring).pairs) == 2  # one row of each collective


def test_repeated_points_are_matched_in_their_order():
    found = difference(rows({1: 1.0}) + rows({1: 2.0}), rows({1: 1.0}) + rows({1: 4.0}))
    assert [one["time_ratio"] for one in found.pairs] == [1.0, 2.0]


def test_lists_of_results_are_not_what_was_asked():
    """`diff` of two files of `commsim nccl --json`, whose rows list what was left out, was a traceback."""
    found = difference(rows({1: 1.0}, cells=[{"algorithm": "ring"}]), rows({1: 2.0}, cells=[{"algorithm": "tree"}]))
    assert [one["time_ratio"] for one in found.pairs] == [2.0]
    assert not found.differs


def test_results_without_anything_in_common_are_refused():
    with pytest.raises(InputError, match="no row of one has the configuration"):
        difference(rows({1: 1.0, 2: 1.0}), rows({4: 1.0, 8: 1.0}))


def test_links_and_critical_paths_are_compared():
    slow, fast = (
        simulate_run("r", prepare("ring_all_reduce", f"star:n_hosts=4,latency=0us,bandwidth={rate}Gbps"), 1e6)
        for rate in (50, 100)
    )
    path, links = runs_beside(slow, fast)
    terms = {one["cause"]: one for one in path}
    assert terms["bandwidth"]["a_s"] == pytest.approx(slow.result.time) == pytest.approx(2 * terms["bandwidth"]["b_s"])
    assert all(one["a_s"] == pytest.approx(2 * one["b_s"]) for one in links)


def test_what_came_out_is_no_configuration_by_which_rows_are_matched():
    """Times of several hashes, and what limits them, were asked for: no row of one result had its like in the other."""
    spread = {"fastest_s": 1.0, "slowest_s": 3.0, "n_hashes": 8, "whole_s": 1.5, "faults_cost": 4 / 3}
    limit = {"limited_by": "the NICs", "limit_busy": 0.5, "alone_s": 2.0, "slowdown": 1.0}
    rows = [{"collective": "ring", "size_B": size, "time_s": 2.0, **spread, **limit} for size in (1, 2)]
    others = [{**row, **dict.fromkeys(spread, 9.0), **dict.fromkeys(limit, 7.0)} for row in rows]
    found = difference(rows, others)
    assert (len(found.pairs), found.only_a, found.only_b, found.differs) == (2, (), (), {})
    assert set(found.pairs[0]) == {"collective", "size_B", "a", "b", "time_ratio"}
