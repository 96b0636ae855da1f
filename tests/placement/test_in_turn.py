"""Candidates of the strategies in turn: made one by one, they are those of all strategies' lists."""

import pytest

from commsim.core.errors import InputError
from commsim.placement import strategies
from commsim.placement.cluster import read_cluster
from commsim.placement.scored_placements import in_turn
from commsim.placement.strategies import Drawing
from commsim.training.sharing.periodic import PeriodicJob

CLUSTER = read_cluster(
    {"topology": {"spec": "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=2"}, "hosts": {"gpus": 2}}
)
JOBS = [PeriodicJob("a", 4, 0.1, ()), PeriodicJob("b", 2, 0.1, (), ("h0", "h5"))]


def candidates(cluster, jobs, strategy="packed", n=10, seed=0):
    """All placements of a strategy."""
    return list(Drawing(cluster, jobs).each(strategy, n, seed))


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("names", [("packed", "spread", "random"), ("random", "packed", "random")])
def test_each_strategy_gives_one_after_the_other_and_each_placement_is_taken_once(names, n):
    made = {name: candidates(CLUSTER, JOBS, name, n, 3) for name in names}
    expected = {}
    for i in range(n):
        for name, row in made.items():
            if i < len(row) and len(expected) < n:
                expected.setdefault(row[i], (name, row[i]))
    assert in_turn(CLUSTER, JOBS, names, n, 3) == list(expected.values())


def test_no_more_are_made_than_are_taken(monkeypatch):
    drawn = []
    original = strategies._checked
    monkeypatch.setattr(strategies, "_checked", lambda *of: drawn.append(of[-1]) or original(*of))
    assert len(in_turn(CLUSTER, JOBS, ("packed", "spread", "random"), 1, 0)) == 1
    assert drawn == ["packed"]


def test_strategies_are_refused_before_any_placement_is_made():
    with pytest.raises(InputError, match="pack"):
        in_turn(CLUSTER, JOBS, ("packed", "pack"), 1, 0)
    with pytest.raises(InputError, match="at least one generator"):
        in_turn(CLUSTER, JOBS, (), 1, 0)
