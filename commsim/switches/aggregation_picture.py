"""Charts of in-network aggregation: what was varied, or slots and queues over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commsim.pages.plots.chart import Chart, ChartAxis, Series, draw_chart

Row = Mapping[str, Any]


def draw_aggregation(rows: Sequence[Row], series: Sequence[Row] | None) -> Chart:
    """Draw throughput against pool size, completion against loss, or slots in use over time.

    Parameters
    ----------
    rows : sequence of mapping
        Results, as the JSON has them.
    series : sequence of mapping, optional
        Slots and queues over time, which are drawn if they are there.
    """
    if series is not None:
        return _over_time(series)
    if len({r["loss"] for r in rows}) > 1:
        return _against_loss(rows)
    if len({r["pool_size"] for r in rows}) > 1:
        return _against_pool(rows)
    return _against_workers(rows)


def _over_time(series: Sequence[Row]) -> Chart:
    slots = tuple((s["time_s"] * 1e6, float(s["busy_slots"])) for s in series)
    queued = tuple((s["time_s"] * 1e6, s["queued_bytes"] / 1000) for s in series)
    lines = [Series("slots in use", slots), Series("kB in queues", queued)]
    return draw_chart("Slots and queues over time", ChartAxis("time, us"), ChartAxis("slots, kB"), lines)


def _against_loss(rows: Sequence[Row]) -> Chart:
    lossless = {r["n_ranks"]: r["time_s"] for r in rows if not r["loss"]}
    fastest = min(r["time_s"] for r in rows)
    lines = _grouped(rows, "loss", lambda r: r["time_s"] / lossless.get(r["n_ranks"], fastest))
    x, y = ChartAxis("loss on each link", logarithmic=True), ChartAxis("time over time without loss", logarithmic=True)
    return draw_chart("Completion against loss", x, y, lines)


def _against_pool(rows: Sequence[Row]) -> Chart:
    lines = _grouped(rows, "pool_size", lambda r: r["elements_per_s"] / 1e6)
    bound = tuple(sorted((float(r["pool_size"]), r["line_rate_elements_per_s"] / 1e6) for r in rows))
    lines.append(Series("line rate", bound, dashed=True))
    return draw_chart(
        "Throughput against pool size", ChartAxis("slots", logarithmic=True), ChartAxis("M elements/s"), lines
    )


def _against_workers(rows: Sequence[Row]) -> Chart:
    points = tuple(sorted((float(r["n_ranks"]), r["elements_per_s"] / 1e6) for r in rows))
    bound = tuple(sorted((float(r["n_ranks"]), r["line_rate_elements_per_s"] / 1e6) for r in rows))
    lines = [Series(rows[0]["collective"], points), Series("line rate", bound, dashed=True)]
    return draw_chart("Throughput against workers", ChartAxis("workers"), ChartAxis("M elements/s"), lines)


def _grouped(rows: Sequence[Row], across: str, upwards: Any) -> list[Series]:
    """One line per number of workers; of several seeds the mean."""
    lines = []
    for n in sorted({r["n_ranks"] for r in rows}):
        values: dict[float, list[float]] = {}
        for r in rows:
            if r["n_ranks"] == n:
                values.setdefault(float(r[across]), []).append(upwards(r))
        lines.append(Series(f"{n} workers", tuple((x, sum(v) / len(v)) for x, v in sorted(values.items()))))
    return lines
