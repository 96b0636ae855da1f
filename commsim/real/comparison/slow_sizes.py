"""Which measured times are longer than predicted, and whether all are so by one factor."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.units import format_size
from commsim.real.comparison.pairs import Pair

# Without an interval of the prediction, a time is long from this ratio to the predicted one on.
LONG = 1.25
# A size stands out from both of its neighbours from this ratio on.
STANDS_OUT = 1.5
# A spike: what a change of the algorithm does not explain.
SPIKE = 5.0
# Ratios of measured to predicted times are one factor where the largest is at most this many times the smallest, and
# they differ from 1 by more; over at least so many sizes, of which the largest is so many times the smallest.
ALIKE, LEAST_SIZES, LEAST_RANGE = 1.05, 3, 16
__all__ = ["common_factor", "explain_slow"]


def explain_slow(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Name the sizes that took longer than predicted.

    Parameters
    ----------
    pairs : sequence of Pair
        Predicted beside measured times.

    Returns
    -------
    tuple of str
        A line for each run of neighbouring sizes; nothing where no time is long.
    """
    lines = []
    for operation in sorted({pair.measured.operation for pair in pairs}):
        rows = [p for p in pairs if p.measured.operation == operation and p.measured.size and p.predicted > 0]
        rows = sorted((p for p in rows if p.measured.time), key=lambda pair: pair.measured.size)
        times = [pair.measured.time / pair.predicted for pair in rows]
        slow = [_is_slow(pair) or _stands_out(times, i) for i, pair in enumerate(rows)]
        spikes = [i for i in range(len(rows)) if _stands_out(times, i, SPIKE)]
        lines += [_spike_text(rows[i].measured.size, times, i) for i in spikes]
        for i in spikes:  # named by themselves, so that they do not hide what the others took
            slow[i] = False
        for first in (i for i, is_slow in enumerate(slow) if is_slow and not (i and slow[i - 1])):
            end = next((i for i in range(first, len(slow)) if not slow[i]), len(slow))
            lines.append(_slow_text([pair.measured.size for pair in rows], times, first, end))
    return tuple(lines)


def _is_slow(pair: Pair) -> bool:
    limit = pair.predicted * LONG if pair.interval is None else pair.interval[1]
    return pair.measured.time > limit


def _stands_out(times: Sequence[float], i: int, ratio: float = STANDS_OUT) -> bool:
    """Whether a size between two others took much longer than both, each against its prediction."""
    return 0 < i < len(times) - 1 and times[i] > ratio * max(times[i - 1], times[i + 1])


def _spike_text(size: float, times: Sequence[float], i: int) -> str:
    """Write the line of one size that took very much longer than both of its neighbours."""
    beside = f"{times[i - 1]:.2g} and {times[i + 1]:.2g} at the next sizes"
    return f"spike: {format_size(size)} alone: measured {times[i]:.3g} times as long as predicted, {beside}"


def _slow_text(sizes: Sequence[float], times: Sequence[float], first: int, end: int) -> str:
    """Write the line of the sizes `first` to `end` - 1, whose times are so many times the predicted ones."""
    last = end - 1
    where, ratio = format_size(sizes[first]), f"{times[last]:.2g} times"
    if last > first:
        where = f"{where} to {format_size(sizes[last])}"
        low, high = (f"{pick(times[first:end]):.2g}" for pick in (min, max))
        ratio = f"{low} times" if low == high else f"{low} to {high} times"
    head = f"slow: {where}: measured {ratio} as long as predicted"
    beside = [f"{times[i]:.2g}" for i in (first - 1, end) if 0 <= i < len(times)]
    if beside:
        head += f", {' and '.join(beside)} at the next size{'s' if len(beside) > 1 else ''}"
    between = first > 0 and end < len(times)
    return f"{head}; often the algorithm or protocol chosen at this size" if between else head


def common_factor(pairs: Sequence[Pair]) -> float | None:
    """Return how many times as long as predicted all sizes took, where that is one number; None where it is not.

    Parameters
    ----------
    pairs : sequence of Pair
        Predicted beside measured times of one operation.
    """
    rows = [pair for pair in pairs if pair.measured.size and pair.measured.time and pair.predicted > 0]
    sizes = [pair.measured.size for pair in rows]
    if len(set(sizes)) < LEAST_SIZES or max(sizes) < LEAST_RANGE * min(sizes):
        return None
    times = sorted(pair.measured.time / pair.predicted for pair in rows)
    if times[-1] > ALIKE * times[0] or 1 / ALIKE < times[0] < ALIKE:
        return None
    return times[len(times) // 2]
