"""What a verb answers beside one time, its function in Python answers too: rankings, bounds, advice, comparisons."""

import html
import json

import pytest
from remark_codes import codes

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.core.remark import read_remarks
from commsim.jobs.composition import read_composition
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
LEAF = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription=2"
MIB = 2**20


def asked_for(tmp_path, *words):
    """Run a command line, and return the JSON that it writes."""
    out = tmp_path / "answer.json"
    assert main([*map(str, words), "--json", str(out)]) == 0
    return json.loads(out.read_text())


def test_both_doors_rank_what_is_named_by_a_library_and_what_is_synthesized(tmp_path):
    words = ["run", "--topology", "dgx-h100", "--operation", "all_reduce", "-b", "1M", "-e", "1M"]
    for names in (["nccl"], ["sharp", "nccl:version=2.27"]):
        named = [word for name in names for word in ("--collective", name)]
        answer = asked_for(tmp_path, *words, "--algorithm", "best", *named)
        ranking = cs.rank("all_reduce", "dgx-h100", "1MiB", named=names)
        theirs = [(one["algorithm"], one["time_s"]) for one in answer["ranking"][0]["algorithms"]]
        assert theirs == [(name, result.time) for name, result in ranking.by_size[MIB]]
        assert {name.replace("nccl", "nccl_all_reduce") for name in names} <= dict(theirs).keys()
    words[2] = STAR
    answer = asked_for(tmp_path, *words, "--synthesized")
    ranking = cs.rank("all_reduce", STAR, "1MiB", synthesized=True)
    theirs = [(one["algorithm"], one["time_s"]) for one in answer["ranking"][0]["algorithms"]]
    assert theirs == [(name, result.time) for name, result in ranking.by_size[MIB]]
    assert "synthesized" in dict(theirs)


def test_python_ranks_what_the_tables_of_all_algorithms_say(tmp_path):
    words = ["run", "--topology", STAR, "--operation", "all_reduce", "-b", "1M", "-e", "1M"]
    answer = asked_for(tmp_path, *words, "--algorithm", "all")
    ranking = cs.rank("all_reduce", STAR, "1MiB")
    assert {row["collective"]: row["time_s"] for row in answer["results"]} == {
        result.collective: result.time for _, result in ranking.by_size[MIB]
    }


@pytest.mark.parametrize("placement", ["packed", "spread", "nonsense"])
def test_both_doors_bound_and_synthesize_for_the_same_placement(tmp_path, capsys, placement):
    network = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=100Gbps"
    given, more = ("--placement", placement, "--ranks", "4"), {"placement": placement, "n_ranks": 4}
    words = ["--topology", network, "--operation", "all_gather", "-b", "1M", "-e", "1M", *given]
    if placement == "nonsense":
        for verb in ("bound", "synthesize"):
            assert main([verb, *words]) == 2
            assert "unknown placement 'nonsense'" in capsys.readouterr().err
        for ask in (cs.lower_bound, lambda *asked, **m: cs.synthesize(*asked, "1MiB", **m)):
            with pytest.raises(InputError, match="unknown placement 'nonsense'"):
                ask("all_gather", network, **more)
        return
    bounds = asked_for(tmp_path, "bound", *words, "--algorithm", "none")["bounds"]
    for one in bounds:
        least = cs.lower_bound("all_gather", network, anywhere=one["anywhere"], **more)
        assert (least.time(MIB), least.why(MIB)) == (one["bound_s"], one["limited_by"])
    (row,) = asked_for(tmp_path, "synthesize", *words)["results"]
    assert row == cs.synthesize("all_gather", network, "1MiB", **more).row(MIB)
    assert cs.lower_bound("all_gather", network, **more).ranks == (
        (0, 1, 2, 3) if placement == "packed" else (0, 4, 1, 5)
    )


@pytest.mark.deep
@pytest.mark.slow
def test_both_doors_say_the_same_of_the_bound_and_of_what_faults_cost(tmp_path):
    faults, more = ("--scale", "link:leaf0:*=0.5", "--seed", "3"), {"scale": ["link:leaf0:*=0.5"], "seed": 3}
    words = ["--topology", LEAF, "--operation", "all_gather", "-b", "1M", "-e", "2M", *faults]
    answer = asked_for(tmp_path, "bound", *words, "--collective", "nccl")
    found = cs.over_bound("all_gather", LEAF, ["1MiB", "2MiB"], **more, named=["nccl"])
    assert answer["results"] == [one.row() for one in found.ratios]
    assert len(found.ratios) > 6
    assert all(one.faults_cost > 1 for one in found.ratios if one.algorithm == "ring_all_gather")
    assert set(found.derived) <= set(read_remarks(answer["remarks"], "answer"))
    words[6:8] = ["-e", "1M"]
    words += ["--overhead", "1us", "--running", "ring_all_gather"]
    answer = asked_for(tmp_path, "synthesize", *words)
    made = cs.synthesize("all_gather", LEAF, "1MiB", overhead="1us", running="ring_all_gather", **more)
    assert answer["results"] == [made.row(MIB)]
    assert answer["cost_of_faults"] == [one.row() for one in made.faults] != []
    assert answer["notes"] == [str(note) for note in made.notes]


