"""What a program of ranks that are alike, or of stages of such ranks, did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark

from .compute import Spent
from .queued_work import QueuedCollective, Span
from .stage_timeline import StageTimeline

__all__ = ["AlikeRun", "RankReport"]


@dataclass(frozen=True, slots=True)
class RankReport:
    """What one rank that ran says of itself.

    Parameters
    ----------
    steps : tuple of float, s
        Ends of the steps of its optimiser.
    spent : Spent
        Time of its operators.
    remarks : tuple of Remark
        What was left out or not known.
    """

    steps: tuple[float, ...]
    spent: Spent
    remarks: tuple[Remark, ...]
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AlikeRun:
    """What an emulated program did.

    Parameters
    ----------
    name : str
        Name of the program.
    network : Network
        Network.
    timeline : StageTimeline
        Streams of all GPUs that stood for others.
    reports : tuple of RankReport
        One for each stage.
    n_simulated : int
        Collectives that were simulated.
    remarks : tuple of Remark
        What was assumed.
    nodes : tuple of int
        Node of each rank.
    cables : Network
        The same network with the rates of its cables, where software has made its ports slower.
    """

    name: str
    network: Network
    timeline: StageTimeline
    reports: tuple[RankReport, ...]
    n_simulated: int
    remarks: tuple[Remark, ...]
    nodes: tuple[int, ...]
    cables: Network

    @property
    def time(self) -> float:
        """Virtual time of the whole program, s."""
        return self.timeline.clock

    @property
    def steps(self) -> tuple[float, ...]:
        """Ends of the steps, when the last stage has ended each, s."""
        return tuple(max(ends) for ends in zip(*(report.steps for report in self.reports), strict=False))

    @property
    def spent(self) -> Spent:
        """Time of operators, of all stages together."""
        total = Spent()
        for report in self.reports:
            total.by_bound.update(report.spent.by_bound)
            total.by_operator.update(report.spent.by_operator)
            total.calls.update(report.spent.calls)
            total.operations += report.spent.operations
        return total

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of the last step, s; of all, where the program has no optimiser."""
        steps = self.steps
        if not steps:
            return 0.0, self.time
        return (steps[-2] if len(steps) > 1 else 0.0), steps[-1]

    @property
    def step_time(self) -> float:
        """Time of the last step, s."""
        return self.window[1] - self.window[0]

    @property
    def exchanges(self) -> list[QueuedCollective]:
        """Collectives and messages that ended in the last step, in the order in which they were called."""
        begin, end = self.window
        return [
            exchange for exchange in self.timeline.exchanges if exchange.end is not None and begin < exchange.end <= end
        ]

    @property
    def spans(self) -> Sequence[Span]:
        """What each stream did, in the whole program."""
        return self.timeline.spans

    def link_bytes(self) -> NDArray[np.float64]:
        """Bytes on each link in the last step."""
        total = np.zeros(self.network.n_links)
        for exchange in self.exchanges:
            total += exchange.costs.link_bytes
        return total
