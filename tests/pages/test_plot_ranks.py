import itertools

import pytest

from commsim.pages.plots.plot_ranks import MAX_RANKS, plot_ranks
from commsim.pages.simulated_run import simulate_run
from commsim.prediction.build import prepare


@pytest.mark.parametrize("n", [2, 16, MAX_RANKS])
def test_no_name_of_a_rank_covers_another(n):
    pytest.importorskip("matplotlib").use("agg")
    run = simulate_run("ring", prepare("ring_all_reduce", f"star:n_hosts={n}"), 2**20)
    axes = plot_ranks("ring", run.prepared.schedule.expand(), run.trace.start, run.trace.sent, n)
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert len(boxes) == n
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


def test_names_have_room_on_axes_of_a_caller_too():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    run = simulate_run("ring", prepare("ring_all_reduce", "star:n_hosts=64"), 2**20)
    axes = pyplot.subplots()[1]
    plot_ranks("ring", run.prepared.schedule.expand(), run.trace.start, run.trace.sent, 64, axes)
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert 8 < len(boxes) < 64
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
