import signal
import subprocess
import sys
import time

import pytest

from commsim.cli import progress
from commsim.core import limits
from commsim.core.limits import EXPECTED, expect

# No handler of a signal runs while the last line does, as in a kernel; a thread sends the signal meanwhile.
BUSY = """
import hashlib, os, signal, sys, threading, time
from commsim.cli import progress

def send():
    while sys._current_frames()[threading.main_thread().ident].f_lineno != 15:
        pass
    time.sleep(0.05)
    os.kill(os.getpid(), NUMBER)

progress.PATIENCE = 0.05
signal.signal(signal.SIGTERM, lambda *_: None)
progress.end_on_signals()
threading.Thread(target=send, daemon=True).start()
hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2**31 - 1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_what_python_cannot_interrupt(number):
    run = subprocess.run([sys.executable, "-c", BUSY.replace("NUMBER", str(int(number)))], timeout=60, check=False)
    assert run.returncode == 128 + number


def test_a_thread_that_an_interrupted_import_blocks_holds_up_no_end(monkeypatch):
    """Python's lock of a module stays held where Ctrl-C came within its import: ten minutes were waited, and more."""
    monkeypatch.setattr(progress, "BETWEEN", 0.01)
    free = progress.threading.Event()
    monkeypatch.setattr(progress, "_show", lambda _verb, _over: free.wait(60))

    def command():
        with progress.progress_shown("run"):
            pass

    runs = progress.threading.Thread(target=command)
    runs.start()
    runs.join(30)
    ended, _ = not runs.is_alive(), free.set()
    assert ended


def test_long_work_says_what_it_does_and_how_long_it_takes_even_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENT", 0.001)
    told = progress.threading.Event()
    monkeypatch.setattr("commsim.report.terminal.tell", lambda text: (print(text, file=sys.stderr), told.set()))
    with progress.progress_shown("switch"):
        expect(1500.0, "simulating 1e+10 packets", "less")
        assert told.wait(30)
    assert "commsim switch: simulating 1e+10 packets, about 25 min; " in capsys.readouterr().err


def test_work_without_an_estimate_is_no_longer_silent_once_it_has_taken_long(monkeypatch):
    monkeypatch.setattr(progress, "SILENT", 0.001)
    monkeypatch.setattr(progress, "BETWEEN", 0.001)
    monkeypatch.setattr(limits, "scheduled", lambda: (0.0, 0.0))
    monkeypatch.setattr(progress, "process_time", iter([5.0, 14.9, *[15.0] * 10**6]).__next__)
    told = progress.threading.Event()
    texts = []
    monkeypatch.setattr("commsim.report.terminal.tell", lambda text: (texts.append(text), told.set()))
    with progress.progress_shown("place"):
        assert told.wait(30)
    assert texts[0].startswith("commsim place: ")
    assert texts[0].endswith(" so far; Ctrl-C ends it")


def test_progress_keeps_the_clock_of_the_machine_when_a_program_is_given_another(monkeypatch):
    """`commsim emulate` replaces time.monotonic, and was under way for 56.9 years."""
    monkeypatch.setattr(progress, "SILENT", 0.001)
    told, texts = progress.threading.Event(), []
    monkeypatch.setattr("commsim.report.terminal.tell", lambda text: (texts.append(text), told.set()))
    with progress.progress_shown("emulate"):
        monkeypatch.setattr(time, "monotonic", lambda: 1.8e9)
        expect(1500.0, "emulating", "less")
        assert told.wait(30)
    assert texts[0].startswith("commsim emulate: emulating, about 25 min; ")
    assert "year" not in texts[0]


