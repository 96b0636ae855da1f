"""``commsim export``: flags, and files that are copied."""

import subprocess
import sys

import pytest

from commsim.cli import main
from commsim.costmodel.cli.export import CostModelFlags, numbers, question_of

STAR = "star:n_hosts=4"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--machines", "0"], "--machines takes numbers from 1 on"),
        (["--machines", "a"], "--machines takes numbers such as"),
        (["--machines", "8"], "has 4 machines, got 8"),
        (["--gpus", "2"], "a machine has 1 GPUs, got 2"),
        (["--machines", "1"], "two ranks or more"),
        (["--tolerance", "0%"], "--tolerance must be"),
        (["--tolerance", "inf"], "--tolerance must be a share such as 1% or 0.01, got 'inf'"),
        (["--points", "0"], "--points must be"),
        (["--jobs", "0"], "--jobs must be"),
        (["--operation", "sum"], "sum"),
        (["-e", "8"], "-e must be at least 64"),
        (["--fail", "link:x:y"], "has no node"),
    ],
)
def test_a_wrong_flag_is_one_line(words, said, tmp_path, capsys):
    output = str(tmp_path / "x.json")
    jobs = [] if "--jobs" in words else ["--jobs", "1"]
    assert main(["export", "cost-model", STAR, *jobs, *words, "-o", output]) == 2
    message = capsys.readouterr().err.strip()
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("network", "machines", "asked"),
    [
        ("dgx-h100@star", "2,4,8", "dgx-h100@star:machines=8"),
        ("dgx-h100", "2,4", "dgx-h100@star:machines=4"),
        ("dgx-h100", "1", "dgx-h100"),
        ("dgx-h100", None, "dgx-h100"),
        ("dgx-h100@star:latency=1us", "1-3", "dgx-h100@star:latency=1us,machines=3"),
        ("dgx-h100@star:machines=4", "2", "dgx-h100@star:machines=4"),
        ("star:n_hosts=8", "2,4", "star:n_hosts=8"),
    ],
)
def test_a_star_has_as_many_machines_as_are_asked_for_where_it_does_not_say(network, machines, asked):
    assert question_of(CostModelFlags(topology=network, machines=machines, output="x.json")).network == asked


def test_numbers_are_lists_and_ranges():
    assert numbers("1,4-6", "--machines") == [1, 4, 5, 6]
    assert numbers(None, "--machines") == []


def test_the_evaluator_runs_without_commsim(model_file, tmp_path):
    assert main(["export", "evaluator", "python", "-o", str(tmp_path / "cost_model.py")]) == 0
    program = "import sys, cost_model as c; print(c.CostModel.read(sys.argv[1]).answer('all_reduce', 4, 8, 2**20)[0])"
    line = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {program}", str(model_file)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert float(done.stdout) > 0


@pytest.mark.parametrize(("language", "begin"), [("javascript", "// Evaluate"), ("c", "/* Evaluate")])
def test_the_evaluators_are_written(language, begin, tmp_path):
    path = tmp_path / "evaluator"
    assert main(["export", "evaluator", language, "-o", str(path)]) == 0
    assert path.read_text().startswith(begin)


def test_a_page_is_a_html_file(tmp_path, capsys):
    assert main(["export", "page", "-o", str(tmp_path / "page.txt")]) == 2
    assert "ends with .html" in capsys.readouterr().err
