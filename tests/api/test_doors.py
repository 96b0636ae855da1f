"""One question has one number, whichever door it comes through: to the last bit."""

import json
from collections.abc import Mapping
from html import escape
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import commsim as cs
from collectives import COLLECTIVES
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.core.remark import read_remarks
from commsim.core.units import format_time
from commsim.pages.page.write import json_in_html
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
LEAF = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription=2"
NCCL = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2,oversubscription=8"
MIB = 2**20


class Question(NamedTuple):
    """What is asked of one collective of 1 MiB: flags, the same as keywords of Python, and as parameters of a sweep."""

    collective: str
    network: str
    flags: tuple[str, ...] = ()
    keywords: Mapping[str, Any] = MappingProxyType({})
    sweep: Mapping[str, Any] = MappingProxyType({})

    @property
    def operation(self):
        return COLLECTIVES[self.collective.partition(":")[0]].metadata["operation"]

    @property
    def n_ranks(self):
        return self.keywords.get("n_ranks") or {STAR: 8, LEAF: 16, NCCL: 32}[self.network]


QUESTIONS = {
    "ring": Question("ring_all_reduce", STAR),
    "barrier": Question("dissemination_barrier", STAR),
    "overhead": Question("byteps:n_servers=2", LEAF, ("--overhead", "2us", "--ranks", "8"),
                         {"overhead": "2us", "n_ranks": 8}, {"engine.overhead": "2us", "collective.ranks": 8}),
    "reduction": Question("halving_doubling_all_reduce", STAR, ("--reduce-rate", "10GB/s"),
                          {"reduce_rate": "10GB/s"}, {"engine.reduce_rate": "10GB/s"}),
    "dead links": Question("ring_all_reduce", LEAF, ("--fail", "links:1", "--seed", "3"),
                           {"fail": ["links:1"], "seed": 3}, {"topology.fail": "links:1", "sweep.seed": 3}),
    "slow links": Question("direct_all_to_all", LEAF, ("--scale", "link:leaf0:*=0.5"),
                           {"scale": ["link:leaf0:*=0.5"]}, {"topology.scale": "link:leaf0:*=0.5"}),
    "in a switch": Question("switchml", STAR),
    "software": Question("ring_all_reduce", STAR, ("--software", "nccl-tcp"), {"software": "nccl-tcp"},
                         {"engine.software": "nccl-tcp"}),
    "software on slow links": Question(
        "ring_all_reduce", STAR, ("--software", "nccl-tcp", "--scale", "link:h0:*=0.5"),
        {"software": "nccl-tcp", "scale": ["link:h0:*=0.5"]},
        {"engine.software": "nccl-tcp", "topology.scale": "link:h0:*=0.5"},
    ),
    "compressed": Question("ring_all_gather", STAR, ("--compressor", "top_k:density=0.01"),
                           {"compressor": "top_k:density=0.01"}, {"collective.compressor": "top_k:density=0.01"}),
    "flap": Question("ring_all_reduce", LEAF, ("--flap", "link:leaf0:spine0@10us+20us"),
                     {"flap": ["link:leaf0:spine0@10us+20us"]},
                     {"topology.flap": "link:leaf0:spine0@10us+20us"}),
    "packets": Question("ring_all_reduce", STAR, ("--engine", "packet", "--transport", "dctcp"),
                        {"engine": "packet", "transport": "dctcp"},
                        {"engine.name": "packet", "engine.transport": "dctcp"}),
    "sprayed packets": Question(
        "ring_all_reduce", LEAF,
        ("--engine", "packet", "--transport", "rccc", "--balancing", "reps", "--entropies", "16", "--seed", "4"),
        {"engine": "packet", "transport": "rccc", "packets": {"balancing": "reps", "entropies": 16}, "seed": 4},
        {"engine.name": "packet", "engine.transport": "rccc", "engine.balancing": "reps", "engine.entropies": 16,
         "sweep.seed": 4},
    ),
    "losses": Question(
        "ring_all_reduce", STAR, ("--engine", "packet", "--transport", "dctcp", "--loss", "0.001", "--seed", "5"),
        {"engine": "packet", "transport": "dctcp", "packets": {"loss": 0.001}, "seed": 5},
        {"engine.name": "packet", "engine.transport": "dctcp", "engine.loss": 0.001, "sweep.seed": 5},
    ),
    "late starters": Question(
        "ring_all_reduce", STAR, ("--start-jitter", "800us", "--iters", "5", "--seed", "2"),
        {"start_jitter": "800us", "iterations": 5, "seed": 2},
        {"engine.start_jitter": "800us", "engine.iterations": 5, "sweep.seed": 2},
    ),
    "headers": Question("ring_all_reduce", STAR, ("--payload", "1KiB", "--header", "78B"),
                        {"payload": "1KiB", "header": "78B"}, {"engine.payload": "1KiB", "engine.header": "78B"}),
    "NCCL": Question("nccl_all_reduce", NCCL),
    "experts": Question("ep_dispatch:tokens=16,max_machines=2,library=deepep", NCCL),
    "experts, a dead uplink": Question(
        "ep_combine:tokens=16,library=deepep", NCCL, ("--fail", "link:leaf0:spine0"), {"fail": ["link:leaf0:spine0"]},
        {"topology.fail": "link:leaf0:spine0"},
    ),
}  # fmt: skip
COSTS = ("overhead", "recv_overhead", "reduce_rate", "software")


