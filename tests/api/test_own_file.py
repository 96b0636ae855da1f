"""A user's own collective and topology: those of the documentation, and broken ones."""

import json
import re
from pathlib import Path

import pytest

import commsim as package
from collectives import COLLECTIVES
from commsim.core.placement import STRATEGIES
from commsim.placement.clusters.policy import POLICIES
from commsim.training.policies import TRAINING_POLICIES
from topologies import TOPOLOGIES

DOCS = Path(package.__file__).parent.parent / "docs"
EXAMPLES = DOCS.parent / "examples"
STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"


def example(page):
    """The first Python file that a page of the documentation shows."""
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)[0]


def of_readme(word):
    """The indented Python file of the README that holds a word."""
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    blocks = ["".join(block) for block in re.findall(r"((?:^(?: {4}.*)?\n)+)", text, re.MULTILINE)]
    (found,) = [block for block in blocks if word in block]
    return re.sub(r"^ {4}", "", found, flags=re.MULTILINE)


@pytest.fixture
def files(tmp_path, monkeypatch, forgets):
    """A folder with the files of the documentation, which are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_ring.py").write_text(example("collectives.md"))
    (tmp_path / "line.py").write_text(example("topologies.md"))
    forgets(COLLECTIVES, TOPOLOGIES, POLICIES, STRATEGIES, TRAINING_POLICIES)
    return tmp_path


def test_the_topology_and_the_collective_of_the_readme_run_together(commsim, files):
    (files / "my_rack.py").write_text(of_readme("def my_rack("))
    (files / "my_ring.py").write_text(of_readme("def my_ring("))
    sizes = ("-b", "64M", "-e", "64M")
    row = commsim.results("run", "my_ring.py", "--topology", "my_rack.py:n_hosts=4", *sizes)["results"][0]
    whole = commsim.results("run", "my_ring.py", "--topology", "my_rack.py:n_hosts=4,slow=0", *sizes)["results"][0]
    assert row["time_s"] == pytest.approx(4 * whole["time_s"], rel=0.01)


@pytest.mark.parametrize("spec", ["my_ring.py", "./my_ring.py:my_ring", "./my_ring.py:backwards=true"])
def test_an_own_collective_is_checked_and_run_like_ours(commsim, files, spec):
    row = commsim.results("schedule", "check", spec, "--ranks", 9)["results"][0]
    assert (row["collective"], row["method"]) == ("my_ring", "exact")
    own = commsim.results("run", "--overhead", "0us", "--collective", spec, "--topology", STAR)["results"][0]
    ours = commsim.results("run", "--overhead", "0us", "--collective", "ring_all_reduce", "--topology", STAR)[
        "results"
    ][0]
    assert own == ours | {"collective": "my_ring", "asked": spec}


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("", "", "cost= is the time of LogGP "),
        ("2 * (n_ranks - 1) * (link.o", "(n_ranks - 1) * (link.o", "(the alpha-beta engine): 0.5, 0.5, "),
        (" + (n_ranks - 1) * size / n_ranks * link.gamma", "", "(the alpha-beta engine): 1, 1, "),
    ],
)
def test_an_own_closed_form_is_compared_with_loggp_and_one_that_differs_fails(commsim, files, wrong, right, said):
    page = (DOCS / "collectives.md").read_text(encoding="utf-8")
    ring, cost = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    ring = ring.replace('@collective("all_reduce")', '@collective("all_reduce", cost=my_ring_cost)')
    (files / "with_cost.py").write_text(cost.replace(wrong, right) + ring)
    assert commsim("schedule", "check", "with_cost.py", "--ranks", 5).code == (wrong != "")
    assert said in commsim.out


def test_an_own_collective_is_shown_saved_drawn_and_ranked(commsim, files):
    assert commsim.results("schedule", "show", "my_ring.py", "--ranks", 5)["config"]["n_hops"] == 8
    assert commsim("schedule", "save", "my_ring.py", "--ranks", 5, "-o", "ring.npz").code == 0
    assert commsim("schedule", "check", "ring.npz").code == 0
    assert commsim("schedule", "show", "my_ring.py:backwards=true", "--ranks", 8, "--draw", "ring.svg").code == 0
    tree = commsim.results("run", "--operation", "all_reduce", "--collective", "./my_ring.py", "--topology", STAR)
    assert "./my_ring.py" in [a["algorithm"] for a in tree["ranking"][0]["algorithms"]]


def test_an_own_topology_is_shown_and_run_on(commsim, files):
    row = commsim.results("topo", "show", "./line.py:n_hosts=8,bandwidth=400Gbps")["results"][0]
    assert (row["nodes"], row["diameter"]) == ({"host": 8, "switch": 8}, 9)
    assert row["link_rates"] == [{"bandwidth_Bps": 50e9, "n_links": 2 * (8 + 7)}]
    rows = commsim.results(
        "run", "--overhead", "0us", "--topology", "./line.py:line:n_hosts=4", "--collective", "./my_ring.py"
    )["results"]
    assert rows[0]["n_ranks"] == 4
    assert commsim("topo", "show", "pcie_host:n_gpus=2,n_nics=1@./line.py:n_hosts=3").code == 0


def test_it_stays_ours_only_for_who_named_it(commsim, files):
    assert "unknown collective 'my_ring'" in commsim.refuses("run", "--collective", "my_ring", "--topology", STAR)


HEAD = "from collectives import collective\nfrom commsim import Program, Schedule\n"


def collective_file(body, operation="all_reduce", parameters="n_ranks: int"):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f'{HEAD}\n@collective("{operation}")\ndef mine({parameters}) -> Schedule:\n{lines}\n'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (collective_file("return Program(n_ranks, 1).build()"), "bad.py: mine: rank 0 ends with chunk 0 wrong"),
        (collective_file("p = Program(n_ranks, 1)\np.copy(0, src=0, dst=99)\nreturn p.build()"), "line 8: mine: dst"),
        (collective_file("return [][n_ranks]"), "bad.py, line 6: IndexError"),
        (collective_file("return 'a schedule'"), "mine must return a Schedule, got str"),
        (collective_file("return Program(n_ranks, 1).build()", "all_redce"), "unknown operation 'all_redce'"),
        (collective_file("return Program(n_ranks, 1).build()", "custom"), "has no postcondition to check"),
        (collective_file("return Program(ranks, 1).build()", parameters="ranks: int"), "must take n_ranks first"),
        (collective_file("return Program(1, 1).build()"), "mine was called for 4 ranks and returned 1"),
        (collective_file("pass").replace("mine", "ring_all_reduce"), "two functions are registered"),
        ("", "registers no collective"),
        ("1 +", "SyntaxError"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "check", "show"])
def test_a_broken_collective_is_one_clear_line_and_leaves_no_file(commsim, files, verb, text, what):
    (files / "bad.py").write_text(text)
    before = sorted(files.iterdir())
    if verb == "run":
        message = commsim.refuses("run", "--collective", "./bad.py", "--topology", STAR, "--json", "out.json")
    else:
        message = commsim.refuses("schedule", verb, "./bad.py", "--ranks", 4, "--json", "out.json")
    assert what in message
    assert "bad.py" in message
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("names = node_names(h=n_hosts, switch=n_hosts)", "names = ('a',)"), "line.py, line"),
        (("n_hosts: int", "n_hosts"), "parameter n_hosts needs an annotation"),
        (('return Network("line", names', "return ((names"), "line.py, line"),
        (("switch[:-1]", "switch[:-1] + 'x'"), "line.py, line 15: UFuncTypeError"),
        (("@topology\n", ""), "line.py: registers no topology"),
    ],
)
def test_a_broken_topology_is_one_clear_line(commsim, files, change, what):
    text = (files / "line.py").read_text()
    assert change[0] in text
    (files / "line.py").write_text(text.replace(*change))
    assert what in commsim.refuses("topo", "show", "./line.py:n_hosts=4")
    assert "line.py" in commsim.refuses("run", "--topology", "./line.py:n_hosts=4")


def test_wrong_arguments_are_refused_like_those_of_ours(commsim, files):
    assert "my_ring has no parameter 'x'; known: backwards" in commsim.refuses(
        "schedule", "check", "./my_ring.py:x=1", "--ranks", 4
    )
    assert "line needs n_hosts" in commsim.refuses("topo", "show", "./line.py")
    assert "my_ring needs a number of ranks" in commsim.refuses("schedule", "show", "./my_ring.py")
    assert "at least 1 rank" in commsim.refuses("schedule", "show", "./my_ring.py", "--ranks", 0)


POLICY = '''
from commsim.placement.clusters.policy import Grant, View, fill, policy


@policy(interval=600.0, paper="mine")
def last_come(view: View) -> list[Grant]:
    """Last in, first out."""
    return fill(view, view.states[::-1])[0]
'''

STRATEGY = '''
import numpy as np

from commsim.placement.strategies import placement_strategy
from commsim.placement.strategies.free_gpus import FreeGpus


@placement_strategy
def backwards(free: FreeGpus, jobs: list, rng: object) -> dict:
    """The last hosts first."""
    waiting = [i for i, job in enumerate(jobs) if job.placement is None]
    nodes, ends = np.repeat(np.arange(len(free.free)), free.free)[::-1], np.cumsum([jobs[i].n_gpus for i in waiting])
    return dict(zip(waiting, np.split(nodes[: ends[-1]], ends[:-1])))
'''

TRAINING = '''
from commsim.training.policies import training_policy
from commsim.training.data_parallel_setting import Bucket, TrainingSetting, bucketed_graph
from commsim.training.task_graph import TaskGraph


@training_policy
def at_once(setting: TrainingSetting, *, overlap: bool = False) -> TaskGraph:
    """All gradients in one message."""
    return bucketed_graph(setting, [Bucket(tuple(range(len(setting.trace.n_bytes))))], overlap=overlap)
'''


def test_an_own_policy_replays_a_trace(commsim, files):
    (files / "own.py").write_text(POLICY)
    words = ("cluster", "run", EXAMPLES / "cluster.toml", "--trace", "poisson:jobs=8,load=0.9,mean_gpus=2")
    row = commsim.results(*words, "--policy", "own.py")["results"][0]
    assert (row["policy"], row["jobs"]) == ("last_come", 8)
    assert "takes no arguments" in commsim.refuses(*words, "--policy", "own.py:a=1")
    (files / "own.py").write_text(POLICY.replace("fill(view, view.states[::-1])[0]", "view.states"))
    assert "returns a list of grants" in commsim.refuses(*words, "--policy", "own.py")
    (files / "own.py").write_text(POLICY.replace("@policy", "#").replace("last_come", "other"))
    assert "registers no policy; decorate a function with @policy" in commsim.refuses(*words, "--policy", "own.py")


def test_an_own_placement_strategy_makes_candidates_and_places_ranks(commsim, files):
    (files / "own.py").write_text(STRATEGY)
    jobs = [{"job": "a", "gpus": 3, "iter_time_ms": 100, "phases": []}]
    (files / "jobs.json").write_text(json.dumps(jobs))
    tree = commsim.results("place", EXAMPLES / "cluster.toml", "jobs.json", "--generator", "packed,own.py")
    assert {c["generator"] for c in tree["candidates"]} == {"packed", "backwards"}
    row = commsim.results(
        "run", "--overhead", "0us", "--collective", "ring_all_reduce", "--topology", STAR, "--placement", "own.py"
    )
    assert row["results"][0]["n_ranks"] == 4


def test_an_own_training_policy_is_run_with_its_arguments(commsim, files):
    (files / "own.py").write_text(TRAINING)
    (files / "trace.csv").write_text("nbytes,wait_us\n1000,10\n1000,10\n")
    words = ("workload", "run", "--trace", "trace.csv", "--workers", 4, "--bandwidth", "10Gbps")
    late, soon = (commsim.results(*words, "--policy", f"own.py:overlap={x}")["results"][0] for x in ("false", "true"))
    assert late["policy"] == "own.py:overlap=false"
    assert late["iteration_s"] == soon["iteration_s"] > 20e-6


def test_a_report_does_not_execute_the_code_of_a_placement(commsim, files):
    (files / "own.py").write_text(STRATEGY)
    commsim.results(*f"run --collective ring_all_reduce --topology {STAR} --placement own.py -b 1M -e 1M".split())
    (files / "own.py").write_text("raise SystemExit('executed')")
    assert commsim("report", files / "results.json", "-o", "r.html").code == 0
    assert "a data file cannot execute code" in (files / "r.html").read_text() + commsim.out


def test_an_own_collective_that_cannot_be_built_is_named_in_the_error(commsim, files):
    text = example("howto_researcher.md")  # recursive doubling: of 6 ranks, rank 2 would send to rank 6
    (files / "my_exchange.py").write_text(text)
    said = commsim.refuses("schedule", "check", "my_exchange.py", "--ranks", 6)
    assert "my_exchange: dst must be 0..5, got" in said
    assert "custom" not in said
