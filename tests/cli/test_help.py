"""Help: flags by group, rare ones on request; old names of verbs; and the examples of each verb, which are run."""

import argparse
import re
import shutil

import pytest
from help_examples import OF_A_SHELL, ROOT, in_process, in_shell, verbs

from commsim.cli import listed_verbs, parser_of
from commsim.cli.parsing.aliases import HIDDEN, RENAMED, in_new_words
from commsim.cli.parsing.examples import examples_of

FEWEST = 5


def test_every_verb_has_five_examples_and_each_of_its_verbs_one():
    assert {verb for verb in ("", *listed_verbs()) if len(examples_of(f"commsim {verb}")) < FEWEST} == set()
    for verb in listed_verbs():
        for name in inner(verb):
            assert examples_of(f"commsim {verb} {name}"), f"{verb} {name}"


def inner(verb):
    """Names of the verbs of a verb."""
    actions = parser_of(verb)[0]._actions
    return [name for one in actions if isinstance(one, argparse._SubParsersAction) for name in one.choices]


def run_examples(verb, folder):
    (folder / "examples").symlink_to(ROOT / "examples")
    for line in examples_of(f"commsim {verb}".strip()):
        is_one_command = line.startswith("commsim ") and not OF_A_SHELL.search(line)
        (in_process if is_one_command and verb not in OF_PROCESSES else in_shell)(line, folder)


# Examples that one process can run are all run by `test_warmup.py`; those of workload load PyTorch again and again.
LONG = ("workload",)
# Verbs that start processes or threads, or that change the state of their own process.
OF_PROCESSES = ("emulate", "sweep", "place", "doctor")


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize("verb", [pytest.param(v, marks=pytest.mark.deep) if v in LONG else v for v in verbs()])
def test_the_examples_of_a_verb_run_one_after_the_other(verb, tmp_path):
    if verb in ("workload", "emulate", "doctor"):
        pytest.importorskip("torch" if verb == "workload" else "mpi4py")
    run_examples(verb, tmp_path)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["calibrate", "validate"])
def test_the_examples_under_a_launcher_run(verb, tmp_path):
    if not {shutil.which("mpirun"), shutil.which("torchrun")}.isdisjoint({None}):
        pytest.skip("no mpirun or no torchrun")
    run_examples(verb, tmp_path)


def test_every_example_is_of_flags_that_there_are():
    """Those that are too long to run here, too."""
    for verb in listed_verbs():
        for line in examples_of(f"commsim {verb}"):
            for words in re.findall(r"commsim ([^&;>]+)", line):
                name, *rest = words.replace("'", "").split()
                parser = parser_of(name)[0]
                known = {flag for one in inner_parser(parser, rest)._actions for flag in one.option_strings}
                before_program = rest[: rest.index("--")] if "--" in rest else rest
                given = {word for word in before_program if re.match(r"--?[a-z]", word)}
                assert given <= known, f"{line}: {given - known}"


def inner_parser(parser, words):
    """Return the parser of the verb of a verb that is named, or that is meant where none is."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices[
                next((word for word in words[:1] if word in action.choices), next(iter(action.choices)))
            ]
    return parser


def test_rare_flags_are_shown_on_request_or_with_their_engine(commsim):
    some, every = (
        commsim("run", "--overhead", "0us", "--help").out,
        commsim("run", "--overhead", "0us", "--help", "all").out,
    )
    packets = commsim("run", "--overhead", "0us", "--engine", "packet", "--help").out
    assert "--fail" in some
    assert "--fail" in every
    assert [flag in some for flag in ("--osu", "--class-weights")] == [False, False]
    assert [flag in packets for flag in ("--osu", "--class-weights")] == [False, True]
    assert [flag in every for flag in ("--osu", "--class-weights")] == [True, True]
    said = re.search(r"^(\d+) more flags: commsim run --help all$", some, re.MULTILINE)
    assert said is not None
    assert int(said[1]) == len(flags_in(every)) - len(flags_in(some))
    assert "more flags" not in every


def flags_in(text):
    """Flags that a help explains, by their long names."""
    return set(re.findall(r"^  (?:-\w+ [^-]*, )*(--[a-z-]+)|^  -\w+ .*?(--[a-z-]+)", text, re.MULTILINE))


def test_all_flags_of_a_verb_with_few_are_shown(commsim):
    assert "more flags" not in commsim("advise", "--help").out
    assert "--recv-overhead" in commsim("workload", "run", "--help").out


@pytest.mark.parametrize(
    ("asked", "same"), [("help", "--help"), ("help run", "run --help"), ("help topo show", "topo show -h")]
)
def test_help_is_a_verb_too(commsim, asked, same):
    assert commsim(*asked.split()).out == commsim(*same.split()).out
    assert commsim.code == 0


def test_the_first_usage_has_the_verb_help(commsim):
    assert "usage: commsim [-h] [--version] VERB ...\n       commsim help [VERB | all]\n" in commsim("--help").out


def test_help_of_what_is_no_verb_is_refused(commsim):
    assert "did you mean run?" in commsim.refuses("help", "rum")


def test_help_has_its_examples_at_the_end_in_lines_that_a_shell_takes(commsim, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = commsim("help", "run").out
    assert max(map(len, text.splitlines())) <= 80
    shown = text.split("examples:\n")[1].replace("\\\n", " ")
    assert [" ".join(line.split()) for line in shown.splitlines() if line.strip()] == examples_of("commsim run")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("explain --topology star", "nccl --topology star"),
        ("calls a.json", "workload calls a.json"),
        ("profile torch.nn:PReLU --input 8", "workload profile torch.nn:PReLU --input 8"),
        ("presets list", "topo presets"),
        ("presets show dgx-h100 --json -", "topo presets dgx-h100 --json -"),
        ("advise --sweep s.toml --jobs 2", "sweep cheapest s.toml --jobs 2"),
        ("advise --sweep=s.toml -o d", "sweep cheapest s.toml -o d"),
        ("report a.json b.json --json c.json", "diff a.json b.json --json c.json"),
    ],
)
def test_an_old_name_is_told_once_and_understood(old, new):
    renamed = in_new_words(old.split())
    assert " ".join(renamed.words) == new
    assert "is now" in renamed.note
    assert in_new_words(renamed.words) == (new.split(), "")


def test_names_of_today_are_left_alone():
    for line in ("report a.json", "report a.json -o b.html", "advise --topology star", "run ring_all_reduce", ""):
        assert in_new_words(line.split()) == (line.split(), "")


def test_old_names_are_not_listed_and_answer_with_a_note_on_standard_error(commsim):
    assert not {words[0] for words in RENAMED} & set(listed_verbs())
    assert not set(HIDDEN) & set(listed_verbs())
    done = commsim("presets", "list")
    assert (done.code, len(done.err.splitlines())) == (0, 1)
    assert "`commsim presets list` is now `commsim topo presets`" in done.err
    printed = done.out
    assert commsim("topo", "presets").out == printed
    assert commsim("convert", "star:n_hosts=4", commsim.folder / "n.toml").code == 0
    assert "convert is now" in commsim.err
