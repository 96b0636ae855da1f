"""The gate of accuracy: what counts as worse, what is written, and that a planted error of 10 % is found."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.accuracy.gate import command
from benchmarks.accuracy.gate.errors import Errors, compare, merged, read_errors, sum_up
from benchmarks.accuracy.gate.page import BEGINS, ENDS, in_readme, page
from benchmarks.accuracy.gate.sources import SOURCES
from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_tree
from commsim.prediction.build import prepare


def test_figures_are_those_of_the_sizes_of_errors() -> None:
    found = sum_up([-0.1, 0.2, 0.3, -0.4, 0.5])
    assert (found.rows, found.median, found.p90, found.largest) == (5, 0.3, 0.46, 0.5)
    assert not found.noise


def test_only_what_is_measured_has_noise_and_it_is_the_same_each_time() -> None:
    errors = [0.01 * k for k in range(1, 40)]
    found = sum_up(errors, measured_now=True)
    assert 0 < found.noise["median"] < found.median
    assert found == sum_up(errors, measured_now=True)


@pytest.mark.parametrize("errors", [[], [float("nan")], [0.1, float("inf")]])
def test_a_class_without_finite_errors_is_refused(errors) -> None:
    with pytest.raises(InputError, match="finite"):
        sum_up(errors)


def test_worse_is_more_than_the_noise() -> None:
    before = {"a": Errors(10, 0.05, 0.1, 0.2), "b": Errors(10, 0.05, 0.1, 0.2, {"median": 0.01, "p90": 0.02})}
    worse, better = compare(before, {"a": Errors(10, 0.051, 0.09, 0.2), "b": Errors(10, 0.055, 0.115, 0.2)})
    assert [(change.name, change.figure) for change in worse] == [("a", "median")]
    assert [(change.name, change.figure) for change in better] == [("a", "p90")]
    worse, _ = compare(before, {"b": Errors(10, 0.062, 0.1, 0.2)})
    assert [change.text() for change in worse] == ["b: median 5.00% before, now 6.20% (noise 1.00%)"]


def test_fewer_rows_are_worse_and_more_are_not() -> None:
    before = {"a": Errors(10, 0.05, 0.1, 0.2)}
    assert [change.figure for change in compare(before, {"a": Errors(9, 0.05, 0.1, 0.2)})[0]] == ["rows"]
    assert not compare(before, {"a": Errors(11, 0.05, 0.1, 0.2)})[0]


def test_the_file_does_not_follow_the_noise_and_keeps_what_could_not_be_made() -> None:
    before = {"a": Errors(10, 0.05, 0.1, 0.2, {"median": 0.01, "p90": 0.02}), "b": Errors(1, 0.1, 0.1, 0.1)}
    now = {"a": Errors(10, 0.045, 0.09, 0.3, {"median": 0.01, "p90": 0.02})}
    assert merged(before, now) == before
    now = {"a": Errors(10, 0.03, 0.09, 0.3, {"median": 0.01, "p90": 0.02})}
    assert merged(before, now) == now | {"b": before["b"]}


def test_the_committed_file_is_what_the_page_shows() -> None:
    classes = read_errors(read_tree(command.FILE), "errors.json")
    assert command.PAGE.read_text() == page(classes)
    assert {name.partition(":")[0] for name in classes} <= {source.name for source in SOURCES}


def test_a_planted_error_of_ten_percent_fails_and_no_change_passes_twice(tmp_path, monkeypatch, capsys) -> None:
    file = tmp_path / "errors.json"
    ask = ["--only", "papers", "--json", str(file)]
    monkeypatch.setattr("commsim.papers.paper.paper_names", lambda: ["omnireduce"])
    assert command.main(ask) == 0
    written = file.read_text()
    assert "1 new" in capsys.readouterr().out
    assert command.main(ask) == command.main(ask) == 0
    assert file.read_text() == written
    measure = "commsim.papers.paper.PaperRow.error"
    monkeypatch.setattr(measure, property(lambda row: 1.1 * row.ours / row.theirs - 1))
    capsys.readouterr()
    assert command.main(ask) == 1
    assert "WORSE papers: numbers whose set-up is known: median" in capsys.readouterr().out
    assert file.read_text() == written
    assert command.main([*ask, "--accept"]) == 0
    assert file.read_text() != written


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (["--only", "nothing"], "--only takes names of operators left out, questions, NCCL"),
        (["--data", "/nowhere"], "--data /nowhere: not a directory"),
    ],
)
def test_wrong_input_is_one_line(ask, message, capsys) -> None:
    assert command.main(ask) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_damaged_file_is_refused(tmp_path, capsys) -> None:
    file = tmp_path / "errors.json"
    file.write_text(json.dumps({"classes": {"a": {"rows": 1}}}))
    assert command.main(["--only", "papers", "--json", str(file)]) == 2
    assert "class 'a' must have rows" in capsys.readouterr().err


def test_a_source_without_its_data_is_left_out_and_kept(tmp_path, capsys) -> None:
    file = tmp_path / "errors.json"
    shutil.copy(command.FILE, file)
    before = file.read_text()
    assert command.main(["--only", "MPI", "--json", str(file), "--data", str(tmp_path)]) == 0
    assert "# MPI: left out" in capsys.readouterr().out
    assert file.read_text() == before


def test_every_source_names_a_page_of_the_documentation() -> None:
    docs = Path(__file__).parents[2] / "docs"
    assert all((docs / source.page).is_file() for source in SOURCES)


def test_rows_of_amd_are_classes_by_whether_a_constant_was_chosen_on_them(tmp_path) -> None:
    measured = tmp_path / "measured"
    measured.mkdir()
    ours = {size: prepare("rccl_all_reduce", "mi300x").predict(size).time * 1e6 for size in (2**12, 2**24)}
    lines = ["size_bytes,time_us", *(f"{size},{time / 1.1}" for size, time in ours.items())]
    (measured / "mi300x_1x8_ar.csv").write_text("\n".join(lines))
    (source,) = [source for source in SOURCES if source.name == "RCCL"]
    found = source.classes(tmp_path)
    chosen = "RCCL: tables that a constant was chosen on"
    assert found is not None
    assert {name: (errors.rows, round(errors.median, 6)) for name, errors in found.items()} == {
        f"{chosen}, below": (1, 0.1), f"{chosen}, every size": (2, 0.1), f"{chosen}, from 1 MiB": (1, 0.1),
    }  # fmt: skip
    assert source.classes(None) is None


def test_the_figures_of_the_readme_are_those_of_operators_left_out() -> None:
    """By the kind of cluster, and nothing else of the text changes; without its marks or classes nothing does."""
    name = "operators left out: several machines of 8 H100 or H200, InfiniBand or RoCE, from 1 MiB"
    classes = {name: Errors(10, 0.084, 0.213, 0.5), "NCCL: all healthy, every size": Errors(10, 0.01, 0.02, 0.5)}
    text = f"before\n{BEGINS}\nold\n{ENDS}\nafter"
    made = in_readme(text, classes)
    assert made.startswith(f"before\n{BEGINS}\n**Accuracy.** ")
    assert made.endswith(f"{ENDS}\nafter")
    assert "\n| several machines of 8 H100 or H200 | 8% | 21% |\n" in made
    assert in_readme(made, classes) == made
    assert in_readme("no marks", classes) == "no marks"
    assert in_readme(text, {}) == text


def test_the_page_tells_the_world_from_ourselves() -> None:
    classes = {
        "operators left out: one machine, from 1 MiB": Errors(10, 0.05, 0.1, 0.2),
        "matrix: one engine against another: flow, event": Errors(7, 0.0, 0.0, 0.0),
        "matrix: published numbers: flow, measured": Errors(3, 0.06, 0.4, 0.9),
    }
    made = page(classes)
    world, ours, rest = (made.index(part) for part in ("agrees with the world", "agrees with itself", "## Matrix"))
    assert world < made.index("| NCCL, one machine, from 1 MiB | 10 | 5.00% |") < ours
    assert ours < made.index("one engine against another") < rest < made.index("published numbers")