@pytest.fixture(scope="module")
def solved():
    """Return what `solve` says of a question, once for all doors."""
    known = {}

    def of(name):
        if name not in known:
            asked = QUESTIONS[name]
            known[name] = solve(scenario_of(asked.collective, asked.network, **asked.keywords), [MIB])
        return known[name]

    return of


def asked_for(tmp_path, *words):
    """Run a command line, and return the JSON that it writes."""
    out = tmp_path / "answer.json"
    assert main([*map(str, words), "--json", str(out)]) == 0
    return json.loads(out.read_text())


def by_command_line(tmp_path, asked, *more):
    sizes = ("-b", "1M", "-e", "1M")
    return asked_for(
        tmp_path, "run", "--topology", asked.network, "--collective", asked.collective, *sizes, *asked.flags, *more
    )


def by_run(tmp_path, asked):
    return by_command_line(tmp_path, asked)["results"][0]["time_s"]


def by_predict(tmp_path, asked):
    return cs.predict(asked.collective, asked.network, "1MiB", **asked.keywords).time


def by_timeline(tmp_path, asked):
    """Ask when the last transfer of a prediction ends; it is simulated again."""
    timeline = cs.predict(asked.collective, asked.network, "1MiB", **asked.keywords).timeline()
    assert timeline["start_s"].min() >= 0
    return timeline["done_s"].max()


def by_sweep(tmp_path, asked):
    return exported(tmp_path, asked)["results"][0]["time_s"]


def exported(tmp_path, asked):
    """Run a sweep of one point, and return what is exported of it."""
    pytest.importorskip("pyarrow")
    name, _, arguments = asked.collective.partition(":")
    where, _, given = asked.network.partition(":")
    fabric = "@" in asked.network
    tables = {"collective": {"name": name, "size": "1MiB"},
              "topology": {"name": asked.network if fabric else where}}  # fmt: skip
    for table, text in (("collective", arguments), ("topology", "" if fabric else given)):
        for part in filter(None, text.split(",")):
            key, _, value = part.partition("=")
            tables[table][key] = int(value) if value.isdecimal() else value
    for key, value in asked.sweep.items():
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
    answer = json.loads(rows.read_text())
    assert len(answer["results"]) == 1
    return answer


def by_jobs(tmp_path, asked):
    """Ask for a file of one job; its time by itself is the same."""
    path = tmp_path / "jobs.toml"
    path.write_text(f'[[job]]\ncollective = "{asked.collective}"\nranks = "0-{asked.n_ranks - 1}"\nsize = "1MiB"\n')
    flags = [word for word in asked.flags if word not in ("--ranks", "8")]
    (row,) = asked_for(tmp_path, "run", "--topology", asked.network, "--jobs", path, *flags)["results"]
    assert (row["alone_s"], row["slowdown"]) == (row["time_s"], 1.0)
    return row["time_s"]


