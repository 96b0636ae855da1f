"""What the reader of a log leaves out or rounds up, counted so that it can be said."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from commsim.core.units import count_text


@dataclass(slots=True)
class ReadingSummary:
    """Counts of a log that is read.

    Parameters
    ----------
    left_out : Counter of str
        Rows that become no job, by why.
    shares : list of float
        Share of a GPU of each job, or instance of one, that asked for less than a whole one. Each has a whole GPU here:
        a GPU has one job.
    n_drawn : int
        Jobs of a file that says nothing of their models.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    shares: list[float] = field(default_factory=list)
    n_drawn: int = 0

    def told(self) -> list[str]:
        """Say what was counted."""
        told = []
        if self.n_drawn:
            text = "the trace has neither model nor iter_time_ms: a model is drawn for each"
            told.append(f"{count_text(self.n_drawn, 'job')}: {text} (--seed)")
        if self.shares:
            n = len(self.shares)
            told.append(
                f"{count_text(n, 'job')} on shares of a GPU ({sum(self.shares):.4g} GPUs together) "
                f"{'has' if n == 1 else 'have'} a whole GPU each: {count_text(n, 'GPU')}"
            )
        rows = [f"{n} {why}" for why, n in self.left_out.items() if n]
        if rows:
            total = sum(self.left_out.values())
            told.append(f"{count_text(total, 'row')} left out: {', '.join(rows)}")
        return told
