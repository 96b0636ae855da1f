"""The table of a comparison: both times of every size, and the error as a number and as a bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .table import print_table

if TYPE_CHECKING:
    from commsim.comparison.pairs import Pair
    from commsim.comparison.summary import Summary
    from commsim.formats.measured import Measured

COLUMNS = ["operation", "size(B)", "measured(us)", "low", "high", "predicted(us)", "error", "busbw(GB/s)",
           "predicted(GB/s)", ""]  # fmt: skip
FULL_BAR = 0.5
"""Relative error at which the bar beside a row is full."""


def print_comparison(title: str, pairs: Sequence[Pair], alone: Sequence[Measured], summary: Summary) -> None:
    """Print all pairs, how far apart they are, and what was measured but not predicted."""
    print_table(COLUMNS, [_cells(pair) for pair in pairs], title)
    print(
        f"# error: median {summary.median:.1%}, 90th percentile {summary.p90:.1%}, worst {summary.worst:.1%} at "
        f"{summary.worst_size:.0f} B; predictions are {abs(summary.bias):.1%} too "
        f"{'long' if summary.bias > 0 else 'short'} in the middle"
    )
    within = [pair.is_within for pair in pairs if pair.is_within is not None]
    if within:
        print(f"# {sum(within)} of {len(within)} predictions lie between low and high")
    if alone:
        print(f"# without a prediction: {', '.join(f'{row.operation} {row.size:.0f} B' for row in alone[:6])}"
              + (f" and {len(alone) - 6} more" if len(alone) > 6 else ""))  # fmt: skip


def _cells(pair: Pair) -> list[str]:
    m = pair.measured
    rate = m.busbw
    predicted = "-" if rate is None or not pair.predicted else f"{rate * m.time / pair.predicted / 1e9:.3f}"
    return [
        m.operation,
        f"{m.size:.0f}",
        f"{m.time * 1e6:.2f}",
        *("-" if value is None else f"{value * 1e6:.2f}" for value in (m.low, m.high)),
        f"{pair.predicted * 1e6:.2f}",
        "-" if pair.error is None else f"{pair.error:+.1%}",
        "-" if rate is None else f"{rate / 1e9:.3f}",
        predicted,
        _bar(pair.error or 0.0),
    ]


def _bar(error: float) -> str:
    """Draw the error as text: to the left of the middle when the prediction is too short."""
    length = round(min(1.0, abs(error) / FULL_BAR) * 8)
    left, right = ("<" * length, "") if error < 0 else ("", ">" * length)
    return f"{left.rjust(8)}|{right.ljust(8)}"
