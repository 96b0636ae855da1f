import itertools

import pytest

from commsim.report.plots.plot_ranks import MAX_RANKS, plot_ranks
from commsim.report.simulated_run import simulate_run
from commsim.scenario import prepare


@pytest.mark.parametrize("n", [2, 16, MAX_RANKS])
def test_no_name_of_a_rank_covers_another(n):
    pytest.importorskip("matplotlib").use("agg")
    run = simulate_run("ring", prepare("ring_all_reduce", f"star:n_hosts={n}"), 2**20)
    axes = plot_ranks("ring", run.prepared.schedule.expand(), run.trace.start, run.trace.sent, n)
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert len(boxes) == n
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
