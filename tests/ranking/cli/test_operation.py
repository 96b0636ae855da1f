import itertools

import pytest

from collectives import COLLECTIVES
from commsim.core.operations import OPERATIONS

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
SIZES = ("-b", "1K", "-e", "1G", "-f", "1024")


def test_all_algorithms_of_an_operation_are_ranked(commsim):
    tree = commsim.results("run", "--operation", "all_reduce", "--topology", STAR, "--overhead", "1us", *SIZES, "-v")
    facts = {name: COLLECTIVES[name].metadata for name in COLLECTIVES}
    known = [name for name in facts if facts[name]["operation"] == "all_reduce" and facts[name]["sparse"] is None]
    # plain hosts have no GPUs of NVIDIA's, and the ring of gloo is ranked only by name
    here = [name for name in known if "nccl" not in facts[name]["needs"] and name != "gloo_ring_all_reduce"]
    # servers share the hosts of the ranks
    every = {
        name for name in here if not (entry := COLLECTIVES[name]).build(8).n_helpers or "colocated" in entry.parameters
    }
    assert [row["size_B"] for row in tree["ranking"]] == [2**10, 2**20, 2**30]
    for row in tree["ranking"]:
        assert {a["algorithm"] for a in row["algorithms"]} == every
        assert row["algorithms"][0]["times_best"] == 1
        times = [a["time_s"] for a in row["algorithms"]]
        assert all(later >= earlier * (1 - 1e-9) for earlier, later in itertools.pairwise(times))
    assert len(tree["results"]) == 3 * len(every)
    assert set(tree["left_out"]) == set(known) - every  # what needs programmable switches, or hosts for servers
    libraries = "nccl_all_reduce, rccl_all_reduce (name one to run it)"
    assert f"# skipped, a library's, for GPUs that the network does not have: {libraries}\n" in commsim.out
    assert {"switchml", "atp", "sharp"} <= set(tree["left_out"])
    winners = [row["algorithms"][0]["algorithm"] for row in tree["ranking"]]
    assert tree["crossovers"][0]["before"] == winners[0]
    assert tree["crossovers"][-1]["after"] == winners[-1]
    assert f"# best: {winners[0]}, " in commsim.out
    assert f"from between {tree['crossovers'][0]['low_B']} and" in commsim.out


@pytest.mark.parametrize("operation", [name for name, one in OPERATIONS.items() if one.layout != "runs"])
def test_every_operation_is_ranked(commsim, operation):
    asked = ("--topology", STAR, "--operation", operation, "-b", "64K", "-e", "64K")
    ranked = commsim.results("run", *asked, "--overhead", "1us")["ranking"][0]["algorithms"]
    each = commsim.results("run", *asked, "--algorithm", "all", "--overhead", "1us")["results"]
    assert sorted(row["time_s"] for row in each) == sorted(row["time_s"] for row in ranked)
    assert "another algorithm can be named" not in commsim.out


def test_best_is_what_an_operation_alone_means(commsim):
    one = commsim.results("run", "--operation", "broadcast", "--topology", STAR)
    other = commsim.results("run", "--operation", "broadcast", "--algorithm", "best", "--topology", STAR)
    assert one["ranking"] == other["ranking"]


def test_all_prints_the_usual_table_of_each(commsim):
    tree = commsim.results("run", "--operation", "broadcast", "--algorithm", "all", "--topology", STAR)
    assert sorted(r["collective"] for r in tree["results"]) == ["binomial_broadcast", "chain_broadcast"]
    assert commsim.out.count("busiest_link") == 2
    assert "ranking" not in tree


def test_one_algorithm_may_be_named_with_its_parameters(commsim):
    spec = "chain_broadcast:n_chunks=4"
    tree = commsim.results("run", "--operation", "broadcast", "--algorithm", spec, "--topology", STAR)
    plain = commsim.results("run", "--collective", spec, "--topology", STAR)
    assert tree["results"] == plain["results"]


def test_collective_adds_to_what_is_compared(commsim):
    tree = commsim.results(
        "run", "--operation", "broadcast", "--collective", "chain_broadcast:n_chunks=2", "--topology", STAR
    )
    assert len(tree["ranking"][0]["algorithms"]) == 3
    assert "chain_broadcast:n_chunks=2" in [a["algorithm"] for a in tree["ranking"][0]["algorithms"]]


def test_what_needs_programmable_switches_is_compared_when_it_is_named(commsim):
    tree = commsim.results("run", "--operation", "all_reduce", "--collective", "switchml", "--topology", STAR, "-v")
    ranking = tree["ranking"][0]["algorithms"]
    assert ranking[0]["algorithm"] == "switchml"
    assert "# switchml: aggregators on switch0, assumed to be programmable" in commsim.out
    assert "sharp" in tree["left_out"]


def test_what_the_switches_of_a_network_with_sharp_do_not_have_is_left_out(commsim):
    network = "nvswitch_host:n_gpus=1,gpu=hopper,cpu=intel,net=infiniband,sharp=on@star:machines=4"
    ranked = ("run", "--topology", network, "--operation", "all_reduce", "-b", "1M", "-e", "1M")
    left_out = commsim.results(*ranked, "-v")["left_out"]
    assert {"nvls", "switchml", "panama"} <= set(left_out)
    assert "sharp" not in left_out
    assert "no NVSwitch that reduces" in left_out["nvls"]
    assert "reduce by SHARP only" in left_out["switchml"]
    assert "switchml" not in commsim.results(*ranked, "--collective", "switchml", "-v")["left_out"]
    assert "# switchml: aggregators on switch0, assumed to be programmable" in commsim.out


