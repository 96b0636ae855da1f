import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from collectives import COLLECTIVES
from commsim.core.errors import InputError, PhysicsError
from commsim.core.result import Result
from commsim.core.units import format_time
from commsim.prediction.collective_names import require_operation
from commsim.prediction.inputs import load_network
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import scenario_of
from commsim.ranking import contenders
from commsim.ranking.contenders import algorithms_for, prepare_all, priced_apart
from commsim.ranking.rank_algorithms import TOLERANCE, rank, rank_algorithms, solve_each

SIZES = [2**k for k in range(4, 34, 3)]


def predictor(costs):
    """From a name and a size to alpha + beta * size."""

    def predict(name, size):
        alpha, beta = costs[name]
        time = alpha + beta * size
        return Result(name, "all_reduce", "closed-form", 4, size, time, time)

    return predict


@given(
    st.lists(st.tuples(st.floats(1e-9, 1e-3), st.floats(1e-15, 1e-6)), min_size=1, max_size=5),
    st.lists(st.integers(1, 2**40), min_size=1, max_size=6, unique=True).map(sorted),
)
@pytest.mark.nojit
def test_ranks_are_in_the_order_of_times_and_crossovers_lead_from_one_winner_to_the_next(costs, sizes):
    costs = {f"a{i}": cost for i, cost in enumerate(costs)}
    predict = predictor(costs)
    found = rank_algorithms(list(costs), sizes, predict)
    assert list(found.by_size) == sizes
    for order in found.by_size.values():
        assert sorted(name for name, _ in order) == sorted(costs)
        assert all(b[1].time >= a[1].time * (1 - 1e-9) for a, b in itertools.pairwise(order))
    best = found.by_size[sizes[0]][0][0]
    for crossover in found.crossovers:
        assert crossover.before == best
        assert crossover.low < crossover.high <= max(crossover.low * (1 + TOLERANCE), crossover.low + 1)
        winner = rank_algorithms(list(costs), [crossover.high], predict).by_size[crossover.high][0][0]
        assert winner == crossover.after
        best = crossover.after
    assert best == found.by_size[sizes[-1]][0][0]


@pytest.mark.nojit
def test_a_crossover_is_where_the_two_lines_meet():
    found = rank_algorithms(["steep", "flat"], SIZES, predictor({"steep": (1e-6, 1e-9), "flat": (11e-6, 1e-10)}))
    (crossover,) = found.crossovers
    meet = 10e-6 / 0.9e-9
    assert (crossover.before, crossover.after) == ("steep", "flat")
    assert crossover.low <= meet <= crossover.high


@pytest.mark.nojit
def test_two_crossovers_between_neighbouring_sizes_are_both_found():
    costs = {"small": (1e-6, 4e-9), "middle": (5e-6, 2e-9), "large": (20e-6, 1e-9)}
    found = rank_algorithms(list(costs), [16, 2**30], predictor(costs))
    assert [(c.before, c.after) for c in found.crossovers] == [("small", "middle"), ("middle", "large")]
    for crossover, meet in zip(found.crossovers, (2000, 15000), strict=True):
        assert crossover.low <= meet <= crossover.high


@pytest.mark.nojit
def test_times_that_differ_by_rounding_are_equal_and_the_name_decides():
    found = rank_algorithms(["b", "a"], SIZES, predictor({"b": (1e-6, 1e-9), "a": (1e-6 * (1 + 1e-12), 1e-9)}))
    assert {order[0][0] for order in found.by_size.values()} == {"a"}
    assert found.crossovers == ()


@pytest.mark.slow
def test_on_a_star_the_ranking_is_that_of_the_closed_forms():
    network = load_network("star:n_hosts=16")
    known = [name for name in algorithms_for("all_reduce") if COLLECTIVES[name].metadata["cost"] is not None]
    names = ["switchml", "sharp", *(name for name in known if not COLLECTIVES[name].build(16).n_helpers)]
    ready, left_out = prepare_all([*names, "atp"], network)
    assert left_out == {"atp": "atp needs a host beside its 16 ranks, for its server"}

    def order(engine):
        found = rank_algorithms(names, [2**10, 2**20, 2**28], lambda n, size: ready[n].predict(size, engine=engine))
        return [[name for name, _ in by_size] for by_size in found.by_size.values()], found.crossovers

    assert order("flow") == order("closed-form")


def test_switches_are_assumed_to_be_programmable_only_for_what_is_named():
    network = load_network("star:n_hosts=4")
    names = ["ring_all_reduce", "switchml", "sharp"]
    ready, left_out = prepare_all(names, network, named=["sharp"])
    assert list(ready) == ["ring_all_reduce", "sharp"]
    assert left_out["switchml"].startswith("switchml: star:n_hosts=4")
    assert left_out["switchml"].endswith("has no aggregating switch; name switchml to assume it")
    able = dataclasses.replace(network, aggregates=True)
    assert list(prepare_all(names, able, named=[])[0]) == names


@pytest.mark.nojit
def test_an_operation_nothing_implements_and_one_that_does_not_exist_are_refused():
    with pytest.raises(InputError, match="unknown operation 'all_reduse'"):
        algorithms_for("all_reduse")
    with pytest.raises(InputError, match="ring_all_gather implements all_gather, not all_reduce"):
        require_operation("ring_all_gather", "all_reduce")
    require_operation("chain_broadcast:n_chunks=4", "broadcast")