def by_group(tmp_path, asked):
    """Ask for one group of all ranks."""
    group = ",".join(map(str, range(asked.n_ranks)))
    return by_command_line(tmp_path, asked, "--group", group)["results"][0]["time_s"]


def by_workload(tmp_path, asked, *more):
    """Ask for an iteration that is one exchange."""
    path = tmp_path / "graph.toml"
    path.write_text(
        f'[[tasks]]\nname = "one"\noperation = "{asked.operation}"\ngroup = {list(range(asked.n_ranks))}\n'
        'size = "1MiB"\n'
    )
    flags = [word for word in asked.flags if word not in ("--ranks", "8")]
    words = ("--graph", path, "--network", asked.network, "--algorithm", f"{asked.operation}={asked.collective}")
    return asked_for(tmp_path, "workload", "run", *words, *flags, *more)["iteration_s"]


def by_place(tmp_path, asked):
    """Ask how long a job that does one exchange after the other takes by itself; nanoseconds have 6 digits there."""
    jobs, cluster = tmp_path / "jobs.json", tmp_path / "cluster.toml"
    time = by_workload(tmp_path, asked, "--phases", jobs)
    hosts = "" if asked.network == NCCL else "[hosts]\ngpus = 1\n"
    cluster.write_text(f'[topology]\nspec = "{asked.network}"\n{hosts}')
    # Phases are demand, which takes its time on the network that place is given: the same faults for both.
    pairs = zip(asked.flags[::2], asked.flags[1::2], strict=True)
    faults = [word for flag, value in pairs if flag.removeprefix("--") in FAULTS for word in (flag, value)]
    answer = asked_for(tmp_path, "place", "rank", cluster, jobs, "--check", "--candidates", "1", *faults)
    (candidate,) = answer["candidates"]
    assert candidate["predicted_iteration_ms"] == {"graph": round(time * 1e3, 9)}
    return time


def measured(tmp_path, asked):
    """Return a file with the answer of a run in the place of measurements."""
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(by_command_line(tmp_path, asked)))
    return path


def by_compare(tmp_path, asked):
    words = ("--topology", asked.network, "--collective", asked.collective, *asked.flags)
    answer = asked_for(tmp_path, "compare", measured(tmp_path, asked), *words)
    return answer["results"][0]["predicted_s"]


def by_compare_with(tmp_path, asked):
    (pair,) = cs.compare_with(measured(tmp_path, asked), asked.network, asked.collective, **asked.keywords).pairs
    return pair.predicted


def by_report(tmp_path, asked):
    """Set a result beside itself; both are simulated again, and refused where they say something else."""
    path = measured(tmp_path, asked)
    (row,) = asked_for(tmp_path, "diff", path, path)["results"]
    return row["a"]["time_s"]


def by_page(tmp_path, asked):
    """Write the page of a result, whose table holds the rows as they are."""
    pytest.importorskip("vl_convert")
    path = tmp_path / "page.html"
    run = by_command_line(tmp_path, asked)
    assert not main(["report", str(measured(tmp_path, asked)), "-o", str(path)])
    time = run["results"][0]["time_s"]
    assert repr(time) in path.read_text()
    return time


def by_write_report(tmp_path, asked):
    """Write the page of a prediction: its table, its remarks, and its run in detail."""
    pytest.importorskip("vl_convert")
    path = tmp_path / "page.html"
    one = cs.predict(asked.collective, asked.network, "1MiB", **asked.keywords)
    left_out = cs.write_report(one, path)
    assert not [name for name in left_out if "timeline" in name]
    page = path.read_text()
    assert repr(one.time) in page
    assert [text for text in map(str, one.remarks) if json_in_html({"": text})[5:-2] not in page] == []
    return one.time


def by_rank(tmp_path, asked):
    named = [asked.collective] if ":" in asked.collective or asked.collective == "switchml" else []
    ranking = cs.rank(asked.operation, asked.network, "1MiB", named=named, **asked.keywords)
    ((_, found),) = ranking.by_size.items()
    return dict(found)[asked.collective].time


