"""The charts of ``commsim cluster --plot``: completion times of jobs, and GPUs in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from commsim.pages.plots.chart import Chart, ChartAxis, Series, draw_chart, stacked

if TYPE_CHECKING:
    from commsim.placement.clusters.outcome import ClusterReplay

HOUR, DAY = 3600.0, 86400.0
MAX_POINTS = 400


def draw_outcomes(outcomes: Sequence[ClusterReplay]) -> Chart:
    """Make both charts of all outcomes; one with CASSINI is dashed beside the one without.

    Parameters
    ----------
    outcomes : sequence of ClusterReplay
        Outcomes, at least one, of the same trace.
    """
    times = [Series(outcome.label, _spread(outcome), outcome.placing == "cassini") for outcome in outcomes]
    use = [Series(outcome.label, _use(outcome), outcome.placing == "cassini") for outcome in outcomes]
    above = draw_chart("job completion time", ChartAxis("JCT (h)", logarithmic=True), ChartAxis("share of jobs"), times)
    below = draw_chart("GPUs in use", ChartAxis("time (days)"), ChartAxis("GPUs"), use)
    return stacked("job completion times and GPUs in use", [above, below])


def _spread(outcome: ClusterReplay) -> tuple[tuple[float, float], ...]:
    hours = np.sort([job.jct_s for job in outcome.jobs]) / HOUR
    share = np.arange(1, len(hours) + 1) / len(hours)
    keep = np.unique(np.linspace(0, len(hours) - 1, MAX_POINTS).round().astype(int))
    return tuple((float(hours[i]), float(share[i])) for i in keep)


def _use(outcome: ClusterReplay) -> tuple[tuple[float, float], ...]:
    """Mean number of GPUs in use in each of a few hundred equal parts of the time."""
    times = np.array([time for time, _ in outcome.use])
    gpus = np.array([n for _, n in outcome.use], np.float64)
    area = np.concatenate(([0.0], np.cumsum(gpus[:-1] * np.diff(times))))
    edges = np.linspace(times[0], times[-1], MAX_POINTS + 1)
    parts = np.diff(np.interp(edges, times, area)) / np.diff(edges)
    return tuple((float(t / DAY), float(n)) for t, n in zip((edges[1:] + edges[:-1]) / 2, parts, strict=True))
