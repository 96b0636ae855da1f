import json
import pickle

import pytest

import commsim as cs
from commsim.cli import main
from commsim.prediction.inputs import load_network
from commsim.report.titles import costs_in_title, least_in_title

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
LEAVES = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"


def title_and_time(tmp_path, capsys, *words):
    """Return the title of the table, and the time of ring_all_reduce."""
    out = tmp_path / "answer.json"
    assert main(["run", "--topology", STAR, *words, "-b", "1K", "-e", "1K", "--json", str(out)]) == 0
    (title,) = [line for line in capsys.readouterr().out.splitlines() if "engine flow" in line]
    rows = json.loads(out.read_text())["results"]
    return title, next(row["time_s"] for row in rows if row["collective"] == "ring_all_reduce")


def test_a_ranking_and_a_run_name_their_overhead_and_agree(tmp_path, capsys):
    ranking, run = ("--operation", "all_reduce"), ("ring_all_reduce",)
    title, time = title_and_time(tmp_path, capsys, *ranking)
    assert title.endswith(", 1 us of overhead per message")
    assert title_and_time(tmp_path, capsys, *run) == (title_of(title), time)
    bare, without = title_and_time(tmp_path, capsys, *run, "--overhead", "0us")
    assert bare.endswith(", no overhead per message")
    assert without < time
    assert title_and_time(tmp_path, capsys, *run, "--overhead", "1us") == (title_of(title), time)
    assert title_and_time(tmp_path, capsys, *ranking, "--overhead", "0us")[1] == without
    ranked = [result for _, result in cs.rank("all_reduce", STAR, "1KiB").by_size[1024]]
    assert [one.time for one in ranked if one.collective == "ring_all_reduce"] == [time]


def title_of(ranking):
    return ranking.replace("# all_reduce", "# ring_all_reduce")


def test_sweeps_pages_plots_and_python_name_the_software_costs_that_the_title_of_run_names(tmp_path, capsys):
    """Only the title of `run` said that times were without overhead."""
    pytest.importorskip("matplotlib")
    sweep, out = tmp_path / "s.json", tmp_path / "out"
    sweep.write_text(json.dumps({
        "topology": {"name": "star", "n_hosts": 4}, "engine": {"overhead": ["0us", "1us"]},
        "collective": {"name": "ring_all_reduce", "size": ["1KiB", "1MiB"]},
    }))  # fmt: skip
    assert main(["sweep", str(sweep), "-o", str(out), "--executor", "serial", "-v"]) == 0
    assert "# software costs: no overhead per message; 1 us of overhead per message\n" in capsys.readouterr().out
    assert main(["sweep", "export", str(out), "-o", str(tmp_path / "x.json")]) == 0
    rows = json.loads((tmp_path / "x.json").read_text())["results"]
    assert [row["costs"][:4] for row in rows] == ["no o", "no o", "1 us", "1 us"]
    run = ["run", "--topology", "dgx-h100", "nccl_all_reduce", "--size", "1K,1M", "--json", str(tmp_path / "r.json")]
    assert main(run) == 0
    for source in (out, tmp_path / "r.json"):
        assert main(["plot", "busbw", str(source), "-o", str(tmp_path / "p.svg"), "-v"]) == 0
        assert main(["report", str(source), "-o", str(tmp_path / "p.html")]) == 0
        costs = "1 us of overhead per message" if source == out else "the library's own costs of messages"
        assert costs in capsys.readouterr().out
        assert costs.rpartition("'")[2] in (tmp_path / "p.html").read_text()
    for collective, network, costs in (
        ("ring_all_reduce", STAR, "no overhead per message"),
        ("nccl_all_reduce", "dgx-h100", "the library's own costs of messages"),
        ("nccl_all_reduce", STAR, "no overhead per message"),  # whose GPUs are unknown, so that only links cost time
        ("rccl_all_reduce", STAR, "no overhead per message"),
        ("rccl_all_reduce", "mi300x", "the library's own costs of messages"),
    ):
        one = cs.predict(collective, network, "1KiB", overhead="0us")
        assert one.costs == costs
        assert pickle.loads(pickle.dumps(one)).costs == ""