def test_short_work_and_work_with_a_bar_of_its_own_say_nothing(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENT", 0.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.05)  # the first thread has ended before the second begins
    for seconds, is_shown in ((1.0, False), (1500.0, True)):
        with progress.progress_shown("switch"):
            EXPECTED.what, EXPECTED.seconds, EXPECTED.is_shown = "counting", seconds, is_shown
            time.sleep(0.01)
    assert capsys.readouterr().err == ""


def test_a_command_forgets_what_one_before_it_in_the_process_declared():
    EXPECTED.what, EXPECTED.seconds, EXPECTED.part, EXPECTED.is_shown = "counting", 9.0, "ring (1 of 2)", True
    with progress.progress_shown("run"):
        assert type(EXPECTED)() == EXPECTED


def test_a_ranking_says_which_algorithm_it_predicts(monkeypatch):
    from commsim import rank
    from commsim.ranking import contenders

    parts = []
    prepare = contenders.prepare
    monkeypatch.setattr(
        contenders, "prepare", lambda *args, **more: (parts.append(EXPECTED.part), prepare(*args, **more))[1]
    )
    rank("all_gather", "star:n_hosts=4", "1MiB")
    assert parts[0].endswith(f"(1 of {len(parts)})")
    assert "ring_all_gather (" in " ".join(parts)
    assert EXPECTED.part == ""
    assert progress.line("run", 3.0, "", 0.0, parts[0]) == f"commsim run: {parts[0]}; 3 s so far; Ctrl-C ends it"


def test_each_algorithm_of_a_ranking_has_its_own_estimate(monkeypatch):
    """`bound` on a torus of 9,000 hosts said for minutes that it was at the second of 18, and not how long it takes."""
    from commsim import rank
    from commsim.ranking import contenders

    seen, prepare = [], contenders.prepare

    def prepared(spec, *args, **more):
        seen.append((EXPECTED.what, EXPECTED.seconds))
        expect(200.0, f"simulating {spec}", "less")
        return prepare(spec, *args, **more)

    monkeypatch.setattr(contenders, "prepare", prepared)
    rank("all_gather", "star:n_hosts=4", "1MiB")
    assert set(seen) == {("", 0.0)}, "the estimate of the algorithm before"
    assert EXPECTED.what == ""
    assert progress.line("bound", 3.0, "simulating ring", 200.0, "ring (2 of 18)") == (
        "commsim bound: ring (2 of 18), simulating ring, about 3.33 min; 3 s so far; Ctrl-C ends it"
    )


@pytest.mark.parametrize("words", ["bound", "run --algorithm all", "run"])
def test_verbs_with_an_operation_show_each_algorithm_on_a_terminal(monkeypatch, words):
    """`bound` drew a bar that was full after a moment, and said nothing for the minute of predictions that followed."""
    from commsim.cli import main
    from commsim.ranking import contenders

    seen, prepare = [], contenders.prepare
    EXPECTED.clear()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(
        contenders,
        "prepare",
        lambda *args, **more: (seen.append((EXPECTED.is_shown, EXPECTED.part)), prepare(*args, **more))[1],
    )
    assert (
        main([*words.split(), "--topology", "star:n_hosts=4", "--operation", "all_gather", "-b", "1K", "-e", "1K"]) == 0
    )
    assert {is_shown for is_shown, _ in seen} == {False}
    assert seen[-1][1].endswith(f"({len(seen)} of {len(seen)})")


def test_after_a_bar_the_line_of_progress_goes_on(monkeypatch):
    from commsim.report.terminal import progress

    EXPECTED.clear()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert [EXPECTED.is_shown for _ in progress([1, 2], "predict")] == [True, True]
    assert not EXPECTED.is_shown


def test_without_a_terminal_each_part_is_named_for_the_line_of_progress(monkeypatch):
    """`commsim export cost-model` computed for four minutes in a pipe, and said nothing."""
    from commsim.report.terminal import progress

    EXPECTED.clear()
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    said = [(EXPECTED.part, EXPECTED.is_shown) for _ in progress(["a", "b"], "computing curves")]
    assert said == [("computing curves (1 of 2)", False), ("computing curves (2 of 2)", False)]
    assert not EXPECTED.part


def test_a_help_that_comes_late_stands_on_a_line_of_its_own(monkeypatch, capsys):
    """The line of progress stayed in front: `# commsim bound: 2.2 s so far; Ctrl-C ends itusage: ...`."""
    from commsim.cli import main
    from commsim.report.terminal import show_step

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show_step("commsim bound: 2.2 s so far")
    with pytest.raises(SystemExit):
        main(["bound", "--help"])
    out, err = capsys.readouterr()
    assert out.startswith("usage: commsim bound")
    assert err.endswith("\r\033[K")
    assert EXPECTED.is_shown  # and no other line comes while the help is printed


def test_while_kernels_are_compiled_the_line_says_so_and_no_estimate_is_too_short(monkeypatch):
    """An empty cache: `more than the 180 ms estimated` stood there while the packet engine was compiled for minutes."""
    line = progress.line("run", 70.0, "simulating 1e+05 packets", 0.18, "", 66.0, 1.0, True)
    assert line == (
        "commsim run: compiling kernels; then simulating 1e+05 packets, about 180 ms; "
        "70 s so far, 66 s of them compiling; Ctrl-C ends it"
    )
    assert progress.line("run", 7.0, "", 0.0, compiling=True).startswith("commsim run: compiling kernels; 7 s so far")
    assert progress.line("advise", 7.0, "", 0.0, "ring (2 of 9)", compiling=True).startswith(
        "commsim advise: compiling kernels; ring (2 of 9); "
    )
    from commsim.core.compiling import notices

    monkeypatch.setattr(notices, "_open", {"kernel"})
    monkeypatch.setattr(progress, "SILENT", 0.001)
    told, texts = progress.threading.Event(), []
    monkeypatch.setattr("commsim.report.terminal.tell", lambda text: (texts.append(text), told.set()))
    with progress.progress_shown("run"):
        expect(1500.0, "simulating", "less")
        assert told.wait(30)
    assert texts[0].startswith("commsim run: compiling kernels; ")


def test_without_an_estimate_the_line_has_the_time_only():
    assert progress.line("bound", 3.0, "", 0.0) == "commsim bound: 3 s so far; Ctrl-C ends it"


def test_an_estimate_that_has_passed_is_not_repeated_as_what_is_left():
    before, after = (progress.line("run", seconds, "simulating 3e+09 packets", 38.0) for seconds in (20.0, 97.0))
    assert "about 38 s; 20 s so far" in before
    assert "about" not in after
    assert "more than the 38 s estimated; 97 s so far" in after


IGNORED = """
import signal, time
from commsim.cli import process

class Gone:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def command():
    Gone()
    time.sleep(60)

process.main = command
process.run()
"""


def test_an_interruption_that_python_ignores_comes_again():
    """Python has callbacks in every import: what is raised in one is printed, and the command ran on."""
    run = subprocess.run([sys.executable, "-c", IGNORED], timeout=50, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "")


def test_time_of_compiling_is_not_time_of_the_work_that_was_estimated():
    assert progress.line("run", 51.0, "simulating 120000 packets", 5.0, compiled=48.0) == (
        "commsim run: simulating 120000 packets, about 5 s; 51 s so far, 48 s of them compiling; Ctrl-C ends it"
    )
    assert "more than the 5 s estimated" in progress.line("run", 54.0, "simulating 120000 packets", 5.0, compiled=48.0)


def test_an_estimate_is_of_processor_time_and_other_work_is_named():
    alone, beside = (progress.line("run", 12.0, "simulating", 10.0, share=share) for share in (1.0, 0.25))
    assert "more than the 10 s estimated" in alone
    assert "other work" not in alone
    assert "about 10 s" in beside
    assert "12 s so far, with 25% of a core beside other work" in beside


def test_the_share_of_a_core_is_that_of_the_time_that_the_thread_wanted_one(monkeypatch):
    monkeypatch.setattr(limits, "scheduled", lambda: (13.0, 34.0))
    assert progress.share_of_core(10.0, 25.0) == 0.25
    assert progress.share_of_core(13.0, 34.0) == 1.0
