"""`make run`: how many ranks really run."""

import pytest

from benchmarks.real_gradients import command


@pytest.mark.parametrize(("cores", "ranks"), [(1, 2), (2, 2), (3, 3), (4, 4), (64, 4)])
def test_as_many_ranks_run_as_there_are_cores(monkeypatch: pytest.MonkeyPatch, cores: int, ranks: int) -> None:
    monkeypatch.setattr(command, "processors", lambda _: cores)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(command, "_run", lambda *given: asked.append(given) or 0)
    assert command.main([]) == command.main(["--ranks", "3"]) == 0
    assert asked == [(ranks, 6), (3, 6)]