@pytest.mark.parametrize(
    ("network", "ratio"),
    [
        (f"{LEAVES},oversubscription=1", ""),
        (LEAVES, "fabric 2:1 oversubscribed"),
        (f"{LEAVES},oversubscription=4", "fabric 4:1 oversubscribed (1 of 2 spines left out)"),
        (STAR, ""),
        ("dgx-h100", ""),  # what is inside of machines is no fabric
        ("dgx-h100@leaf_spine:machines=32,n_leaves=8,n_spines=8", "fabric 4:1 oversubscribed"),
        ("dgx-h100@leaf_spine:machines=32,n_leaves=8,n_spines=8,oversubscription=1", ""),
    ],
)
def test_a_fabric_with_less_upwards_than_below_is_named_with_its_ratio(network, ratio):
    assert costs_in_title(load_network(network)) == ", ".join(filter(None, ("no overhead per message", ratio)))


def test_the_advice_and_the_synthesis_name_their_overhead(capsys):
    assert main(["advise", "--topology", STAR, "--size", "1MiB"]) == 0
    assert "engine flow, 1 us of overhead per message" in capsys.readouterr().out
    words = ["synthesize", "--topology", "star:n_hosts=4", "--operation", "all_gather", "-b", "1K", "-e", "1K"]
    assert main(words) == 0
    assert "4 ranks, 1 us of overhead per message" in capsys.readouterr().out


def test_a_dead_cable_among_parallel_ones_is_told_from_all_of_them(capsys):
    words = ["run", "ring_all_reduce", "-b", "1M", "-e", "1M", "--fail", "link:leaf0:spine0"]
    assert main([*words, "--topology", f"{LEAVES},uplinks_per_spine=2"]) == 0
    assert "without leaf0:spine0 (1 of 2 cables)," in capsys.readouterr().out
    assert main([*words, "--topology", LEAVES]) == 0
    assert "without leaf0:spine0," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (f"{LEAVES},oversubscription=4", "fabric 4:1 oversubscribed (1 of 2 spines left out)"),
        ("rail_optimized:machines=2,oversubscription=2", "no traffic above the leaves: all machines are in one group"),
        ("rail_optimized:machines=2,hosts_per_group=1,oversubscription=1", ""),
        ("rail_optimized:machines=4,hosts_per_group=2,oversubscription=2", "fabric 2:1 oversubscribed"),
    ],
)
def test_a_title_says_when_no_byte_reaches_what_is_oversubscribed(network, said):
    result = cs.solve(cs.scenario_of("nccl_all_reduce", network), ["1MiB"])
    title = costs_in_title(result.plan.network, result.results, has_own_costs=True)
    assert title == ", ".join(filter(None, ("the library's own costs of messages", said)))


@pytest.mark.parametrize("fail", ["gpu:m0.gpu3", "nic:m1.nic3"])
@pytest.mark.parametrize("network", ["dgx-h100@star:machines=2", "rail_optimized:machines=2"])
def test_a_part_that_a_machine_has_lost_is_no_oversubscription(network, fail):
    """A NIC without its GPU was a tier above the switch: no traffic above the switch switches, or a fabric of 32:1."""
    whole, left = (cs.scenario_of("nccl", network, fail=some).network for some in ((), (fail,)))
    assert costs_in_title(whole) == costs_in_title(left)
    result = cs.solve(cs.scenario_of("nccl", network, fail=[fail]), ["1MiB"])
    assert "above" not in costs_in_title(result.plan.network, result.results)
    assert "oversubscribed" not in costs_in_title(result.plan.network, result.results)


def test_hosts_of_one_rack_are_named_too(capsys):
    words = ["run", "ring_all_reduce", "-b", "1M", "-e", "1M", "--topology", f"{LEAVES},oversubscription=4"]
    assert main([*words, "--ranks", "4"]) == 0
    assert "no traffic above the leaves: all hosts are in one rack" in capsys.readouterr().out
    assert main(words) == 0
    assert "fabric 4:1 oversubscribed" in capsys.readouterr().out


def test_a_narrow_title_loses_what_was_asked_for_before_that_packets_spread():
    """At 80 columns the cost of a dead cable stood without the assumption that decides it."""
    least = least_in_title(load_network("dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=2"))
    spread = least.index(", infiniband spreads packets")
    assert [piece for piece in least[spread:] if "machines=" in piece] == []
    assert any("machines=2" in piece for piece in least[:spread])
