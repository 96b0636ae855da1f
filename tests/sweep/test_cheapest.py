import dataclasses
import itertools
import re
import sys
from pathlib import Path

import pytest

from commsim import predict
from commsim.core.errors import InputError
from commsim.report.answer import Answer, show
from commsim.sweep.cheapest import Offer, cheapest_topologies, rank_offers, read_bills
from commsim.sweep.cli.cheapest import _about_spare, _parts_of_offers
from commsim.sweep.config import read_config
from commsim.sweep.points import points
from commsim.sweep.price import Goal, PriceItem, Prices, read_goal, read_prices, total
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import read_table

RATES, SIZES = ("100Gbps", "200Gbps", "400Gbps"), ("1KiB", "1MiB")
ALGORITHMS = ("ring_all_reduce", "halving_doubling_all_reduce")


@pytest.fixture
def tree(small):
    small["topology"] = {"name": "star", "n_hosts": [8, 16], "bandwidth": list(RATES), "latency": "1us"}
    small["collective"] = {"name": list(ALGORITHMS), "ranks": 8, "size": list(SIZES)}
    small["cost"] = {"nic": {"100Gbps": 1, "200Gbps": 3, "400Gbps": 9}, "port": 1, "cable": 1, "switch": 50}
    small["goal"] = {"keep": "time", "within": "80us"}
    return small


def offers(tree, tmp_path):
    config = read_config(tree)
    run_sweep(config, tmp_path / "r", "serial")
    bills, _ = read_bills(config, read_prices(tree, "f"))
    return rank_offers(read_table(tmp_path / "r"), config, bills, read_goal(tree, "f"))


def test_the_cheapest_that_keeps_the_time_is_found_by_looking_at_all(tree, tmp_path):
    found = offers(tree, tmp_path)
    truth = {}
    for n, rate in itertools.product((8, 16), RATES):
        network = f"star:n_hosts={n},bandwidth={rate},latency=1us"
        time = max(min(predict(name, network, size, n_ranks=8, engine="alpha-beta").time for name in ALGORITHMS)
                   for size in SIZES)  # fmt: skip
        truth[network] = (n * ({"100Gbps": 1, "200Gbps": 3, "400Gbps": 9}[rate] + 2) + 50, time)
    assert {o.topology: (o.cost, o.value) for o in found} == truth
    keeping = [cost for cost, time in truth.values() if time <= 80e-6]
    assert 0 < len(keeping) < 6
    assert (found[0].keeps, found[0].cost) == (True, min(keeping))
    assert [o.keeps for o in found] == sorted((o.keeps for o in found), reverse=True)
    front = {name for name, (cost, time) in truth.items()
             if not any((c <= cost and t < time) or (c < cost and t <= time) for c, t in truth.values())}  # fmt: skip
    assert {o.topology for o in found if o.is_on_front} == front


@pytest.mark.parametrize(
    ("asked", "costlier"),
    [({"name": ["ring_all_reduce", "direct_all_to_all"]}, {"name": "ring_all_reduce"}),
     ({"name": "omnireduce", "density": [0.01, 0.5]}, {"name": "omnireduce", "density": 0.5}),
     ({"name": "parallax", "dense_share": [0.25, 1.0]}, {"name": "parallax", "dense_share": 1.0})],
)  # fmt: skip
def test_another_operation_and_other_data_are_questions_and_no_alternatives(tree, tmp_path, asked, costlier):
    """The all-to-all was taken for a faster way to all-reduce."""
    tree["topology"] = {"name": "star", "n_hosts": 16, "bandwidth": "100Gbps", "latency": "1us"}
    tree["goal"]["within"] = "1s"
    values = []
    for number, collective in enumerate((asked, costlier)):
        tree["collective"] = {**collective, "size": "4MiB", "ranks": 8}
        tree["engine"] = {"name": "flow"}
        (offer,) = offers(tree, tmp_path / str(number))
        values.append(offer.value)
    assert values[0] == values[1] > 0


def test_a_rate_is_kept_from_below(tree, tmp_path):
    tree["goal"] = {"keep": "busbw", "at_least": "1Gbps"}
    found = offers(tree, tmp_path)
    for offer in found:
        busbw = [max(predict(name, offer.topology, size, n_ranks=8, engine="alpha-beta").busbw for name in ALGORITHMS)
                 for size in SIZES]  # fmt: skip
        assert offer.value == min(busbw)
        assert offer.keeps is (min(busbw) >= 125e6)


