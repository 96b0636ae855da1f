"""One question has one number, whichever door it comes through: to the last bit."""

import json

import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.scenario.read import scenario_of
from commsim.scenario.solve import solve

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
LEAF = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription=2"
NCCL = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2,oversubscription=8"
MIB = 2**20

# Collective, network, options as flags, and the same as keywords of Python and as parameters of a sweep. None: a door
# that cannot express the question.
QUESTIONS = {
    "ring": ("ring_all_reduce", STAR, [], {}, {}),
    "barrier": ("dissemination_barrier", STAR, [], {}, {}),
    "overhead": ("byteps:n_servers=2", LEAF, ["--overhead", "2us", "--ranks", "8"], {"overhead": "2us", "n_ranks": 8},
                 {"engine.overhead": "2us", "collective.ranks": 8}),
    "reduction": ("halving_doubling_all_reduce", STAR, ["--reduce-rate", "10GB/s"], {"reduce_rate": "10GB/s"},
                  {"engine.reduce_rate": "10GB/s"}),
    "dead links": ("ring_all_reduce", LEAF, ["--fail", "links:1", "--seed", "3"], {"fail": ["links:1"], "seed": 3},
                   None),
    "slow links": ("direct_all_to_all", LEAF, ["--scale", "link:leaf0->*=0.5"], {"scale": ["link:leaf0->*=0.5"]},
                   {"topology.scale": "link:leaf0->*=0.5"}),
    "in a switch": ("switchml", STAR, [], {}, {}),
    "software": ("ring_all_reduce", STAR, ["--software", "nccl-tcp"], {"software": "nccl-tcp"},
                 {"engine.software": "nccl-tcp"}),
    "compressed": ("ring_all_gather", STAR, ["--compressor", "top_k:density=0.01"],
                   {"compressor": "top_k:density=0.01"}, {"collective.compressor": "top_k:density=0.01"}),
    "flap": ("ring_all_reduce", LEAF, ["--flap", "link:leaf0->spine0@10us+20us"],
             {"flap": ["link:leaf0->spine0@10us+20us"]}, None),
    "packets": ("ring_all_reduce", STAR, ["--engine", "packet", "--transport", "dctcp"],
                {"engine": "packet", "transport": "dctcp"}, {"engine.name": "packet", "engine.transport": "dctcp"}),
    "NCCL": ("nccl_all_reduce", NCCL, [], {}, {}),
}  # fmt: skip


def by_command_line(tmp_path, collective, network, flags):
    out = tmp_path / "answer.json"
    args = ["run", "--topology", network, "--collective", collective, "-b", "1M", "-e", "1M", "--json", str(out)]
    assert main([*args, *flags]) == 0
    answer = json.loads(out.read_text())
    return answer["results"][0]["time_s"], answer["remarks"]


def by_sweep(tmp_path, collective, network, parameters):
    name, _, arguments = collective.partition(":")
    where, _, given = network.partition(":")
    fabric = "@" in network
    tables = {"collective": {"name": collective if fabric else name, "size": "1MiB"},
              "topology": {"name": network if fabric else where}}  # fmt: skip
    for table, text in (("collective", arguments), ("topology", "" if fabric else given)):
        for part in filter(None, text.split(",")):
            key, _, value = part.partition("=")
            tables[table][key] = int(value) if value.isdecimal() else value
    for key, value in parameters.items():
        table, _, inner = key.partition(".")
        tables.setdefault(table, {})[inner] = value
    text = "schema = 1\n" + "".join(
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for table, values in tables.items()
    )
    path = tmp_path / "one.toml"
    path.write_text(text)
    assert main(["sweep", "run", str(path), "-o", str(tmp_path / "out"), "--executor", "serial"]) == 0
    rows = tmp_path / "rows.json"
    assert main(["sweep", "export", str(tmp_path / "out"), "-o", str(rows)]) == 0
    (row,) = json.loads(rows.read_text())["results"]
    return row["time_s"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_door_gives_the_same_number_to_the_last_bit(tmp_path, name):
    collective, network, flags, keywords, parameters = QUESTIONS[name]
    solution = solve(scenario_of(collective, network, **keywords), [MIB])
    (time,) = (result.time for result in solution.results)
    told, remarks = by_command_line(tmp_path, collective, network, flags)
    predicted = cs.predict(collective, network, "1MiB", **keywords)
    assert (told, predicted.time) == (time, time)
    assert set(solution.said) <= set(remarks)
    assert predicted.remarks == solution.said
    if parameters is not None:
        pytest.importorskip("pyarrow")
        assert by_sweep(tmp_path, collective, network, parameters) == time


@pytest.mark.parametrize("network", [STAR, LEAF, "dgx-h100"])
def test_python_and_the_command_line_rank_the_same_candidates_with_the_same_times(tmp_path, network):
    out = tmp_path / "ranking.json"
    args = ["run", "--topology", network, "--operation", "all_reduce", "-b", "1M", "-e", "1M", "--json", str(out)]
    assert main(args) == 0
    answer = json.loads(out.read_text())
    ranking = cs.rank("all_reduce", network, "1MiB")
    theirs = [(one["algorithm"], one["time_s"]) for one in answer["ranking"][0]["algorithms"]]
    assert theirs == [(name, result.time) for name, result in ranking.by_size[MIB]]
    assert answer["left_out"] == dict(ranking.left_out)
    assert "atp" in ranking.left_out or network == "dgx-h100"


def test_an_advice_and_a_ranking_give_one_time_for_one_algorithm():
    advice = cs.advise_for("1MiB", STAR)
    ranking = dict(cs.rank("all_reduce", STAR, "1MiB").by_size[MIB])
    times = {row.candidate.spec: row.result.time for row in advice.ranked}
    both = times.keys() & ranking.keys()
    assert len(both) > 4
    assert {name: times[name] for name in both} == {name: ranking[name].time for name in both}


def test_what_an_engine_cannot_do_is_refused_in_the_same_words_by_both_doors(capsys):
    with pytest.raises(InputError) as refused:
        cs.predict("ring_all_reduce", STAR, "1MiB", engine="closed-form", start_jitter="1us")
    assert main(["run", "--topology", STAR, "ring_all_reduce", "--engine", "closed-form", "--start-jitter", "1us"]) == 2
    assert str(refused.value) in capsys.readouterr().err
