"""The functions of a notebook: names that nothing hides, what they take, and what they refuse."""

import doctest
import importlib
import inspect
import json
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import commsim as cs
from commsim.core.errors import InputError, RoutingError
from commsim.prediction.options import RankedOptions, ScenarioOptions
from commsim.training.steps.predicted_step import Step

ROOT = Path(cs.__file__).parent.parent
STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
FUNCTIONS = ("predict", "rank", "run_sweep", "lower_bound", "advise_for", "compare_with", "place_jobs", "synthesize",
             "write_report", "from_networkx", "to_networkx")  # fmt: skip


def test_no_subpackage_hides_a_name():
    """Importing ``commsim.prediction`` sets ``commsim.prediction``: a function of that name would be gone."""
    program = (
        "import importlib, pkgutil, commsim as cs\n"
        "for one in pkgutil.iter_modules(cs.__path__, 'commsim.'):\n"
        "    if one.name != 'commsim.__main__': importlib.import_module(one.name)\n"
        f"assert all(callable(getattr(cs, name)) for name in {FUNCTIONS})\n"
        f"print(cs.predict('ring_all_reduce', {STAR!r}, '64MiB', overhead='0us').time)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(6 * (2e-6 + 2**24 / 12.5e9), rel=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_typed_and_take_no_options_unnamed(name):
    function = getattr(cs, name)
    signature = inspect.signature(function)
    assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert all(p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in signature.parameters.values())
    assert function.__doc__


@pytest.mark.parametrize("name", ["prediction.network_builder", "prediction.networkx_graphs", "api"])
def test_examples_of_docstrings_are_true(name):
    found = doctest.testmod(importlib.import_module(f"commsim.{name}"))
    assert found.failed == 0
    assert found.attempted > 1


WITH_EXAMPLE = [name for name in cs.__all__ if ">>>" in (inspect.getdoc(getattr(cs, name)) or "")]


@pytest.mark.parametrize("name", [name for name in WITH_EXAMPLE if inspect.isfunction(getattr(cs, name))])
def test_the_example_of_a_function_is_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(cs, name), name, globs={})
    assert doctest.DocTestRunner().run(example).failed == 0


def test_an_example_of_a_step_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(Step.job, "job", globs={})
    assert doctest.DocTestRunner().run(example).failed == 0


def test_a_prediction_is_equal_to_the_plain_result_also_after_a_pickle():
    one = cs.predict("ring_all_reduce", STAR, 2**20, overhead="0us")
    plain = cs.prepare("ring_all_reduce", STAR, overhead="0us").predict(2**20)
    assert one == plain
    assert plain == one
    assert hash(one) == hash(plain)
    assert pickle.loads(pickle.dumps(one)) == one


def test_placements_are_lists_of_numbers_or_names():
    by_number = cs.predict("ring_all_reduce", "star:n_hosts=8", "1MiB", placement=[0, 4, 7], overhead="0us")
    by_name = cs.predict("ring_all_reduce", "star:n_hosts=8", "1MiB", placement=["h0", "h4", "h7"], overhead="0us")
    assert by_number == by_name
    assert by_number.prepared.placement.nodes.tolist() == [0, 4, 7]
    with pytest.raises(InputError, match=r"a node for each of n_ranks=4, got 3 nodes"):
        cs.predict("ring_all_reduce", STAR, "1MiB", n_ranks=4, placement=[0, 1, 2], overhead="0us")
    with pytest.raises(InputError, match=r"has no node 'x'; its first is 'h0'"):
        cs.predict("ring_all_reduce", STAR, "1MiB", placement=["h0", "x"], overhead="0us")
    with pytest.raises(InputError, match=r"share node h0"):
        cs.predict("ring_all_reduce", STAR, "1MiB", placement=[0, 0], overhead="0us")


@pytest.mark.parametrize("sizes", [["1MiB", "2MiB"], None])
def test_what_is_no_size_is_refused_with_what_takes_several(sizes):
    with pytest.raises(InputError, match=r"size is one number of bytes, or text .* cs\.rank or cs\.run_sweep"):
        cs.predict("ring_all_reduce", "star:n_hosts=4", sizes, overhead="0us")


def test_a_function_is_a_collective_and_is_proved():
    from collectives.dense.ring import ring_all_reduce

    def mine(n_ranks):
        return ring_all_reduce(n_ranks)

    assert (
        cs.predict(mine, STAR, "1MiB", overhead="0us").time
        == cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us").time
    )
    with pytest.raises(InputError, match=r"nothing\(4\) must return a Schedule, got NoneType"):
        cs.predict(nothing, STAR, "1MiB", overhead="0us")


def nothing(n_ranks):
    return None


