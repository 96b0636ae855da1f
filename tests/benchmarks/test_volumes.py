"""Volumes of attacks: trials that go wrong are named by their number, and the others go on."""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

import commsim as cs
from benchmarks.volumes import answer_checks, corpus, datagrams, http_requests, lines, metamorphic, readers
from benchmarks.volumes.questions import Question, drawn_question
from benchmarks.volumes.relations import RELATIONS
from benchmarks.volumes.tallies import Tally
from benchmarks.volumes.trials import in_processes
from benchmarks.volumes.verb_relations import compared, drawn_template, written
from commsim.cli import commands_of, listed_verbs
from commsim.core.compiling import beside
from commsim.core.compiling.beside import COMMAND


def spin(_number):
    while True:
        time.process_time()


def raised(_number):
    raise ValueError("planted")


WRONG = {3: lambda _: "planted", 5: spin, 6: lambda _: os._exit(9), 9: raised}


def test_defects_hangs_and_crashes_are_found_by_number_and_the_rest_is_tried():
    found = list(in_processes("planted", range(12), lambda n: WRONG.get(n, lambda _: "")(n), 2, batch=4, limit_s=0.3))
    by_number = {one.number: one.problem for one in found}
    assert sorted(by_number) == [3, 5, 6, 9]
    assert by_number[3] == "planted"
    assert "no end within" in by_number[5]
    assert "ended with status 9" in by_number[6]


def test_a_trial_is_made_by_its_seed_and_number(monkeypatch):
    monkeypatch.setattr(corpus, "files", lambda: ("inputs/two.json",))  # making the files of all lines takes long
    assert lines.text_of(7, 1234) == lines.text_of(7, 1234)
    assert len({lines.text_of(7, number) for number in range(50)}) > 45
    assert http_requests.drawn(7, 5) == http_requests.drawn(7, 5) != http_requests.drawn(8, 5)