def test_what_cannot_run_is_left_out_with_the_reason():
    network = load_network("star:n_hosts=4")

    def only_rings(_, prepared):
        if "ring" not in prepared.schedule.name:
            raise InputError("not a ring")

    ready, left_out = prepare_all(["ring_all_reduce", "halving_doubling_all_reduce"], network, probe=only_rings)
    assert list(ready) == ["ring_all_reduce"]
    assert left_out == {"halving_doubling_all_reduce": "not a ring"}
    with pytest.raises(InputError, match=r"ranks must be 1\.\.4"):
        prepare_all(["ring_all_reduce", "halving_doubling_all_reduce"], network, n_ranks=5)


def test_a_ranking_says_which_algorithms_have_costs_that_the_others_lack():
    found, _ = prepare_all(["ring_all_reduce", "nccl_all_reduce"], load_network("dgx-h100"))
    (line,) = priced_apart(found, 2**20)
    assert line.text.startswith("nccl_all_reduce: messages with costs of GPUs")
    assert priced_apart({"nccl_all_reduce": found["nccl_all_reduce"]}, 2**20) == []
    assert priced_apart({"ring_all_reduce": found["ring_all_reduce"]}, 2**20) == []


@pytest.mark.parametrize(
    ("network", "library"),
    [("dgx-h100", "nccl"), ("mi300x", "rccl"), ("dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=4", "nccl")],
)
def test_all_ways_on_gpus_have_the_launch_of_the_library(network, library):
    """The library's calls had their launch, 4.5 us of 23, and the others none."""
    scenario = scenario_of("", network)
    ranking = rank(scenario, "all_reduce", [2**20])
    alone = rank(scenario, "all_reduce", [2**20], algorithms=[name for name in ranking.plans if "ccl" not in name])
    assert ranking.launch > 1e-6
    assert alone.launch == 0.0
    times, without = (dict(one.by_size[2**20]) for one in (ranking, alone))
    for name, plain in without.items():
        assert times[name].time == plain.time + ranking.launch
        assert times[name].time_from_last_start == plain.time_from_last_start + ranking.launch
    called = f"{library}_all_reduce"
    assert times[called].time == cs.predict(called, network, 2**20).time
    assert f"launch of {format_time(ranking.launch)} each" in repr(ranking)


def test_no_launch_is_assumed_of_plain_hosts_or_beside_a_preset_of_software():
    star = "star:n_hosts=4"
    assert (
        rank(scenario_of("", star), "all_reduce", [2**20], algorithms=["ring_all_reduce", "nccl_all_reduce"]).launch
        == 0
    )
    asked = scenario_of("", "dgx-h100", software="gloo")
    time = dict(rank(asked, "all_reduce", [2**20]).by_size[2**20])["ring_all_reduce"].time
    assert time == cs.predict("ring_all_reduce", "dgx-h100", 2**20, software="gloo").time


def failing(monkeypatch, error):
    """Let the prediction of rings of more than 1 MiB fail, and return how often each algorithm is predicted."""
    runs, outcome = [], Plan.outcome

    def once(self, size, wish):
        runs.append((self.schedule.name, size))
        if self.schedule.name == "ring_all_reduce" and size > 2**20:
            raise error
        return outcome(self, size, wish)

    monkeypatch.setattr(Plan, "outcome", once)
    return runs


def test_what_an_engine_cannot_do_at_some_size_is_left_out_and_does_not_end_the_ranking(monkeypatch):
    failing(monkeypatch, InputError("not so large"))
    scenario = scenario_of("", "star:n_hosts=4", overhead="0us")
    ranking = rank(scenario, "all_reduce", [2**20, 2**21])
    assert ranking.left_out["ring_all_reduce"] == "not so large"
    assert "ring_all_reduce" not in dict(ranking.by_size[2**20])
    with pytest.raises(InputError, match="not so large"):
        rank(scenario, "all_reduce", [2**20, 2**21], named=["ring_all_reduce"])
    solutions, left_out = solve_each(scenario, "all_reduce", [2**20, 2**21])
    assert left_out["ring_all_reduce"] == "not so large"
    assert "ring_all_reduce" not in {one.scenario.name for one in solutions}


def test_a_bug_of_one_algorithm_ends_the_ranking_and_is_named(monkeypatch):
    failing(monkeypatch, PhysicsError("deadlock"))
    with pytest.raises(PhysicsError, match="ring_all_reduce: deadlock"):
        rank(scenario_of("", "star:n_hosts=4", overhead="0us"), "all_reduce", [2**21])


def test_each_algorithm_is_prepared_and_predicted_once(monkeypatch):
    prepared, prepare = [], contenders.prepare

    def once(spec, network, **options):
        prepared.append(spec)
        return prepare(spec, network, **options)

    monkeypatch.setattr(contenders, "prepare", once)
    runs = failing(monkeypatch, InputError("-"))
    scenario = scenario_of("", "star:n_hosts=4", overhead="0us")
    for ask in (solve_each, rank):
        prepared.clear(), runs.clear()
        ask(scenario, "all_reduce", [2**10], named=["sharp"])
        assert "sharp" in prepared
        assert len(prepared) == len(set(prepared))
        assert len(runs) == len(set(runs)) > 3


def test_a_ranking_says_the_overhead_that_its_times_include():
    """``predict`` has none unless it is given, so the two differed by 14 us, and nothing told why."""
    for asked, seconds, told in ((None, 1e-6, "1 us"), ("3us", 3e-6, "3 us")):
        options = {} if asked is None else {"overhead": asked}
        ranking = cs.rank("all_reduce", "star:n_hosts=4", "1MiB", **options)
        assert f"algorithms, {told} of overhead per message, the best" in repr(ranking)
        assert set(ranking.to_frame("pandas")["overhead_s"]) == {seconds}


def test_the_frame_of_what_takes_no_time_has_rows():
    frame = cs.rank("all_reduce", "star:n_hosts=1", ["1MiB"]).to_frame("pandas")
    assert set(frame["times_best"]) == {1.0}