def test_the_usual_engine_is_that_of_the_command_line():
    assert cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us").engine == "flow"
    assert cs.predict("nccl_all_reduce", "dgx-a100", "1MiB").engine == "flow"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_answers_become_data_frames(library):
    one = cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us")
    assert one.to_frame(library)["time_s"][0] == one.time
    timeline = one.timeline(library)
    assert timeline["done_s"].max() == pytest.approx(one.time, rel=1e-12)
    assert len(timeline) == one.prepared.schedule.n_transfers
    ranking = cs.rank("all_reduce", STAR, ["1KiB", "1MiB"], n_ranks=4).to_frame(library)
    assert sorted(set(ranking["size_B"])) == [1024, 2**20]
    assert {ranking["times_best"][i] for i, place in enumerate(ranking["rank"]) if place == 1} == {1.0}
    with pytest.raises(InputError, match="library must be one of pandas, polars, got 'excel'"):
        one.to_frame("excel")


def test_values_print_short_and_show_themselves():
    network = cs.load_network("fat_tree:k=16")
    assert repr(network).startswith("Network(fat_tree:k=16")
    assert "1024 hosts, 320 switches" in repr(network)
    assert len(repr(network)) < 200
    assert "<svg" in network._repr_html_()
    schedule = cs.prepare("ring_all_reduce", STAR, overhead="0us").schedule
    assert repr(schedule) == "Schedule(ring_all_reduce: all_reduce, 4 ranks, 24 transfers)"
    assert "<svg" in schedule._repr_html_()
    assert "<td" in cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us")._repr_html_()


def test_answers_show_themselves_as_the_command_line_does():
    ranking = cs.rank("all_reduce", STAR, ["1KiB", "1MiB"], n_ranks=4)._repr_html_()
    assert "<th>algorithm</th>" in ranking
    assert "skipped, no aggregating switch: atp, " in ranking
    assert "best: " in ranking
    advice = cs.advise_for("1MiB", STAR)._repr_html_()
    where = "1 MiB on star:n_hosts=4,bandwidth=100Gbps,latency=1us, 4 workers, engine flow"
    assert f"<caption>{where}, 1 us of overhead per message</caption>" in advice
    assert "switchml (programmable assumes it)" in advice
    bound = cs.lower_bound("all_reduce", STAR)._repr_html_()
    assert "lower bound on the time of any schedule" in bound
    assert "<td>1048576</td><td>ranks</td>" in bound
    measured = Path(__file__).parents[1] / "answers" / "inputs" / "osu_allreduce.txt"
    comparison = cs.compare_with(measured, STAR, n_ranks=4)
    compared = comparison._repr_html_()
    assert compared.count("<tr><td>all_reduce</td>") == len(comparison.pairs)
    assert "error: median" in compared


def test_a_plot_shows_a_bar_for_each_message():
    axes = cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us").plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"rank {i}" for i in range(4)]
    assert sum(len(bars.get_paths()) for bars in axes.collections) == 24
    many = cs.predict("ring_all_reduce", "star:n_hosts=65", "1MiB", overhead="0us").plot()
    assert len(many.get_yticklabels()) == 3
    assert "fastest, median and slowest of 65 ranks" in many.get_title()


def test_a_network_is_built_of_names():
    lab = cs.NetworkBuilder("lab").hosts("a", "b", "c", "d").switch("s")
    for host in "abcd":
        lab.cable(host, "s", bandwidth="100Gbps", latency="1us")
    built, star = lab.build(), cs.load_network(STAR)
    for field in ("kind", "src", "dst", "bandwidth", "latency"):
        np.testing.assert_array_equal(getattr(built, field), getattr(star, field))
    assert (
        cs.predict("ring_all_reduce", lab, "1MiB", overhead="0us").time
        == cs.predict("ring_all_reduce", star, "1MiB", overhead="0us").time
    )


def test_a_builder_says_what_is_wrong():
    lab = cs.NetworkBuilder("lab").hosts("left", "right").switch("s")
    with pytest.raises(InputError, match="there is a node 'left' already"):
        lab.switch("left")
    lab.cable("left", "s", bandwidth="1Gbps").cable("rihgt", "s", bandwidth="1Gbps")
    with pytest.raises(InputError, match=r"cable rihgt-s dangles: no node 'rihgt'; did you mean right\?"):
        lab.build()
    alone = cs.NetworkBuilder().hosts("a", "b", "c").cable("a", "b", bandwidth=1e9)
    with pytest.raises(InputError, match="node 'c' has no cable"):
        alone.build()
    with pytest.raises(InputError, match="count must be at least 1, got 0"):
        alone.cable("a", "c", bandwidth=1e9, count=0)