def test_what_has_no_closed_form_is_left_out_and_said_so(commsim):
    tree = commsim.results("run", "--operation", "all_reduce", "--engine", "closed-form", "--topology", STAR, "-v")
    assert {"double_tree_all_reduce", "switchml", "atp", "sharp"} <= set(tree["left_out"])
    assert "ring_all_reduce" not in tree["left_out"]
    assert "# skipped: double_tree_all_reduce: " in commsim.out


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--operation", "all_redce"], "no 'all_redce'; did you mean all_reduce"),
        (["--algorithm", "best"], "--algorithm needs --operation"),
        (["--operation", "all_gather", "--algorithm", "ring_all_reduce"], "implements all_reduce, not all_gather"),
        (["--operation", "all_gather", "--algorithm", "rign"], "unknown algorithm of all_gather 'rign'"),
        (
            ["--operation", "all_reduce", "--algorithm", "double_tree_all_reduce", "--engine", "closed-form"],
            "closed form",
        ),
        (["--operation", "all_reduce", "--collective", "ring_all_gather"], "implements all_gather"),
        (["--operation", "all_reduce", "--ranks", "9"], "ranks must be 1..8"),
    ],
)
def test_bad_input_gives_one_clear_line(commsim, argv, what):
    assert what in commsim.refuses("run", "--topology", STAR, *argv)


def test_rankings_assume_an_overhead_unless_one_is_given(commsim):
    star = ("run", "--topology", "star:n_hosts=8,bandwidth=100Gbps,latency=1us", "--operation", "all_reduce")
    small = (*star, "-b", "1K", "-e", "32K", "-f", "32")
    best, times = {}, {}
    for given in ("", "0us", "1us"):
        tree = commsim.results(*small, *(("--overhead", given) if given else ()), "-v")
        best[given] = [row["algorithms"][0]["algorithm"] for row in tree["ranking"]]
        assert ("1 us of overhead per message" in commsim.out) == (given != "0us")
        assert tree["network"]["overhead_s"] == (0 if given == "0us" else 1e-6)
        times[given] = [r["time_s"] for r in tree["results"]]
    # without a cost per message, sending everything at once is best
    assert best["0us"] == ["byteps", "byteps"]
    assert best[""] == best["1us"] == ["recursive_doubling_all_reduce"] * 2
    assert times[""] == times["1us"] > times["0us"]


def test_nothing_is_assumed_where_a_cost_is_known(commsim):
    flags = ("-b", "4K", "-e", "4K")
    h100 = ("run", "--topology", "dgx-h100")
    ranked = commsim.results(*h100, "--operation", "all_reduce", *flags, "-v")
    times = {row["algorithm"]: row["time_s"] for row in ranked["ranking"][0]["algorithms"]}
    assert ranked["launch_s"] > 1e-6
    for name, launch in {"nccl_all_reduce": 0.0, "switchml": ranked["launch_s"]}.items():
        (plain,) = commsim.results(*h100, "--engine", "flow", "--collective", name, *flags, "-v")["results"]
        assert times[name] == plain["time_s"] + launch
    (dear,) = commsim.results(
        *h100, "--engine", "flow", "--collective", "nccl_all_reduce", "--overhead", "1us", *flags, "-v"
    )["results"]
    assert dear["time_s"] == times["nccl_all_reduce"]  # a hop of NCCL has what software takes for a message
    commsim("run", "--topology", "star:n_hosts=4", "--operation", "broadcast", "--software", "gloo", *flags, "-v")
    assert "software gloo, " in commsim.out
    assert "software gloo, 1 us of overhead" not in commsim.out


def test_nccl_is_ranked_on_the_machines_that_it_runs_on_and_its_alias_stands_for_the_operation(commsim):
    flags = ("-b", "1M", "-e", "1M")
    ranked = commsim.results("run", "--topology", "dgx-h100", "--operation", "all_gather", *flags)
    assert any("nccl_all_gather" in str(row) for row in ranked["ranking"])
    plain = commsim.results("run", "--topology", "star:n_hosts=4", "--operation", "all_gather", *flags)
    assert "nccl" not in str(plain["ranking"])
    alias = commsim.results(
        "run", "--topology", "dgx-h100", "--collective", "nccl", "--operation", "all_gather", *flags
    )
    named = commsim.results("run", "--topology", "dgx-h100", "--collective", "nccl_all_gather", *flags)
    assert alias["results"] == named["results"]
    assert {row["engine"] for row in named["results"]} == {"flow"}


def test_without_a_collective_nvidia_s_machines_run_nccl(commsim):
    usual = commsim.results("run", "--overhead", "0us", "--topology", "dgx-h100", "-b", "512M", "-e", "512M", "-v")
    assert [(row["collective"], row["engine"]) for row in usual["results"]] == [("nccl_all_reduce", "flow")]
    assert "# nccl_all_reduce: what NCCL runs on these GPUs; another algorithm can be named" in commsim.out
    assert "interval" in [remark["code"] for remark in usual["remarks"]]
    assert usual["results"][0]["low_s"] < usual["results"][0]["time_s"] < usual["results"][0]["high_s"]
    flow = commsim.results(
        "run", "--overhead", "0us", "--topology", "dgx-h100", "--engine", "flow", "-b", "512M", "-e", "512M", "-v"
    )
    assert [(row["collective"], row["engine"]) for row in flow["results"]] == [("nccl_all_reduce", "flow")]
    amd = commsim.results("run", "--overhead", "0us", "--topology", "mi300x", "-v")
    assert "# rccl_all_reduce: what RCCL runs on these GPUs" in commsim.out
    assert amd["results"][0]["collective"] == "rccl_all_reduce"