@pytest.mark.parametrize("keep", ["time", "busbw"])
def test_the_median_over_hashes_is_what_keeps_the_goal_and_the_spread_stands_beside_it(tree, tmp_path, capsys, keep):
    """With one hash a fabric was refused that keeps the time with most."""
    tree["topology"] = {"name": "leaf_spine", "n_leaves": 4, "hosts_per_leaf": 4, "n_spines": [2, 4]}
    tree["collective"] = {"name": "halving_doubling_all_reduce", "size": "64MiB"}
    tree["engine"] = {"name": "flow"}
    found = {}
    for n in (2, 4):
        spec = f"leaf_spine:n_leaves=4,hosts_per_leaf=4,n_spines={n}"
        found[spec] = predict("halving_doubling_all_reduce", spec, "64MiB")
    result = found["leaf_spine:n_leaves=4,hosts_per_leaf=4,n_spines=4"]
    assert result.hashes.fastest < result.time < result.hashes.slowest
    bound = {"within": f"{result.time * 1.001e6}us"} if keep == "time" else {"at_least": f"{result.busbw * 7.99}bps"}
    tree["goal"] = {"keep": keep, **bound}
    ranked = offers(tree, tmp_path)
    kept = {one.topology: one.keeps for one in ranked}
    assert kept == {spec: spec.endswith("=4") for spec in found}
    for one in ranked:
        of = found[one.topology]
        ends = (of.hashes.fastest, of.hashes.slowest)
        assert one.n_hashes == of.hashes.n
        assert one.value == (of.time if keep == "time" else of.busbw)
        assert one.spread == pytest.approx(ends if keep == "time" else [of.busbw * of.time / end for end in ends])
    show(Answer(_parts_of_offers(ranked, Prices("f", "EUR", {}), read_goal(tree, "f"))), {})
    (names,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("rank"))
    assert names[3:7] == [f"median_{keep}", "fastest", "slowest", "keeps"]


def test_a_topology_that_cannot_answer_a_question_is_last_and_says_why(tree, tmp_path):
    tree["topology"]["n_hosts"] = [4, 16]
    last = offers(tree, tmp_path)[-1]
    assert last.value is None
    assert not last.keeps
    assert "has 4 hosts), got 8" in last.problem


def test_a_question_that_filters_leave_out_is_no_answer(tree, tmp_path):
    tree["sweep"] = {"filters": ["bandwidth > '100Gbps' or size < '1MiB'"]}
    slow = [offer for offer in offers(tree, tmp_path) if "bandwidth=100Gbps" in offer.topology]
    assert {(offer.keeps, offer.problem) for offer in slow} == {(False, "a question is left out by filters")}


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (None, r"\[goal\] is missing"),
        ({"keep": "cost", "within": "1s"}, "one of time, iteration"),
        ({"keep": "time"}, r"goal.within must be text with a unit|goal.within is missing"),
        ({"keep": "time", "within": 5}, "text with a unit"),
        ({"keep": "busbw", "within": "5ms"}, "goal.at_least"),
        ({"keep": "time", "within": "1s", "at_least": "1s"}, "not a field here"),
    ],
)
def test_a_goal_is_read_strictly(goal, message):
    with pytest.raises(InputError, match=message):
        read_goal({} if goal is None else {"goal": goal}, "f")


def test_topologies_of_different_cases_are_compared(tree, tmp_path):
    tree["topology"] = {"bandwidth": "200Gbps"}
    tree["case"] = [{"topology": {"n_hosts": 8, "name": "star"}}, {"topology": {"name": "torus", "dims": "2x4"}},
                    {"topology": {"name": "fat_tree", "bandwidth": "400Gbps", "k": 4}}]  # fmt: skip
    found = offers(tree, tmp_path)
    assert {offer.topology for offer in found} == {
        "star:bandwidth=200Gbps,n_hosts=8", "torus:bandwidth=200Gbps,dims=2x4", "fat_tree:bandwidth=400Gbps,k=4",
    }  # fmt: skip
    for offer in found:
        assert offer.value == max(min(predict(name, offer.topology, size, n_ranks=8, engine="alpha-beta").time
                                      for name in ALGORITHMS) for size in SIZES)  # fmt: skip


def test_the_bill_adds_up(tree, tmp_path):
    assert all(offer.cost == total(offer.bill) for offer in offers(tree, tmp_path))