def test_hosts_without_a_switch_have_to_forward():
    def line(**how):
        built = cs.NetworkBuilder("line").hosts("a", "b", "c", **how)
        return built.cable("a", "b", bandwidth="100Gbps").cable("b", "c", bandwidth="100Gbps")

    with pytest.raises(RoutingError, match=r"no path from \w to \w but through b, which does not forward; forwards="):
        cs.predict("ring_all_reduce", line(), "1MiB", overhead="0us")
    hops = cs.predict("ring_all_reduce", line(forwards=True), "1MiB", overhead="0us").link_bytes
    assert hops.min() == hops.max() == pytest.approx(4 / 3 * 2**20)  # c sends to a through b, with all that it sends
    apart = cs.NetworkBuilder("two").hosts("a", "b", "c", "d")
    apart.cable("a", "b", bandwidth=1e9).cable("c", "d", bandwidth=1e9)
    with pytest.raises(RoutingError, match=r"no path from \w to \w$"):
        cs.predict("ring_all_reduce", apart, "1MiB", overhead="0us")


def test_graphs_of_networkx_there_and_back():
    for spec in (STAR, "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"):
        network = cs.load_network(spec)
        assert cs.from_networkx(cs.to_networkx(network)) == network


def test_measurements_are_compared_with_what_runs_there(tmp_path):
    file = tmp_path / "measured.json"
    row = cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us").row()
    file.write_text(json.dumps({"schema": 1, "results": [row | {"time_s": 2 * row["time_s"]}]}))
    found = cs.compare_with(file, STAR, overhead="0us")
    assert [pair.error for pair in found.pairs] == [pytest.approx(-0.5)]
    assert len(found.to_frame()) == 1


@pytest.mark.slow
def test_a_page_of_results_in_memory(tmp_path):
    results = [cs.predict("ring_all_reduce", STAR, size, overhead="0us") for size in ("1MiB", "4MiB")]
    cs.write_report(results, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.lower().startswith("<!doctype html>")
    assert "ring_all_reduce" in text


def test_every_subpackage_is_importable_by_itself():
    assert {one.name for one in pkgutil.iter_modules(cs.__path__)}.isdisjoint(cs.__all__)


def test_the_code_of_the_page_runs():
    page = (ROOT / "docs" / "python.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    mentioned = set(re.findall(r"cs\.([a-z_]+)\(", page))
    assert mentioned <= set(cs.__all__)
    assert set(FUNCTIONS) - mentioned <= {"to_networkx", "from_networkx"}
    named = re.findall(r"`\w+=(\w+)\(\.\.\.\)` of `([\w.]+)`", page)
    assert named
    assert all(hasattr(importlib.import_module(module), name) for name, module in named)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: cs.predict("ring_all_reduce", STAR, "1MiB", overheed="1us", overhead="0us"),
            "'overheed'; did you mean overhead",
        ),
        (
            lambda: cs.scenario_of("ring_all_reduce", STAR, ranks=4, overhead="0us"),
            "no option is called 'ranks'; did you mean n_ranks",
        ),
        (lambda: cs.rank("all_reduce", STAR, "1MiB", compressor="sign"), "no option is called 'compressor'; known"),
    ],
)
def test_a_keyword_that_is_no_option_is_named(ask, message):
    with pytest.raises(TypeError, match=message):
        ask()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"groups": [[0, 1], [2, 3]]}, r"predict has one result, got 2 groups; cs.solve\(cs.scenario_of"),
        ({"groups": [0, 1]}, r"groups must be lists of ranks, such as \[\[0, 1\], \[2, 3\]\], one is 0"),
    ],
)
def test_groups_that_predict_cannot_answer_are_refused(keywords, message):
    with pytest.raises(cs.InputError, match=message):
        cs.predict("ring_all_reduce", STAR, "1MiB", **({"overhead": "0us"} | keywords))


def test_a_solution_has_the_numbers_of_all_sizes_as_arrays_which_predict_names():
    sizes = 2.0 ** np.arange(20, 26)
    with pytest.raises(cs.InputError, match=r"cs.solve\(.*, which has arrays .time and .busbw"):
        cs.predict("ring_all_reduce", STAR, sizes)
    found = cs.solve(cs.scenario_of("ring_all_reduce", STAR), sizes)
    each = [cs.predict("ring_all_reduce", STAR, size) for size in sizes]
    for name in ("time", "algbw", "busbw"):
        assert getattr(found, name).tolist() == [getattr(one, name) for one in each]


def test_solve_needs_a_size_where_the_work_has_none():
    assert cs.solve(cs.scenario_of("dissemination_barrier", STAR, overhead="0us")).said == ()
    with pytest.raises(cs.InputError, match="sizes must name at least one size"):
        cs.solve(cs.scenario_of("ring_all_reduce", STAR, overhead="0us"))


@pytest.mark.parametrize("function", [cs.predict, cs.scenario_of, cs.rank])
def test_help_shows_every_option_once(function):
    shown = inspect.signature(function).parameters
    text = inspect.getdoc(function)
    named = [name for line in text.splitlines() if " : " in line for name in line.split(" : ")[0].split(", ")]
    wanted = set(ScenarioOptions.__annotations__ if function is not cs.rank else RankedOptions.__annotations__)
    assert wanted <= shown.keys()
    assert all(named.count(name) == 1 for name in wanted), wanted - set(named)
