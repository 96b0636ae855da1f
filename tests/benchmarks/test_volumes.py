"""Volumes of attacks: trials that go wrong are named by their number, and the others go on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.volumes import datagrams, http_requests, lines, readers
from benchmarks.volumes.trials import in_processes


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


def test_a_trial_is_made_by_its_seed_and_number():
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
