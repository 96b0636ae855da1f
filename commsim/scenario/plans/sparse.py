"""The plan of a sparse collective whose data is known: messages take what their blocks take."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.scenario.plans.dense import Plan
from commsim.scenario.plans.sparse_data import SparseData
from commsim.scenario.scenario import Wish

__all__ = ["SparsePlan"]


@dataclass(frozen=True, slots=True)
class SparsePlan(Plan):
    """A collective on data whose non-zero blocks are known.

    Parameters
    ----------
    sparse : SparseData
        Data of every rank.
    """

    sparse: SparseData | None = None

    @property
    def data(self) -> SparseData | None:
        """Blocks that are not zero."""
        return self.sparse

    def play(self, size: float, wish: Wish) -> Result:
        """Predict a size; a size that the data cannot have is refused before anything runs."""
        assert self.sparse is not None
        if wish.engine != "closed-form":
            self.sparse.messages(size)
        found = Plan.play(self, size, wish)
        return dataclasses.replace(found, counters={**found.counters, **self.sparse.counters(size)})

    def with_data(self, data: SparseData) -> SparsePlan:
        """Return the same with other data; routes and dependencies do not change."""
        return dataclasses.replace(self, paths=self.paths.with_messages(data.messages), sparse=data)

    def _closed_form(self, size: float, wish: Wish, framing: Framing | None) -> Result:  # noqa: ARG002
        raise InputError(f"{self.schedule.name}: the closed form is that of dense data; use engine flow")