def by_operation(tmp_path, asked):
    named = ["--collective", asked.collective] if ":" in asked.collective or asked.collective == "switchml" else []
    words = ["--operation", asked.operation, "-b", "1M", "-e", "1M", *named, *asked.flags]
    answer = asked_for(tmp_path, "run", "--topology", asked.network, *words)
    rows = {one["algorithm"]: one["time_s"] for one in answer["ranking"][0]["algorithms"]}
    return rows[asked.collective]


def by_advice(tmp_path, asked):
    programmable = asked.collective == "switchml"
    advice = cs.advise_for("1MiB", asked.network, programmable=programmable, **asked.keywords)
    return {row.candidate.spec: row.result.time for row in advice.ranked}[asked.collective]


def by_advise(tmp_path, asked):
    words = ["--topology", asked.network, "--size", "1MiB", *asked.flags]
    words += ["--programmable"] * (asked.collective == "switchml")
    return {row["spec"]: row["time_s"] for row in asked_for(tmp_path, "advise", *words)["results"]}[asked.collective]


FAULTS = ("fail", "scale", "seed")
PACKETS = ("engine", "transport")
WISHES = ("start_jitter", "iterations", "payload", "header", "packets")
EVERY = (*COSTS, *FAULTS, *PACKETS, *WISHES, "n_ranks", "compressor", "flap")
# Doors, and the keywords that each can express.
DOORS = {
    "run": (by_run, EVERY),
    "predict": (by_predict, EVERY),
    "timeline": (by_timeline, EVERY),
    "sweep": (by_sweep, EVERY),
    "jobs": (by_jobs, (*COSTS, *FAULTS, *PACKETS, "n_ranks")),
    "group": (by_group, (*COSTS, *FAULTS, *PACKETS, "n_ranks", "flap")),
    "workload": (by_workload, (*COSTS, *FAULTS, "n_ranks")),
    "place": (by_place, (*COSTS, *FAULTS, "n_ranks")),
    "compare": (by_compare, (*COSTS, "n_ranks")),
    "compare_with": (by_compare_with, (*COSTS, "n_ranks")),
    "report": (by_report, EVERY),
    "page": (by_page, EVERY),
    "write_report": (by_write_report, EVERY),
    "rank": (by_rank, (*COSTS, *FAULTS, *PACKETS, "n_ranks", "flap")),
    "operation": (by_operation, (*COSTS, *FAULTS, *PACKETS, "n_ranks", "flap")),
    "advice": (by_advice, (*COSTS, *FAULTS)),
    "advise": (by_advise, (*COSTS, *FAULTS)),
}
OF_ALL_REDUCES = ("advice", "advise")
# Measurements of nothing are left out.
OF_BYTES = ("compare", "compare_with")
# Rankings are at some size; that of an exchange of experts follows from its routing.
OF_SIZES = ("rank", "operation")


def can_express(door, asked):
    if door in OF_ALL_REDUCES and asked.operation != "all_reduce":
        return False
    if door in OF_BYTES and asked.operation == "barrier":
        return False
    if door in OF_SIZES and asked.operation.startswith("ep_"):
        return False
    return asked.keywords.keys() <= set(DOORS[door][1])


ASKED = [(name, door) for name, asked in QUESTIONS.items() for door in DOORS if can_express(door, asked)]


