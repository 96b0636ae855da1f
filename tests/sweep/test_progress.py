from commsim.core.limits import duration
from commsim.sweep.progress import ProgressLines, line
from commsim.sweep.run_sweep import Progress


def test_a_line_says_what_is_known():
    assert line(Progress(100, 40, 60), 20.0) == "60 of 100 points, 40 of them from before, about 20 s left"
    assert line(Progress(100, 0, 100, 3), 0.0) == "100 of 100 points, 3 failed"
    assert line(Progress(100), 0.0) == "0 of 100 points"


def test_a_line_is_printed_now_and_then_and_at_the_end(capsys):
    now = [0.0]
    say = ProgressLines(lambda: now[0])
    now[0] = 50.0  # workers start
    for done in range(41, 101):
        say(Progress(100, 40, done))
        now[0] += 1.0
    lines = [text.removeprefix("commsim sweep: ") for text in capsys.readouterr().err.splitlines()]
    assert len(lines) == 7
    assert lines[0] == "41 of 100 points, 40 of them from before"  # how fast it goes is not known yet
    assert lines[1] == "51 of 100 points, 40 of them from before, about 49 s left"
    assert lines[-1] == "100 of 100 points, 40 of them from before"


def test_times_are_said_as_people_say_them():
    assert [duration(s) for s in (0.5659, 2.591, 87.4, 1267.0, 1.862e5)] == [
        "570 ms", "2.6 s", "87 s", "21.1 min", "2.16 days",
    ]  # fmt: skip


def test_the_time_left_is_of_processors_and_the_share_of_a_core_is_said(capsys):
    now = [0.0]
    say = ProgressLines(lambda: now[0])
    for done in (1, 11):
        say(Progress(101, 0, done, share=0.5))
        now[0] += 20.0
    assert "about 90 s left, with 50% of a core beside other work" in capsys.readouterr().err.splitlines()[-1]