def test_both_doors_give_the_same_advice_of_sparse_data_faults_and_servers(tmp_path):
    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"
    words = ("--density", "0.01,0.1", "--pattern", "disjoint", "--workers", "6", "--routing", "dmodk", "--seed", "2",
             "--scale", "link:leaf0:*=0.5", "--reduce-rate", "10GB/s", "--overhead", "2us", "--crossovers")  # fmt: skip
    answer = asked_for(tmp_path, "advise", "--topology", network, "--size", "1MiB", *words)
    advice = cs.advise_for(
        "1MiB", network, density=[0.01, 0.1], pattern="disjoint", n_workers=6, routing="dmodk", seed=2,
        scale=["link:leaf0:*=0.5"], reduce_rate="10GB/s", overhead="2us",
    )  # fmt: skip
    assert answer["results"] == json.loads(json.dumps(advice.rows()))
    assert any(row["whole_s"] != row["time_s"] for row in answer["results"])
    assert answer["left_out"] == dict(advice.left_out)
    density, servers = advice.crossover(), advice.servers()
    assert answer["crossovers"] == {"density": density.row, "servers": servers.row}
    assert density.row["low"] > 0
    assert servers.row["simulated_s"]
    said = {*advice.notes, *advice.remarks, *density.remarks, *servers.remarks}
    assert said <= set(read_remarks(answer["remarks"], "answer"))
    page = html.unescape(advice._repr_html_())
    assert [note for note in map(str, advice.remarks) if note not in page] == []


def test_both_doors_find_the_same_cheapest_topology(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "sweep.toml"
    path.write_text(
        'schema = 1\n[topology]\nname = "star"\nn_hosts = 4\nbandwidth = ["10Gbps", "100Gbps"]\n'
        '[collective]\nname = "ring_all_reduce"\nsize = "1MiB"\n'
        '[goal]\nkeep = "time"\nwithin = "1ms"\n[cost]\nnic = 1\nport = 1\ncable = 1\nswitch = { 8 = 10 }\n'
    )
    answer = asked_for(tmp_path, "advise", "--sweep", path, "--jobs", "1")
    assert answer["results"] == [offer.row() for offer in cs.cheapest_topologies(path, jobs=1).offers]


def test_both_doors_compare_with_the_same_words_and_numbers(tmp_path):
    path = tmp_path / "measured.txt"
    path.write_text(cs.fake_nccl_tests("dgx-h100", noise=0.1, seed=3))
    given = ("--routing", "ecmp", "--overhead", "3us", "--in-place", "--line-rate", "10GB/s")
    answer = asked_for(tmp_path, "compare", path, "--topology", "dgx-h100", *given)
    more = {"routing": "ecmp", "overhead": "3us", "in_place": True, "line_rate": "10GB/s"}
    found = cs.compare_with(path, "dgx-h100", **more)
    assert answer["results"] == json.loads(json.dumps([pair.row() for pair in found.pairs]))
    assert answer["explanations"] == [str(one) for one in found.reasons] != []
    assert {*found.notes, *found.reasons} <= set(read_remarks(answer["remarks"], "answer"))
    assert found.pairs != cs.compare_with(path, "dgx-h100").pairs
    assert "usual" in codes(found.notes)
    predicted = tmp_path / "predicted.json"  # two logs of nccl-tests would be a healthy one and a bad one
    asked_for(tmp_path, "run", "nccl_all_reduce", "--topology", "dgx-h100", "-b", "8M", "-e", "128M")
    (tmp_path / "answer.json").rename(predicted)
    answer = asked_for(tmp_path, "compare", predicted, path)
    assert answer["summary"]["median"] == cs.compare_with(path, predicted=predicted).summary.median


def test_python_has_what_the_table_of_run_computes(tmp_path, capsys):
    words = ["run", "--topology", LEAF, "ring_all_reduce", "-b", "1M", "-e", "4M", "-f", "4"]
    answer = asked_for(tmp_path, *words)
    found = cs.solve(cs.scenario_of("ring_all_reduce", LEAF), ["1MiB", "4MiB"])
    links = [result.busiest_link(found.plan.network) for result in found.results]
    assert [row["busiest_link"] for row in answer["results"]] == [
        {"name": link.name, "bytes": link.bytes, "Bps": link.rate} for link in links
    ]
    assert all(link.rate > 0 for link in links)
    assert f"# Avg bus bandwidth    : {cs.mean_busbw(found.results) / 1e9:.4g}" in capsys.readouterr().out


def test_python_has_what_sharing_costs_jobs_and_background_traffic(tmp_path):
    path = tmp_path / "jobs.toml"
    path.write_text(
        '[[job]]\ncollective = "ring_all_reduce"\nranks = "0-7"\nsize = "1MiB"\n'
        '[[job]]\ncollective = "ring_all_gather"\nranks = "8-15"\nsize = "1MiB"\n'
        '[[background]]\nkind = "incast"\nsenders = 3\nsize = "64kB"\nevery = "40us"\nuntil = "100us"\n'
    )
    answer = asked_for(tmp_path, "run", "--topology", LEAF, "--jobs", path, "--seed", "1")
    asked = scenario_of("", LEAF, jobs=read_composition(str(path)), seed=1)
    found = solve(asked, [0.0])
    assert tuple(row["slowdown"] for row in answer["results"]) == found.details.slowdowns(found.results)
    assert max(found.details.slowdowns(found.results)) > 1
    assert answer["background"] == found.details.background()
