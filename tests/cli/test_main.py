import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

import commsim as cs
from commsim.cli import FIRST, GROUPS, listed_verbs, main, parser_of


def test_help_lists_every_verb_without_importing_what_is_slow():
    program = (
        "import sys; sys.argv = ['commsim', '--help']\n"
        "from commsim.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'numpy', 'numba', 'torch', 'mpi4py', 'scipy', 'scapy', 'rich'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for verb in FIRST:
        assert f"  {verb} " in done.stdout


def test_verbs_are_listed_under_the_question_that_they_answer_in_80_columns(commsim, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert {verb for group in GROUPS.values() for verb in group} >= set(FIRST)
    first = commsim("--help").out.splitlines()
    assert [verb for verb in listed_verbs() if any(line.startswith(f"  {verb} ") for line in first)] == [
        verb for verb in listed_verbs() if verb in FIRST
    ]
    assert max(map(len, first)) <= 80
    lines = commsim("help", "all").out.splitlines()
    assert all(any(line.startswith(f"  {verb} ") for line in lines) for verb in listed_verbs())
    assert [line for line in lines if line in {f"{title}:" for title in GROUPS}] == [f"{title}:" for title in GROUPS]
    assert "of installed packages:" not in lines, "every verb of ours has a subject"
    assert lines.index("predict:") < lines.index("compare with reality:") < lines.index("this machine:")
    assert max(map(len, lines)) <= 80


def every_verb():
    for verb in listed_verbs():
        parser, _ = parser_of(verb)
        more = [a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        yield from [[verb, name] for names in more for name in names] or [[verb]]


@pytest.mark.parametrize("words", list(every_verb()), ids=" ".join)
def test_every_verb_prints_its_help(commsim, words):
    done = commsim(*words, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: commsim {' '.join(words)}")


@pytest.mark.parametrize(
    "words",
    [
        "workload pipeline --stages 4 --stages 5",
        "run --topology star -b 1M --minbytes=2M",
        "topo show star -J a --json b",
        "advise --topology star --size 1MiB --size 2MiB",
    ],
)
def test_a_flag_that_is_given_twice_is_refused(commsim, words):
    assert "given twice" in commsim.refuses(*words.split())


def test_flags_that_repeat_are_given_as_often_as_one_likes(commsim):
    twice = ["--collective", "ring_all_reduce", "--collective", "binomial_tree_all_reduce"]
    rows = commsim.results("run", "--overhead", "0us", *twice, "--topology", "star:n_hosts=4", "-b", "1M", "-e", "1M")[
        "results"
    ]
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("advise --topology star:n_hosts=8 --size 1MiB --ranks 4", "n_workers"),
        ("switch budget --ranks 4", "workers"),
        ("workload reshard --size 1GiB --receivers 4 --topology star:n_hosts=8", "network"),
    ],
)
def test_ranks_and_topology_have_one_name_in_all_verbs(commsim, words, flag):
    new, old = words.split(), words.replace("--ranks", "--workers").split()
    old = [word if words.split()[0] != "workload" else word.replace("--topology", "--network") for word in old]
    assert commsim.results(*new)["results"] == commsim.results(*old)["results"]


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["run", "--help"], {"numba"}),
        (
            ["run", "--topology", "fat_tree:k=4", "--collective", "ring_all_reduce"],
            {"commsim.core.files.store", "commsim.core.checking.check", "collectives.dense.torus", "topologies.torus",
             "commsim.pages.cli.report", "rich", "scipy.optimize", "tomllib"},
        ),
    ],
)  # fmt: skip
def test_a_command_imports_only_what_it_needs(words, absent):
    program = (
        "import sys\nfrom commsim.cli import main\n"
        f"try: assert main({words}) == 0\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        f"assert not {absent} & set(sys.modules), {absent} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.parametrize("argv", [["fly"], ["--fly"], ["run", "--fly"], ["topo", "fly"], ["topo"]])
def test_an_unknown_word_is_one_line_and_exit_code_2(commsim, argv):
    commsim.refuses(*argv)


@pytest.mark.parametrize("flag", ["--ranks", "--seed", "-b", "--topology"])
def test_a_flag_whose_value_is_two_dashes_is_refused(commsim, flag):
    assert f"argument {flag}: expected a value" in commsim.refuses("run", "ring_all_reduce", f"{flag}=--")


def test_a_number_of_machines_is_that_of_the_network(commsim):
    """A machine alone has a switch that limits none; a fabric keeps its other parameters."""
    question = ("run", "nccl", "-b", "1M", "-e", "1M", "--topology")
    for machine, network in (
        ("dgx-h100", "dgx-h100@star:machines=2"),
        ("dgx-h100:gpus=4", "dgx-h100:gpus=4@star:machines=2"),
        ("dgx-h100@leaf_spine:n_leaves=2", "dgx-h100@leaf_spine:n_leaves=2,machines=2"),
        ("dgx-h100@star", "dgx-h100@star:machines=2"),
    ):
        assert commsim(*question, machine, "--machines", "2").out == commsim(*question, network).out
    assert commsim("topo", "show", "dgx-h100", "--machines", "1").out == commsim("topo", "show", "dgx-h100").out
    assert "machines is given twice" in commsim.refuses(*question, "dgx-h100@star:machines=2", "--machines", "4")
    assert "machines must be a whole number" in commsim.refuses(*question, "dgx-h100", "--machines", "x")
    assert "--machines N is the number of machines" in commsim.refuses(*question, "dgx-h100", "--nodes", "2")
    assert "give both" in commsim.refuses("nccl", "--machines", "4")


@pytest.mark.parametrize(
    "words", [("run", "--topology", "star:n_hosts=4"), ("traffic", "--topology", "star:n_hosts=4")]
)
def test_several_seeds_lead_to_the_repeats_of_a_sweep(commsim, words):
    assert "`repeats` in the file of `commsim sweep run` has several" in commsim.refuses(*words, "--seed", "0,1,2")
    assert "repeats" not in commsim.refuses(*words, "--seed", "one")


def test_the_version_is_printed(commsim):
    assert commsim("--version").out.startswith("commsim ")
    assert commsim.code == 0


@pytest.mark.parametrize("command", ["switch budget", "topo list", "run --topology star:n_hosts=4 -b 1M -e 1M"])
def test_standard_output_may_be_closed_or_full(command):
    def run(redirected):
        line = f"{sys.executable} -m commsim {command} {redirected}"
        return subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True, check=False)

    closed, full = run(">&-"), run(">/dev/full")
    assert (closed.returncode, closed.stderr) == (0, "")
    assert full.returncode == 2
    assert full.stderr.splitlines() == [f"commsim {command.split()[0]}: error: [Errno 28] No space left on device"]


