"""What functions return shows itself: one line as text, tables and all remarks in a notebook, rows as a data frame."""

import html
import json
import pickle
from pathlib import Path

import pytest
from remark_codes import codes

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.core.remark import SIZE_UNUSED
from commsim.jobs.composition import read_composition
from commsim.prediction.read import scenario_of

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
MEASURED = Path(__file__).parents[1] / "answers" / "inputs" / "osu_allreduce.txt"
ANSWERS = {
    "predict": lambda: cs.predict("switchml", STAR, "1MiB", seed=3, overhead="0us"),
    "solve": lambda: cs.solve(cs.scenario_of("switchml", STAR, seed=3, overhead="0us"), ["1MiB", "2MiB"]),
    "rank": lambda: cs.rank("all_reduce", STAR, ["1KiB", "1MiB"]),
    "over_bound": lambda: cs.over_bound("all_reduce", STAR, ["1KiB", "1MiB"]),
    "lower_bound": lambda: cs.lower_bound("all_reduce", STAR, anywhere=True),
    "synthesize": lambda: cs.synthesize("all_reduce", STAR, ["1KiB", "1MiB"], overhead="0us"),
    "advise_for": lambda: cs.advise_for("1MiB", STAR),
    "compare_with": lambda: cs.compare_with(MEASURED, STAR, n_ranks=4),
}


@pytest.fixture(scope="module", params=ANSWERS)
def answer(request):
    return ANSWERS[request.param]()


def said_of(answer):
    return getattr(answer, "said", None) or answer.remarks


def test_an_answer_prints_on_one_short_line(answer):
    assert "\n" not in repr(answer)
    assert len(repr(answer)) < 200


def test_an_answer_shows_its_remarks_in_a_notebook(answer):
    from html import escape

    shown = answer._repr_html_()
    assert "<td" in shown
    assert [text for text in said_of(answer) if escape(str(text)) not in shown] == []


@pytest.mark.parametrize("answer", sorted(ANSWERS.keys() - {"lower_bound", "over_bound"}), indirect=True)
def test_an_answer_has_remarks(answer):
    """But for lower bounds, for which everything was tried."""
    assert said_of(answer)


def test_an_answer_becomes_a_data_frame(answer):
    assert len(answer.to_frame()) >= 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_what_has_no_tables_becomes_a_data_frame_too(library, tmp_path):
    """The page says so of every answer, and a sweep, an estimate and a training step had none."""
    sizes = ["64KiB", "1MiB"]
    tables = {"topology": {"name": "star", "n_hosts": 4}, "collective": {"name": "ring_all_reduce", "size": sizes}}
    swept = cs.run_sweep(tables, tmp_path / "swept", "serial").to_frame(library)
    known = {size: cs.predict("ring_all_reduce", "star:n_hosts=4", size).time for size in (2**16, 2**20)}
    assert dict(zip(swept["size_B"].to_list(), swept["time_s"].to_list(), strict=True)) == pytest.approx(known)
    one = cs.estimate("all_gather", "64MiB", 8, "dgx-h100")
    assert one.to_frame(library)["low_s"].to_list() == [one.low]
    step = cs.training_step("llama3-8b", "h100", ranks=16, tp=8, global_batch=8, overhead="0us")
    assert step.to_frame(library)["step_s"].to_list() == [step.time]


