"""`make run`: how many ranks really run, and which steps their sums are predicted from."""

import numpy as np
import pytest
from thread_transport import ThreadTransport, World

from benchmarks.real_gradients import command
from benchmarks.real_gradients.gradient_ranks import steps_of_ring
from commsim.prediction.build import prepare
from commsim.real import calibrate
from commsim.real.steps import TimedStep, usual_steps


@pytest.mark.parametrize(("cores", "ranks"), [(1, 2), (2, 2), (3, 3), (4, 4), (64, 4)])
def test_as_many_ranks_run_as_there_are_cores(monkeypatch: pytest.MonkeyPatch, cores: int, ranks: int) -> None:
    monkeypatch.setattr(command, "processors", lambda _: cores)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(command, "_run", lambda *given: asked.append(given) or 0)
    assert command.main([]) == command.main(["--ranks", "3"]) == 0
    assert asked == [(ranks, 6), (3, 6)]


def seconds(step: TimedStep) -> float:
    """A machine where no two kinds of steps cost the same, neither by size nor by memory."""
    hops = [1.0 + 0.7 * (op == "reduce") + 0.3 * step.two_way for op in step.ops]
    relayed = 1.4 if len(hops) > 1 else 1.0
    one = 2e-6 + 1e-10 * step.size * (sum(hops[:1]) + relayed * sum(hops[1:]))
    return one * step.length + 1e-13 * step.working_set


@pytest.mark.parametrize("n_ranks", [2, 3, 4])
@pytest.mark.parametrize("n_bytes", [60_000.0, 3_468_288.0, 2.0**22, 2.0**27])
def test_a_ring_is_predicted_from_its_own_steps_as_from_all(monkeypatch, n_ranks: int, n_bytes: float) -> None:
    monkeypatch.setattr(calibrate, "time_step", lambda _, step: seconds(step))
    times = []
    for steps in (usual_steps(n_bytes), steps_of_ring(n_ranks, n_bytes)):
        found = calibrate.Calibration(ThreadTransport(World(n_ranks), 0), steps, paired=True)
        monkeypatch.setattr(found.transport, "max_over_ranks", np.asarray)
        found.run_pass()
        times.append(prepare("ring_all_reduce", found.network()).predict(n_bytes).time)
    assert times[1] == pytest.approx(times[0], rel=1e-9)
    assert len(steps) <= min(30, len(usual_steps(n_bytes)) / 3)