def test_a_reader_that_leaves_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m commsim schedule show ring_all_reduce --ranks 4 | head -1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize(("word", "meant"), [("rum", "run"), ("sweeps", "sweep"), ("calibrte", "calibrate")])
def test_a_verb_that_is_misspelt_is_guessed(commsim, word, meant):
    assert f"did you mean {meant}?" in commsim.refuses(word)


def test_names_keep_their_capitals_in_descriptions(commsim):
    assert "NCCL chooses" in commsim("nccl", "--help").out


@pytest.mark.parametrize("operation", ["alltoall", "all-to-all", "AllToAll"])
def test_an_operation_may_be_spelt_as_mpi_and_nccl_tests_do(commsim, operation):
    rank = ("run", "nccl", "--topology", "dgx-h100", "-b", "1M", "-e", "1M", "--operation")
    assert commsim(*rank, operation).out == commsim(*rank, "all_to_all").out
    asked = cs.scenario_of("nccl", "dgx-h100", operation=operation)
    assert cs.solve(asked, ["1MiB"]).results[0].operation == "all_to_all"
    assert "did you mean all_to_all?" in commsim.refuses(*rank, "alltoal")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "ring_all_reduce", "--topology", "star:n_hosts=4", "-b", "1M", "-e", "1M"],
        ["cluster", "run", "examples/cluster.toml", "--trace", "poisson:jobs=4,load=0.5,seed=1", "--policy", "fifo"],
        ["place", "examples/cluster.toml", "examples/jobs.json", "--candidates", "1"],
    ],
)
def test_json_without_a_file_is_written_to_standard_output(words, capsys, monkeypatch):
    """`place --json` printed it, and all other verbs wanted a file."""
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main([*words, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*words, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == first.keys()


@pytest.mark.parametrize(("name", "why"), [("/proc/self/mem", "No such file"), ("x" * 250, "File name too long")])
@pytest.mark.parametrize("flag", ["--csv", "--json"])
def test_an_answer_that_cannot_be_written_is_refused_before_it_is_printed(commsim, name, why, flag):
    assert f"cannot write: {why}" in commsim.refuses("topo", "check", "star:n_hosts=4", flag, name)
    assert not commsim.out
