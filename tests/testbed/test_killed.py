"""Processes that are killed at random moments, and testbeds that are taken away all the same."""

import pytest

from benchmarks.kill_testbed import VERBS, kill_in_turn, main

pytestmark = pytest.mark.needs_kernel("testbed")


def test_nothing_is_left_of_testbeds_whose_process_is_killed():
    about = {"up": 1.2, "run": 4.0, "down": 0.6}
    kills, durations = kill_in_turn(4, 1, "star:n_hosts=3,bandwidth=200Mbps,latency=0s", about)
    assert durations == about
    assert [kill.verb for kill in kills] == [*VERBS, "up"]
    assert all(0 <= kill.moment <= durations[kill.verb] for kill in kills)
    assert [kill.left for kill in kills] == [()] * 4
    assert kills[2].begun  # what is to be taken down was there


def test_without_root_there_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    assert main(["--times", "1"]) == 2
    assert capsys.readouterr().err.strip() == ("benchmarks.kill_testbed: error: a testbed needs Linux and root: "
                                               "it makes network namespaces")  # fmt: skip
