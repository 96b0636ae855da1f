"""One prediction as a notebook shows it: its remarks, its transfers in time, a picture, a row of a data frame."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.extensions import house
from commsim.prediction.solve import Solution
from commsim.report.titles import software_costs

NO_SCENARIO = "a result that was read or pickled has no timeline; predict it again"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Predicted(Result):
    """A result that knows what was predicted; equal to the plain result.

    Parameters
    ----------
    solution : Solution or None
        Scenario, plan and remarks that it comes from; None of a prediction that comes out of a pickle.
    """

    solution: Solution | None = field(default=None, compare=False)

    @classmethod
    def of(cls, solution: Solution) -> Predicted:
        """Return the one result of a solution."""
        (result,) = solution.results
        values = {one.name: getattr(result, one.name) for one in dataclasses.fields(Result)}
        return cls(**values, solution=solution)

    @property
    def prepared(self) -> Any:
        """Plan of the collective; None of a prediction that comes out of a pickle."""
        return None if self.solution is None else self.solution.plan

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was derived, assumed, chosen and left out."""
        return () if self.solution is None else self.solution.said

    @property
    def costs(self) -> str:
        """What the time includes of the cost of software, as the title of ``commsim run`` says; empty if not known."""
        plan = self.prepared
        return "" if plan is None else software_costs(plan.network, has_own_costs=plan.has_own_costs)

    def __eq__(self, other: object) -> bool:
        return self.plain() == (other.plain() if isinstance(other, Predicted) else other)

    def __hash__(self) -> int:
        return hash(self.plain())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), Result.__reduce__(self.plain())[1]

    def plain(self) -> Result:
        """Return only the numbers."""
        return Result(**{one.name: getattr(self, one.name) for one in dataclasses.fields(Result)})

    def row(self, asked: str = "") -> dict[str, Any]:
        """Return the JSON row, with the collective as it was asked for where that is more than its name."""
        return Result.row(self, asked or ("" if self.solution is None else self.solution.scenario.name))

    def timeline(self, library: str | None = None) -> Any:
        """Return when each transfer started, left its sender and was complete, as a data frame.

        Times are those of the scenario, with its faults, flaps, jitter and losses; the last end is the result's time.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            Default: pandas if it is installed, else polars.

        Raises
        ------
        InputError
            If the engine knows no single transfers, there are too many, or the time differs when simulated again.
        """
        transfers, (start, sent, done) = self._traced()
        rows = zip(transfers["src"].tolist(), transfers["dst"].tolist(), transfers["src_chunk"].tolist(),
                   transfers["count"].tolist(), start.tolist(), sent.tolist(), done.tolist(), strict=True)  # fmt: skip
        names = ("src", "dst", "chunk", "n_chunks", "start_s", "sent_s", "done_s")
        return frame_of((dict(zip(names, row, strict=True)) for row in rows), library)

    def plot(self, ax: Any = None) -> Any:
        """Draw what each rank sends, over time, with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            If matplotlib is not installed, or the engine knows no single transfers.
        """
        draw = house().services["plot of ranks"]()  # refuses where there is no matplotlib
        transfers, (start, sent, _) = self._traced()
        return draw(self.collective, transfers, start, sent, self.n_ranks, ax)

    def _traced(self) -> tuple[Any, tuple[Any, Any, Any]]:
        """Return the transfers in program order, and their times: simulated again as the scenario says."""
        if self.solution is None:
            raise InputError(NO_SCENARIO)
        run = house().services["repeated run"](self.solution, self)
        return run.prepared.schedule.expand(), (run.trace.start, run.trace.sent, run.trace.done)
