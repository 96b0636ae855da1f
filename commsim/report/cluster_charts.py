"""Charts of cluster simulations: how completion times are spread, and GPUs in use over time, one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from commsim.cluster.outcome import Outcome

from .chart import HEIGHT, WIDTH, Axis, Series, draw_chart
from .picture import Disc, Label, Line, Picture, Polygon, Rectangle, Shape

HOUR, DAY = 3600.0, 86400.0
MAX_POINTS = 400


def draw_outcomes(outcomes: Sequence[Outcome]) -> Picture:
    """Draw both charts of all outcomes; one with CASSINI is dashed beside the one without.

    Parameters
    ----------
    outcomes : sequence of Outcome
        At least one, of the same trace.
    """
    times = [Series(one.label, _spread(one), one.cassini) for one in outcomes]
    use = [Series(one.label, _use(one), one.cassini) for one in outcomes]
    above = draw_chart("job completion time", Axis("JCT (h)", logarithmic=True), Axis("share of jobs"), times)
    below = draw_chart("GPUs in use", Axis("time (days)"), Axis("GPUs"), use)
    shapes = (*above.shapes, *(_lower(shape, HEIGHT) for shape in below.shapes))
    return Picture(WIDTH, 2 * HEIGHT, "job completion times and GPUs in use", shapes)


def _spread(outcome: Outcome) -> tuple[tuple[float, float], ...]:
    hours = np.sort([job.jct_s for job in outcome.jobs]) / HOUR
    share = np.arange(1, len(hours) + 1) / len(hours)
    keep = np.unique(np.linspace(0, len(hours) - 1, MAX_POINTS).round().astype(int))
    return tuple((float(hours[i]), float(share[i])) for i in keep)


def _use(outcome: Outcome) -> tuple[tuple[float, float], ...]:
    """Mean number of GPUs in use in each of a few hundred equal parts of the time."""
    times = np.array([time for time, _ in outcome.use])
    gpus = np.array([n for _, n in outcome.use], np.float64)
    area = np.concatenate(([0.0], np.cumsum(gpus[:-1] * np.diff(times))))
    edges = np.linspace(times[0], times[-1], MAX_POINTS + 1)
    parts = np.diff(np.interp(edges, times, area)) / np.diff(edges)
    return tuple((float(t / DAY), float(n)) for t, n in zip((edges[1:] + edges[:-1]) / 2, parts, strict=True))


def _lower(shape: Shape, by: float) -> Shape:
    if isinstance(shape, Line | Polygon):
        return replace(shape, points=tuple((x, y + by) for x, y in shape.points))
    if isinstance(shape, Rectangle | Disc | Label):
        return replace(shape, y=shape.y + by)
    raise TypeError(f"unknown shape {shape!r}")