@pytest.mark.slow
@pytest.mark.sample(3, each="door")
@pytest.mark.parametrize(("name", "door"), ASKED)
def test_every_door_gives_the_same_number_to_the_last_bit(tmp_path, solved, name, door):
    (result,) = solved(name).results
    assert DOORS[door][0](tmp_path, QUESTIONS[name]) == result.time


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", QUESTIONS)
def test_command_line_and_python_make_the_remarks_of_solve(tmp_path, solved, name):
    asked, said = QUESTIONS[name], solved(name).said
    assert set(said) <= set(read_remarks(by_command_line(tmp_path, asked)["remarks"], "answer"))
    assert cs.predict(asked.collective, asked.network, "1MiB", **asked.keywords).remarks == said


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_notebook_shows_the_time_and_the_remarks_of_solve(solved, name):
    asked, solution = QUESTIONS[name], solved(name)
    one = cs.predict(asked.collective, asked.network, "1MiB", **asked.keywords)._repr_html_()
    assert f">{format_time(solution.results[0].time)}<" in one
    table = solution._repr_html_()
    assert f">{solution.results[0].time * 1e6:.2f}<" in table
    assert [text for text in map(str, solution.said) if escape(text) not in one or escape(text) not in table] == []


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_exported_row_of_a_sweep_has_the_remarks_of_solve(tmp_path, solved, name):
    answer = exported(tmp_path, QUESTIONS[name])
    assert read_remarks(answer["results"][0]["remarks"], "row") == solved(name).said
    assert read_remarks(answer["remarks"], "answer") == solved(name).said


