import pytest

from commsim.sweep import Progress
from commsim.sweep.progress import Lines, line

pytestmark = pytest.mark.nojit


def test_the_time_left_is_that_of_the_points_that_were_not_there_before():
    assert line(Progress(100, 40, 60), 10.0) == "60 of 100 points, 40 of them from before, about 20 s left"
    assert line(Progress(100, 0, 100, 3), 10.0) == "100 of 100 points, 3 failed"
    assert line(Progress(100), 1.0) == "0 of 100 points"


def test_a_line_is_printed_now_and_then_and_at_the_end(capsys):
    now = [0.0]
    say = Lines(lambda: now[0])
    for done in range(1, 101):
        now[0] += 1.0
        say(Progress(100, 0, done))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0] == "commsim sweep: 10 of 100 points, about 90 s left"
    assert lines[-1] == "commsim sweep: 100 of 100 points"
