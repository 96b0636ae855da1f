"""Every option of a verb with values that nobody means: one line and exit code 2, or an answer; never a traceback."""

import argparse
import json
import random
from pathlib import Path

import pytest
from fuzzing import NASTY, SEED, TIMES, attempt

from commsim.cli import main, parser_of

# Right and quick; an option is put behind, where it takes the place of one that stands there already.
BASES = """
run ring_all_reduce --topology star:n_hosts=4 -b 4K
run ring_all_reduce --topology star:n_hosts=4 -b 4K --engine packet
nccl --topology dgx-h100 --size 1MiB
advise --topology star:n_hosts=4 --size 4KiB
trace --topology star:n_hosts=4 ring_all_reduce -b 4K -o t.json
topo show star:n_hosts=4
topo check star:n_hosts=4
schedule show ring_all_reduce --ranks 4
schedule check ring_all_reduce --ranks 4
switch simulate --workers 2 --size 4KiB
switch budget --workers 2
workload run --topology star:n_hosts=4 --workers 4 --trace INPUTS/gradients.csv
workload share INPUTS/share_cluster.toml INPUTS/placed.json --iterations 2
workload pipeline --stages 2 --micro-batches 2 --forward 1ms --backward 1ms
traffic --topology star:n_hosts=4 --pattern permutation --size 4KiB
place rank INPUTS/cluster.toml INPUTS/jobs.json --candidates 2
place score --capacity 50Gbps INPUTS/three.json
sweep plan INPUTS/sweep.toml --jobs 1
expect dgx-h100 --operation all_reduce --size 1M
watch INPUTS/inspector.log --topology hgx-h100
diff INPUTS/imb.txt INPUTS/imb.txt
switch prove --workers 2 --chunks 2
export cost-model star:n_hosts=2 --operation all_reduce --points 9 -e 1K --jobs 1 -o m.json
""".strip().splitlines()
INPUTS = str(Path(__file__).parents[1] / "answers" / "inputs")
SLOW = {"--report", "--draw", "--plot"}  # pictures; other tests try what they refuse


def options_of(base):
    """Return the option strings of a base's verb, and whether each takes a value."""
    words = base.split()
    parser = parser_of(words[0])[0]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and words[1] in action.choices:
            parser = action.choices[words[1]]
    return [
        (name, action.nargs != 0)
        for action in parser._actions
        for name in action.option_strings
        if name not in ("-h", "--help") and name not in SLOW
    ]


@pytest.mark.parametrize("base", BASES)
def test_nasty_values_end_in_one_line_or_in_an_answer(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, options, wrong = random.Random(f"{SEED} {base}"), options_of(base), []
    for _ in range(4 * TIMES):
        name, takes_value = rng.choice(options)
        value = rng.choice(NASTY)
        more = [name] if not takes_value else [f"{name}={value}"] if rng.random() < 0.5 else [name, value]
        wrong.append(attempt([*base.replace("INPUTS", INPUTS).split(), *more]))
    assert not any(wrong), "\n".join(line[:400] for line in wrong if line)


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_what_options_are_put_behind_is_right(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(base.replace("INPUTS", INPUTS).split()) in (0, None)


@pytest.mark.parametrize("flags", ["--pause 1e30GiB", "--ecn 1e30GiB"])
def test_a_threshold_that_is_never_reached_changes_nothing(flags, capsys):
    """`--pause 1e30GiB` was a number of its own when it was cast to int64."""
    run = "run ring_all_reduce --topology star:n_hosts=4 -b 64K -e 64K --engine packet --json - "
    answers = []
    for more in ("", flags):
        assert not attempt([*run.split(), *more.split()])
        assert main([*run.split(), *more.split()]) in (0, None)
        answers.append(json.loads(capsys.readouterr().out)["results"][0]["time_s"])
    assert answers[0] == answers[1]


def test_a_jitter_that_leaves_no_compute_time_is_refused(capsys):
    """2147483648 divided by zero."""
    run = f"workload run --topology star:n_hosts=4 --workers 4 --trace {INPUTS}/gradients.csv --jitter 2147483648"
    assert main(run.split()) == 2
    assert "jitter 0 to 10, got 4, 100, 2147483648" in capsys.readouterr().err


def test_a_range_without_a_finite_ratio_is_refused(tmp_path, capsys):
    """From 1e-320B to 1MiB in logarithmic steps was infinite bytes in between."""
    text = (Path(INPUTS) / "sweep.toml").read_text()
    lines = ["size = { from = '1e-320B', to = '1MiB', scale = 'log', steps = 3 }" if line.startswith("size =") else line
             for line in text.splitlines()]  # fmt: skip
    (tmp_path / "s.toml").write_text("\n".join(lines))
    assert main(["sweep", "plan", str(tmp_path / "s.toml")]) == 2
    assert "must have a range with from positive and below to" in capsys.readouterr().err


@pytest.mark.parametrize(
    "base", [base for base in BASES if base.startswith(("traffic", "run", "place rank", "switch sim"))]
)
def test_every_verb_refuses_a_negative_seed(base, capsys):
    """`traffic --seed -1` ended in a traceback."""
    assert main([*base.replace("INPUTS", INPUTS).split(), "--seed", "-1"]) == 2
    assert "--seed must be 0 or more, got -1" in capsys.readouterr().err


def test_more_levels_than_jobs_are_as_many_as_jobs(capsys):
    """`--crux 2147483648` took one step of a plan for every level."""
    rank = f"place rank {INPUTS}/cluster.toml {INPUTS}/jobs.json --candidates 2 --json - --crux"
    answers = []
    for n_levels in ("100", "2147483648"):
        assert not attempt([*rank.split(), n_levels])
        assert main([*rank.split(), n_levels]) in (0, None)
        answers.append(json.loads(capsys.readouterr().out)["candidates"])
    assert answers[0] == answers[1]


def test_pipelines_without_number_are_refused(capsys):
    """2147483648 pipelines were written down rank by rank."""
    words = "workload pipeline --stages 2 --micro-batches 2 --forward 1ms --backward 1ms --data-parallel 2147483648"
    assert main(words.split()) == 2
    assert "data parallel must be at most 1048576, got 2147483648" in capsys.readouterr().err
