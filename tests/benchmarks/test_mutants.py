"""The areas of ``benchmarks.mutants`` have code and tests: pytest refuses a folder that is gone, which is no kill."""

import signal

import pytest

from benchmarks.mutants import trials
from benchmarks.mutants.trials import AREAS, ROOT, SLOW, drawn, tried


@pytest.mark.parametrize("name", AREAS)
def test_all_code_and_tests_of_an_area_are_there(name):
    area = AREAS[name]
    assert any(any(ROOT.glob(pattern)) for pattern in area.code)
    assert all((ROOT / path).exists() for path in (*area.tests, *area.without))


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [((0, 0, 1), "killed"), ((0, 0, -9), "survived"), ((0, 0, 5), "survived"), ((0, -9), "too long")],
)
def test_slow_tests_are_tried_where_no_other_fails_as_far_as_the_time_goes(tmp_path, monkeypatch, ends, outcome):
    (mutation,) = drawn(AREAS["sweep"], 1, "1")
    copy = tmp_path / mutation.path
    copy.parent.mkdir(parents=True)
    copy.write_bytes((ROOT / mutation.path).read_bytes())
    left, marks = iter(ends), []

    def run(folder, tests, seconds, marked):
        marks.append(marked)
        return next(left), ""

    monkeypatch.setattr(trials, "_tests", lambda *_: (["tests/near"], ["tests/area"]))
    monkeypatch.setattr(trials, "_tested", run)
    assert tried(tmp_path, "sweep", mutation, 9.0).outcome == outcome
    assert marks == ["", "", SLOW][: len(ends)]
    assert copy.read_bytes() == (ROOT / mutation.path).read_bytes()


def test_a_run_of_tests_ends_by_its_processor_time_however_long_it_waits(tmp_path, monkeypatch):
    (tmp_path / "test_it.py").write_text("def test_it():\n    while True:\n        pass\n")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    monkeypatch.setattr(trials, "WAITING", 1000)
    status, last = trials._tested(tmp_path, ["test_it.py"], 2.0)
    assert status == -signal.SIGXCPU
    assert "SIGXCPU" in last
