"""What extensions say of results is asked by the counter, field or engine by which they are registered."""

from types import SimpleNamespace

import pytest
from remark_codes import codes

import commsim as cs
from commsim.core.remark import Remark
from commsim.extensions import house
from commsim.prediction import result_remarks, solve

STAR = "star:n_hosts=4"


def solved(collective, network, **given):
    return cs.solve(cs.scenario_of(collective, network, overhead="0us", **given), ["1MiB"])


@pytest.mark.parametrize(("mark", "is_said"), [("flow", True), ("packet", False), ("link_bound_s", False)])
def test_a_remark_is_asked_of_results_with_its_mark_only(monkeypatch, mark, is_said):
    def said(results):
        return [Remark("own", f"{len(results)} results of {results[0].collective}")]

    monkeypatch.setattr(result_remarks, "house", lambda: SimpleNamespace(remarks={mark: said}))
    solution = solved("ring_all_reduce", STAR)
    assert [one.text for one in solution.remarks if one.code == "own"] == ["1 results of ring_all_reduce"] * is_said


def test_extensions_say_what_their_results_mean():
    assert "density" in codes(solved("omnireduce:density=0.1", STAR).remarks)
    assert "interval" in codes(solved("nccl", "dgx-h100").remarks)
    assert not {"density", "interval"} & codes(solved("ring_all_reduce", STAR).remarks)


def test_every_registered_remark_says_nothing_of_no_results():
    assert [name for name, said in house().remarks.items() if said([])] == []


def test_a_fault_plans_the_network_without_it_once(monkeypatch):
    planned = []

    def counted(scenario):
        planned.append(scenario.failed)
        return plan_of(scenario)

    plan_of = solve.plan_of
    monkeypatch.setattr(solve, "plan_of", counted)
    leaves = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4"
    solution = solved("ring_all_reduce", leaves, n_ranks=4, fail=["link:leaf2:spine0"])
    assert "fault-unused" in codes(solution.remarks)
    assert planned == [()]