def test_hosts_that_no_rank_needs_are_charged_and_named(tree):
    """A fat tree of 128 hosts was charged whole for 64 ranks, without a word."""
    config = read_config(tree)
    bills, spare = read_bills(config, read_prices(tree, "f"))
    assert {spec: n for spec, n in spare.items() if "n_hosts=16" in spec} == {
        spec: 8 for spec in bills if "=16," in spec
    }
    assert all(n == 0 for spec, n in spare.items() if "n_hosts=8" in spec)


def test_prices_that_are_missing_are_named_for_all_topologies(tree):
    tree["cost"]["nic"] = {"400Gbps": 9}
    config = read_config(tree)
    with pytest.raises(InputError, match=r"(?s)no price for 100Gbps.*no price for 200Gbps"):
        read_bills(config, read_prices(tree, "f"))


def test_without_pyarrow_nothing_is_computed_first(tmp_path, monkeypatch):
    """126 points were computed, and then refused."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = Path(__file__).parents[2] / "examples" / "sweep_cost.toml"
    said = []
    with pytest.raises(InputError, match=r"pip install 'commsim\[data\]'"):
        cheapest_topologies(path, tmp_path / "kept", jobs=1, say=said.append)
    assert not said
    assert not (tmp_path / "kept").exists()


def test_the_answer_comes_first_and_of_those_that_miss_the_goal_only_the_front_is_shown(tmp_path, capsys):
    from commsim.cli import main

    example = (Path(__file__).parents[2] / "examples" / "sweep_cost.toml").read_text()
    few = 'n_spines = [2, 8], bandwidth = ["100Gbps", "400Gbps"], uplink_bandwidth = ["100Gbps", "400Gbps"]'
    path = tmp_path / "sweep.toml"
    path.write_text(re.sub(r"n_spines = .*(?= \}\n)", few, example))
    assert few in path.read_text()
    assert main(["sweep", "cheapest", str(path), "--jobs", "1", "-v"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# cheapest: leaf_spine")
    rows = [line.split() for line in lines if not line.startswith("#")][1:]
    assert any("*" in row for row in rows)
    assert not [row for row in rows if "no" in row and "*" not in row]
    assert any("more are in the JSON" in line for line in lines)


def test_a_case_without_a_topology_is_named_by_its_number(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        '[sweep]\nfilters = ["topology.n_hosts == 4"]\n[collective]\nname = "ring_all_reduce"\nsize = "1MB"\n'
        '[[case]]\ntopology = { name = "star", n_hosts = 4 }\n[[case]]\n'
    )
    with pytest.raises(InputError, match=r"case 2 of 2: .*topology\.name is missing"):
        list(points(read_config(path)))


def test_the_part_of_the_cost_for_used_hosts_is_told_and_what_would_be_cheapest_by_it():
    """Topologies with spare hosts were charged whole, and the ranking followed that alone."""
    prices = Prices("f", "EUR", {})
    fits = Offer("star:n_hosts=4", (PriceItem("nic", "", 4, 40.0),), 1.0, "", "", True)
    large = Offer("star:n_hosts=8", (PriceItem("nic", "", 8, 25.0),), 1.0, "", "", True, spare=4)
    said = _about_spare([fits, large], prices)
    assert "star:n_hosts=8: 4 hosts too many, 100 EUR of 200 EUR for those used" in said[0]
    assert "star:n_hosts=8 would be the cheapest" in said[1]
    assert len(_about_spare([fits, dataclasses.replace(large, keeps=False)], prices)) == 1
    assert _about_spare([fits], prices) == []


def test_a_bill_of_many_lines_does_not_hide_the_answer_on_a_terminal(capsys, monkeypatch):
    """Five remarks above a table were one line, and the answer was among them."""
    best = Offer("star:n_hosts=4", tuple(PriceItem(f"item{i}", "", 1, 1.0) for i in range(5)), 1.0, "", "", True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(Answer(_parts_of_offers([best], Prices("f", "EUR", {}), Goal("time", 2.0))), {})
    out = capsys.readouterr().out
    assert "# cheapest: star:n_hosts=4 at 5 EUR" in out
    assert [line.split() for line in out.splitlines() if "item" in line] == [[f"item{i}", *"111"] for i in range(5)]
    assert sum(line.startswith("#") for line in out.splitlines()) <= 5