OF_TRACES = [name for name, asked in QUESTIONS.items() if "compressor" not in asked.keywords]


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", OF_TRACES)
def test_a_trace_prints_the_time_and_the_remarks_of_solve(tmp_path, capsys, solved, name):
    asked, solution = QUESTIONS[name], solved(name)
    words = ("--topology", asked.network, asked.collective, "-b", "1M", "-e", "1M", *asked.flags)
    assert main(["trace", *words, "-o", str(tmp_path / "t.json"), "-v"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [text for text in map(str, solution.said) if f"# {text}" not in printed] == []
    assert len([line for line in printed if line.endswith(f": {solution.results[0].time * 1e6:.6g} us")]) == 1


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


def cause(why):
    """Return a reason without the name of what was left out, and without the flag that would change it."""
    return why.rpartition("; ")[0].rpartition(": ")[2] if "no aggregating switch" in why else why


@pytest.mark.parametrize("network", [STAR, LEAF, "dgx-h100"])
def test_an_advice_has_the_candidates_times_and_reasons_of_a_ranking(tmp_path, network):
    advice, ranking = cs.advise_for("1MiB", network), cs.rank("all_reduce", network, "1MiB")
    times = {row.candidate.spec: row.result.time for row in advice.ranked}
    ranked = {name: result.time for name, result in ranking.by_size[MIB]}
    both = times.keys() & ranking.plans.keys()
    assert len(both) > 6
    assert {name: times[name] for name in both} == {name: ranked[name] for name in both}
    # The rest are servers, of which an advice tries several numbers, and none without a host for it.
    assert {spec.partition(":")[0] for spec in times.keys() ^ ranked.keys()} <= {"byteps", "parameter_server"}
    assert {spec.partition(":")[0] for spec in times} >= ranked.keys()
    left_out = {name: cause(why) for name, why in ranking.left_out.items() if name != "parameter_server"}
    assert left_out == {name: cause(why) for name, why in advice.left_out.items() if name in left_out}
    # What an advice leaves out beside: sparse data, of which nothing is known here, and what is a library's.
    others = {why for name, why in advice.left_out.items() if name not in left_out and ":n_servers" not in name}
    assert others <= {
        "needs a density or gradients to know what is zero",
        "a library's, for GPUs that the network does not have",
        "the ring, with gloo's order of sums",
    }
    answer = asked_for(tmp_path, "advise", "--topology", network, "--size", "1MiB")
    assert {row["spec"]: row["time_s"] for row in answer["results"]} == times
    assert answer["left_out"] == dict(advice.left_out)


def test_what_an_engine_cannot_do_is_refused_in_the_same_words_by_both_doors(capsys):
    with pytest.raises(InputError) as refused:
        cs.predict("ring_all_reduce", STAR, "1MiB", engine="closed-form", start_jitter="1us")
    assert main(["run", "--topology", STAR, "ring_all_reduce", "--engine", "closed-form", "--start-jitter", "1us"]) == 2
    assert str(refused.value) in capsys.readouterr().err


GROUPS = ("--group", "0,1,2", "--group", "3,4,5")
IN_GROUPS = {"groups": [[0, 1, 2], [3, 4, 5]]}
COMPRESSOR = ("--compressor", "top_k:density=0.01")
COMPRESSED = {"compressor": "top_k:density=0.01"}
FLAP = ("--flap", "link:leaf0:spine0@10us+20us")
FLAPS = {"flap": ["link:leaf0:spine0@10us+20us"]}


@pytest.mark.parametrize(
    ("flags", "keywords", "refusal"),
    [
        ((*GROUPS, *COMPRESSOR), IN_GROUPS | COMPRESSED, "compressor is not modelled for groups"),
        ((*GROUPS, "--start-jitter", "1us"), IN_GROUPS | {"start_jitter": "1us"},
         "start jitter is not modelled for groups"),
        ((*GROUPS, "--engine", "auto", "--tolerance", "10%"), IN_GROUPS | {"engine": "auto", "tolerance": 0.1},
         "groups: errors of engines are not known for it; choose an engine, such as engine flow"),
        ((*COMPRESSOR, *FLAP), COMPRESSED | FLAPS, "flap is not modelled for compressed gradients"),
    ],
)  # fmt: skip
def test_an_option_that_a_kind_of_work_does_not_honour_is_refused_in_the_same_words(capsys, flags, keywords, refusal):
    with pytest.raises(InputError) as refused:
        cs.solve(cs.scenario_of("ring_all_gather", LEAF, **keywords), "1MiB")
    assert str(refused.value) == refusal
    assert main(["run", "--topology", LEAF, "ring_all_gather", *flags]) == 2
    assert capsys.readouterr().err == f"commsim run: error: {refusal}\n"


@pytest.mark.parametrize("name", ["method", "start_jitter"])
def test_a_plan_that_is_given_does_not_let_options_through(name):
    asked = cs.scenario_of("ring_all_reduce", LEAF, **IN_GROUPS)
    plan = cs.solve(asked, "1MiB").plan
    other = cs.scenario_of("ring_all_reduce", LEAF, **IN_GROUPS, **{name: {"method": "events"}.get(name, "1us")})
    with pytest.raises(InputError, match="is not modelled for groups"):
        solve(other, [MIB], plan=plan)


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize("collective", ["ring_all_reduce", "switchml", "nccl_all_reduce"])
def test_groups_are_jobs_that_start_together(tmp_path, collective, engine):
    network = NCCL if collective.startswith("nccl") else LEAF
    asked = Question(collective, network, ("--engine", engine))
    ranks = ([0, 8, 16], [1, 9, 17]) if network == NCCL else ([0, 4, 8], [1, 5, 9])
    flags = [word for group in ranks for word in ("--group", ",".join(map(str, group)))]
    groups = by_command_line(tmp_path, asked, *flags)["results"]
    path = tmp_path / "jobs.toml"
    path.write_text(
        "".join(f'[[job]]\ncollective = "{collective}"\nranks = {group}\nsize = "1MiB"\n' for group in ranks)
    )
    jobs = asked_for(tmp_path, "run", "--topology", network, "--jobs", path, "--engine", engine)["results"]
    assert [row["time_s"] for row in groups] == [row["time_s"] for row in jobs]


OF_JOBS = "jobs describe the whole run;"
JOBS = """
[[job]]
name = "ring"
collective = "ring_all_reduce"
ranks = "0-3"
size = "1MiB"
[[job]]
name = "switches"
collective = "switchml"
ranks = [4, 8, 12]
size = "256KiB"
start = "3us"
[[background]]
kind = "poisson"
load = 0.2
size = "32KiB"
until = "50us"
"""


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_python_asks_for_jobs_and_background_as_the_command_line_does(tmp_path, engine):
    path = tmp_path / "jobs.toml"
    path.write_text(JOBS)
    flags = ("--engine", engine, "--seed", "3", "--overhead", "1us")
    answer = asked_for(tmp_path, "run", "--topology", LEAF, "--jobs", path, *flags)
    asked = cs.scenario_of(None, LEAF, jobs=path, engine=engine, seed=3, overhead="1us")
    found = cs.solve(asked)
    assert [row["time_s"] for row in answer["results"]] == [result.time for result in found.results]
    assert tuple(row["alone_s"] for row in answer["results"]) == found.details.alone
    assert answer["background"]["messages"] == len(found.details.took) > 0
    assert answer["background"]["mean_s"] == found.details.took.mean()
    assert set(found.said) <= set(read_remarks(answer["remarks"], "answer"))


def test_python_asks_for_groups_as_the_command_line_does(tmp_path):
    asked = Question("ring_all_reduce", LEAF)
    rows = by_command_line(tmp_path, asked, *GROUPS)["results"]
    found = cs.solve(cs.scenario_of("ring_all_reduce", LEAF, **IN_GROUPS), "1MiB")
    assert [row["time_s"] for row in rows] == [result.time for result in found.results]
    one = cs.predict("ring_all_reduce", LEAF, "1MiB", groups=IN_GROUPS["groups"][:1])
    assert one.time == by_command_line(tmp_path, asked, *GROUPS[:2])["results"][0]["time_s"]


@pytest.mark.parametrize(
    ("flags", "keywords", "refusal"),
    [
        (("--ranks", "4"), {"n_ranks": 4}, f"{OF_JOBS} ranks cannot be used with them"),
        (COMPRESSOR, COMPRESSED, f"{OF_JOBS} compressor cannot be used with them"),
        (GROUPS, IN_GROUPS, f"{OF_JOBS} groups cannot be used with them"),
        (("--operation", "all_reduce"), {"operation": "all_reduce"}, f"{OF_JOBS} operation cannot be used with them"),
        (("ring_all_reduce",), {"collective": "ring_all_reduce"}, f"{OF_JOBS} collective cannot be used with them"),
        (("--start-jitter", "1us"), {"start_jitter": "1us"}, "start jitter is not modelled for jobs"),
    ],
)
def test_what_jobs_do_not_honour_is_refused_in_the_same_words(tmp_path, capsys, flags, keywords, refusal):
    path = tmp_path / "jobs.toml"
    path.write_text(JOBS)
    with pytest.raises(InputError) as refused:
        cs.solve(cs.scenario_of(**{"collective": None, "network": LEAF, "jobs": path} | keywords))
    assert str(refused.value) == refusal
    assert main(["run", "--topology", LEAF, "--jobs", str(path), *flags]) == 2
    assert capsys.readouterr().err == f"commsim run: error: {refused.value}\n"


def test_groups_say_of_switches_what_one_collective_says(tmp_path):
    asked = Question("switchml", STAR, ("--engine", "packet"))
    one = by_command_line(tmp_path, asked)["remarks"]
    (about,) = (said for said in one if said["code"] == "option-unused")
    assert about in by_command_line(tmp_path, asked, *GROUPS)["remarks"]


def test_headers_that_are_given_are_those_of_every_job(tmp_path):
    path = tmp_path / "jobs.toml"
    path.write_text("".join(f'[[job]]\nname = "{k}"\ncollective = "switchml"\nranks = "{ranks}"\nsize = "1MiB"\n'
                            for k, ranks in enumerate(("0-3", "4-7"))))  # fmt: skip
    flags = ("--payload", "4096B", "--header", "64B")
    rows = asked_for(tmp_path, "run", "--topology", STAR, "--jobs", path, *flags)["results"]
    assert [row["time_s"] for row in rows] == pytest.approx([row["alone_s"] for row in rows], rel=1e-9)


def test_a_server_has_the_same_seat_through_run_group_and_jobs_with_any_placement(tmp_path):
    asked = Question("parameter_server", "fat_tree:k=4", ("--placement", "spread"), {"n_ranks": 15})
    ((row,),) = [by_command_line(tmp_path, asked, "--ranks", "15")["results"]]
    assert by_group(tmp_path, asked) == by_jobs(tmp_path, asked) == row["time_s"]


def test_the_default_number_of_servers_does_not_depend_on_writing_the_number_of_ranks(tmp_path):
    asked = Question("byteps", "rail_optimized:n_hosts=2")
    assert by_run(tmp_path, asked) == by_run(tmp_path, asked._replace(flags=("--ranks", "16")))