def printed_by(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_a_solution_shows_the_table_of_the_command_line(capsys):
    solution = cs.solve(cs.scenario_of("switchml", STAR, overhead="0us"), "1MiB")
    printed = printed_by(capsys, "run", "--overhead", "0us", "--topology", STAR, "switchml", "-b", "1M", "-e", "1M")
    shown = solution._repr_html_()
    for line in printed.splitlines():
        for cell in line.removeprefix("# ").split("  ") if not line.startswith("# ") else [line.removeprefix("# ")]:
            assert html.escape(cell.strip()) in shown


def test_a_synthesis_says_what_the_command_line_says(capsys):
    found = cs.synthesize("all_reduce", STAR, ["1KiB", "1MiB"], overhead="0us")
    printed = printed_by(capsys, "synthesize", "--topology", STAR, "--operation", "all_reduce", "-b", "1K", "-e", "1M",
                         "-f", "1024", "--overhead", "0us", "-v")  # fmt: skip
    assert len(found.remarks) >= 2
    assert [text for text in map(str, found.remarks) if f"# {text}" not in printed.splitlines()] == []


def test_a_comparison_says_what_the_command_line_says(capsys):
    found = cs.compare_with(MEASURED, STAR, n_ranks=4)
    printed = printed_by(capsys, "compare", str(MEASURED), "--topology", STAR, "--ranks", "4", "-v")
    said = [line.removeprefix("# ") for line in printed.splitlines() if line.startswith("# ")]
    assert len(found.remarks) >= 2
    own = {str(one) for one in found.remarks}
    assert own <= set(said)
    # The rest is the title of the table, and the errors below it, which the notebook shows too.
    rest = [text for text in said if text not in own]
    assert [text for text in rest if "against" not in text and html.escape(text) not in found._repr_html_()] == []


def test_groups_and_jobs_keep_their_names(tmp_path):
    groups = cs.solve(
        cs.scenario_of("ring_all_reduce", STAR, groups=[[0, 1], [2, 3]], overhead="0us"), ["1MiB", "2MiB"]
    )
    assert groups.to_frame()["group"].tolist() == ["0,1", "2,3"] * 2
    assert "<th>group</th>" in groups._repr_html_()
    assert "0,1: 1 MiB" in repr(groups)
    jobs = tmp_path / "jobs.toml"
    jobs.write_text("".join(f'[[job]]\nname = "{name}"\ncollective = "ring_all_reduce"\nranks = "0-3"\nsize = "1MiB"\n'
                            for name in ("left", "right")))  # fmt: skip
    shared = cs.solve(scenario_of("", STAR, jobs=read_composition(jobs), overhead="0us"), 0)
    assert shared.to_frame()["job"].tolist() == ["left", "right"]
    assert "<th>slowdown</th>" in shared._repr_html_()
    assert "left: 1 MiB" in repr(shared)
    with pytest.raises(InputError, match="groups and jobs that share a network have no timeline"):
        from commsim.pages.repeated_runs import repeated

        repeated(shared, shared.results[0])


def test_a_page_is_refused_as_on_the_command_line(tmp_path):
    one = cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us")
    with pytest.raises(InputError, match=r"x\.txt: a report is a file that ends with \.html"):
        cs.write_report(one, tmp_path / "x.txt")
    with pytest.raises(InputError, match="needs at least one result, got none"):
        cs.write_report([], tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_a_page_says_why_a_pickled_result_has_no_timeline(tmp_path):
    one = pickle.loads(pickle.dumps(cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us")))
    left_out = cs.write_report(one, tmp_path / "x.html")
    (why,) = (reason for names, reason in left_out.items() if "timeline" in names)
    assert why == "ring_all_reduce: a result that was read or pickled has no timeline; predict it again"


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (("--start-jitter", "50us", "-n", "3", "--seed", "2"), {"start_jitter": "50us", "iterations": 3, "seed": 2}),
        (("--payload", "1KiB", "--header", "78B"), {"payload": "1KiB", "header": "78B"}),
    ],
)
def test_a_ranking_takes_what_the_command_line_takes(flags, options, capsys, tmp_path):
    words = ("--topology", STAR, "--operation", "all_gather", "-b", "64K", "-e", "64K")
    printed_by(capsys, "run", *words, *flags, "--json", str(tmp_path / "r.json"))
    rows = json.loads((tmp_path / "r.json").read_text())["ranking"][0]["algorithms"]
    ranking = cs.rank("all_gather", STAR, "64KiB", **options)
    assert [(row["algorithm"], row["time_s"]) for row in rows] == [
        (name, result.time) for name, result in ranking.by_size[2**16]
    ]
    assert ranking.by_size != cs.rank("all_gather", STAR, "64KiB").by_size


def test_a_ranking_says_what_has_no_effect():
    assert "option-unused" in codes(cs.rank("all_gather", STAR, "1KiB", iterations=3).said)
    assert "option-unused" not in codes(cs.rank("all_gather", STAR, "1KiB").said)
    assert SIZE_UNUSED in codes(cs.rank("barrier", STAR, "1KiB").said)
    assert SIZE_UNUSED in codes(cs.over_bound("barrier", STAR, "1KiB").said)


def test_a_bound_that_is_met_but_for_rounding_is_met():
    found = cs.over_bound(
        "all_gather", "star:n_hosts=8,latency=0us", "64MiB", overhead="0us", algorithms=["ring_all_gather"]
    )
    (one,) = found.ratios
    assert one.time != one.bound
    assert one.times_bound == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": ""}, "jobs must be a TOML or JSON file, or a Composition, got ''"),
        ({"payload": 10, "header": "x"}, "^header must be"),
    ],
)
def test_a_wrong_option_is_named_as_in_python(options, message):
    with pytest.raises(InputError, match=message):
        cs.scenario_of("ring_all_reduce", STAR, **({"overhead": "0us"} | options))
