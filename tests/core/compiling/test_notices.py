"""What is said of the compiler, and when."""

import gc

import pytest

from commsim.core.compiling import notices

pytestmark = pytest.mark.nojit


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    monkeypatch.setattr(notices, "_told", set())
    monkeypatch.setattr(notices, "_open", set())
    monkeypatch.setattr(notices, "_timer", None)
    for name in notices.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def compiled(until_told=False):
    """Compile one kernel inside another, until the timer has fired where that is asked; return the timer."""
    notices.begin_compiling("outer", "once")
    notices.begin_compiling("inner", "once")
    notices.end_compiling("inner")
    timer = notices._timer
    if until_told and timer:
        timer.join()
    notices.end_compiling("outer")
    return timer


def test_what_is_compiled_quickly_is_not_announced(monkeypatch, capfd):
    monkeypatch.setattr(notices, "LONG", 100.0)
    timer = compiled()
    assert timer.finished.is_set()  # it was cancelled
    assert notices._timer is None
    assert capfd.readouterr().err == ""


def test_what_takes_long_is_announced_once(monkeypatch, capfd):
    monkeypatch.setattr(notices, "LONG", 0.02)
    compiled(until_told=True)
    compiled(until_told=True)
    assert capfd.readouterr().err == "commsim: compiling kernels, once (some 10 to 60 s) ...\n"


def test_of_the_ranks_of_a_launcher_only_the_first_says_it(monkeypatch, capfd):
    monkeypatch.setattr(notices, "LONG", 0.0)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    compiled()
    notices.not_kept("no space")
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setattr(notices, "_told", set())
    compiled()
    assert "compiling kernels" in capfd.readouterr().err


def test_seconds_of_compiling_are_those_of_the_outermost_kernels(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(notices, "monotonic", lambda: now[0])
    monkeypatch.setattr(notices, "_spent", 0.0)
    for at, call, what, total in [
        (1, notices.begin_compiling, "outer", 0), (3, notices.begin_compiling, "inner", 2),
        (4, notices.end_compiling, "inner", 3), (6, notices.end_compiling, "outer", 5),
        (8, notices.end_compiling, "read from the disk", 5), (9, notices.begin_compiling, "next", 5),
    ]:  # fmt: skip
        now[0] = at
        call(what, *["once"][: call is notices.begin_compiling])
        assert notices.compiled_s() == total
    now[0] = 10
    assert notices.compiled_s() == 6
    notices.end_compiling("next")


def test_cycles_are_looked_for_less_often_while_kernels_are_compiled():
    usual = gc.get_threshold()
    for what in ("outer", "inner"):
        notices.begin_compiling(what, "once")
    notices.end_compiling("inner")
    assert gc.get_threshold() == notices.SELDOM != usual
    notices.end_compiling("outer")
    assert gc.get_threshold() == usual