def test_some_damaged_files_are_refused_or_read(tmp_path):
    assert len(readers.right_files()) >= 28
    assert [problem for number in range(300) if (problem := readers.trial(1, number, tmp_path))] == []


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("area", ["requests", "packets"])
def test_a_signal_ends_the_processes_of_attacks(area):
    command = [sys.executable, "-m", "benchmarks.volumes", f"--{area}", "100000000"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL) as attack:
        listed = Path(f"/proc/{attack.pid}/task/{attack.pid}/children")
        while not (children := listed.read_text().split()):
            assert attack.poll() is None
            time.sleep(0.02)
        attack.terminate()
        assert attack.wait(60) == 128 + signal.SIGTERM
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.fixture
def ended_by_sigterm():
    """SIGTERM ends as it does ``python -m benchmarks.volumes``."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ended_by_sigterm")
def test_a_signal_while_the_service_is_started_leaves_none(monkeypatch):
    started = []

    class Signalled(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    with pytest.raises(SystemExit):
        list(http_requests.attack(1, range(1)))
    left = started[0].poll() is None
    started[0].kill()
    assert not left


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.usefixtures("ended_by_sigterm")
def test_a_signal_while_a_process_of_trials_is_forked_leaves_none(monkeypatch):
    fork, forked = os.fork, []

    def signalled():
        if child := fork():
            forked.append(child)
            os.kill(os.getpid(), signal.SIGTERM)
        return child

    monkeypatch.setattr(os, "fork", signalled)
    with pytest.raises(SystemExit):
        list(in_processes("planted", range(1), spin))
    left = Path(f"/proc/{forked[0]}").exists()  # neither running nor waited for
    if left:
        os.kill(forked[0], signal.SIGKILL)
        os.waitpid(forked[0], 0)
    assert not left


def test_sums_stay_right_among_forged_packets():
    assert [datagrams.trial(1, number) for number in range(4)] == [""] * 4


@pytest.mark.parametrize("name", ["_right", "_with_forged"])
def test_a_wrong_sum_would_be_seen(monkeypatch, name):
    """Frames with another value than the one that is summed: the check is no tautology."""
    made = getattr(datagrams, name)

    def changed(*args):
        words, arrived = made(*args)
        if name == "_right":
            words[:, datagrams.LEAD_WORDS] ^= 1
        else:
            arrived["source"] = datagrams.address_key("127.0.0.1", 9000)
        return words, arrived

    monkeypatch.setattr(datagrams, name, changed)
    assert datagrams.trial(1, 1) != ""


def test_every_command_is_drawn():
    commands = {name for verb in listed_verbs() for name in commands_of(verb)}
    assert commands - set(corpus.pool()) == set()


@pytest.mark.parametrize(
    ("code", "out", "err", "wrong"),
    [
        (2, "", "commsim run: error: no", ""),
        (2, "", "commsim switch simulate: error: no", ""),
        (2, "", "no", "lines in place of one"),
        (2, "", "commsim run: error: no\ncommsim run: error: no", "2 lines"),
        (2, "a table", "commsim run: error: no", "prints 'a table'"),
        (2, "", f"commsim run: error: unknown {'x' * 500}", "quotes 500"),
        (3, "", "commsim run: error: no", "exit 3"),
        (1, "", "Traceback (most recent call last):", "exit 1"),
        (0, "a table", "", ""),
    ],
)
def test_how_a_command_ends_is_checked(code, out, err, wrong):
    found = answer_checks.wrong_end(code, out, err)
    assert wrong in found if wrong else not found


TABLE = "collective  size(B)  time(us)  algbw(GB/s)\n      ring     1024     12.35        1.000\n"
ROW = {"size_B": 1024, "time_s": 12.345e-6}


@pytest.mark.parametrize(
    ("code", "is_left"),
    [
        ("import time; time.sleep(60)", True),
        (COMMAND.format(path=["x"], module=beside.__name__, name="compile_needed"), False),
    ],
)
def test_a_process_that_compiles_beside_is_none_that_is_left(code, is_left):
    with subprocess.Popen([sys.executable, "-c", "input()", code], stdin=subprocess.PIPE) as process:
        while not answer_checks._command(str(process.pid)):
            pass
        assert (str(process.pid) in answer_checks.children()) == is_left
        process.kill()


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ({"results": [ROW]}, ""),
        ({"results": [ROW | {"time_s": 12.4e-6}]}, "prints 12.35 us"),
        ({"results": [ROW | {"time_s": 12.345e-6, "bound_s": 13e-6}]}, "below bound_s"),
        ({"results": [ROW | {"busbw_Bps": -1.0}]}, "busbw_Bps is -1.0"),
        ({"results": [ROW | {"algbw_Bps": float("nan")}]}, "algbw_Bps is NaN"),
    ],
)
def test_numbers_of_an_answer_are_checked(answer, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(answer_checks.ANSWER).write_text(json.dumps(answer))
    monkeypatch.setattr(answer_checks, "_schema", lambda _: None)
    found = answer_checks.wrong_numbers([], TABLE) or answer_checks.wrong_json("run", TABLE)
    assert wrong in found if wrong else not found


@pytest.mark.parametrize(
    ("second", "wrong"), [(20.0e-6, ""), (20.1e-6, "prints 20.00 us where its JSON has 2.01e-05 s")]
)
def test_times_of_several_tables_are_those_of_the_json(second, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(answer_checks.ANSWER).write_text(json.dumps({"results": [ROW, ROW | {"time_s": second}]}))
    monkeypatch.setattr(answer_checks, "_schema", lambda _: None)
    wider = "size(B)  count  time(us)\n1024  256     20.00\n"
    assert answer_checks.wrong_json("run", f"{TABLE}# tree\n{wider}# done\n") == wrong


def test_files_and_processes_that_are_left_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before, running = answer_checks.files_here(), answer_checks.children()  # of tests that ran before, too
    Path("a.json").write_text("")
    assert not answer_checks.leftovers(before, ["run", "--json", "a.json"], running)
    assert "a.json" in answer_checks.leftovers(before, ["run"], running)
    Path("a.json").unlink()
    with subprocess.Popen(["sleep", "60"]) as left:
        found = answer_checks.leftovers(before, ["run"], running)
        left.kill()
    assert str(left.pid) in found


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_what_forks_the_workers_of_a_sweep_is_not_left():
    forkserver.ensure_running()
    all_of_them = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()
    assert any("forkserver" in answer_checks._command(one) for one in all_of_them)
    assert not any("forkserver" in answer_checks._command(one) for one in answer_checks.children())


RING = Question("ring_all_reduce", "star:n_hosts=6", 100, 1000, 200, 2 * 16 * 840, 4, "flow", 7)


@pytest.mark.parametrize("name", list(RELATIONS))
def test_relations_hold_of_a_ring(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not RELATIONS[name](RING)


def test_a_wrong_number_breaks_relations(tmp_path, monkeypatch):
    """A constant that belongs to small sizes: the checks are no tautologies."""
    monkeypatch.chdir(tmp_path)
    right = cs.predict

    def wrong(collective, network, size, **options):
        found = right(collective, network, size, **options)
        late = 1e-7 * (len(str(network)) + len(str(size)) + len(options))
        return type("Wrong", (), {"time": found.time + late, "n_ranks": found.n_ranks, "timeline": found.timeline,
                                  "bytes_on_wire": found.bytes_on_wire})()  # fmt: skip

    monkeypatch.setattr(cs, "predict", wrong)
    broken = {name for name in RELATIONS if RELATIONS[name](RING)}
    assert broken >= {"size_and_rate", "times", "renamed", "units", "doors", "in_a_file", "many_sizes", "one_group",
                      "job_alone", "jobs_apart", "nothing", "methods", "ranked", "timeline", "renumbered"}  # fmt: skip


def test_questions_are_drawn_and_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").symlink_to(corpus.ANSWERS / "inputs")
    monkeypatch.setattr(metamorphic, "folder", contextlib.nullcontext)  # making the files of all lines takes long
    assert drawn_question(random.Random(3)) == drawn_question(random.Random(3))
    counted = metamorphic.tally()
    assert [metamorphic.trial(1, number, counted) for number in range(6)] == [""] * 6
    assert sum(int(cell) for row in counted.rows() for cell in row[1:]) == 6
    assert Tally(["a", "b"], ["x"]).rows() == []


def test_a_template_is_written_in_two_units():
    text = "workload reshard --size {S1000000} --bandwidth {R100} --latency {T2} --forward {M3}"
    assert " ".join(written(text)) == "workload reshard --size 1000000B --bandwidth 100Gbps --latency 2us --forward 3ms"
    other = "workload reshard --size 2000kB --bandwidth 25GB/s --latency 4000ns --forward 6000us"
    assert " ".join(written(text, 2, 2, 2, other=True)) == other
    assert drawn_template(random.Random(5)) == drawn_template(random.Random(5))
    assert compared({"a_s": 2.0, "n": 3}, {"a_s": 1.0, "n": 4}, 1e-9, 2.0) == ""
    assert "a_s" in compared({"a_s": 2.1}, {"a_s": 1.0}, 1e-9, 2.0)
