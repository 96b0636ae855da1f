"""The plan of a sparse collective whose data is known: messages take what their blocks take."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from commsim.core.cost import Framing
from commsim.core.errors import NoClosedFormError
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.scenario.plans.asked import Asked, built, laid_out
from commsim.scenario.plans.cut_by_size import with_partitions_that_fit
from commsim.scenario.plans.dense import Plan
from commsim.scenario.plans.sparse_data import SparseData, split_data
from commsim.scenario.result_remarks import above_line_rate
from commsim.scenario.scenario import Wish
from commsim.software.presets import known_software

__all__ = ["SparsePlan", "links_only", "plan_sparse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsePlan(Plan):
    """A collective on data whose non-zero blocks are known.

    Parameters
    ----------
    sparse : SparseData
        Data of every rank.
    """

    sparse: SparseData

    @property
    def data(self) -> SparseData:
        """Blocks that are not zero."""
        return self.sparse

    def play(self, size: float, wish: Wish) -> Result:
        """Predict a size; a size that the data cannot have is refused before anything runs."""
        if wish.engine != "closed-form":
            self.sparse.messages(size)
        found = Plan.play(self, size, wish)
        return dataclasses.replace(found, counters={**found.counters, **self.sparse.counters(size)})

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on: busbw above that of links, and costs of the software."""
        own = above_line_rate(self.network, results, "zeros are not sent")
        own += links_only(self.schedule.name, self.network)
        told = Plan.remarks(self, results, has_framing=has_framing, verbose=verbose)
        return told + [one.of(self.schedule.name) for one in own]

    def with_data(self, data: SparseData) -> SparsePlan:
        """Return the same with other data; routes and dependencies do not change."""
        return dataclasses.replace(self, paths=self.paths.with_messages(data.messages), sparse=data)

    def _closed_form(self, size: float, wish: Wish, framing: Framing | None) -> Result:  # noqa: ARG002
        raise NoClosedFormError(f"{self.schedule.name}: the closed form is that of dense data; use engine flow")


def links_only(name: str, network: Network) -> list[Remark]:
    """Describe that times are without the measured costs of the collective's software, where some are known."""
    known = [key for key, one in known_software().items() if name in one.systems]
    if not known or network.software in known:
        return []
    told = f"without what its software takes, which --software {known[0]} adds"
    return [Remark("software-left-out", told, details=f"commsim reproduce {name} compares both with published times")]


def plan_sparse(asked: Asked) -> Plan:
    """Plan a sparse collective on its data; without data all is dense, and sent without indices."""
    entry = asked.entry
    raw, given = split_data(entry, asked.raw)
    asked = dataclasses.replace(asked, raw=raw)
    made = built(asked)
    if given is None:
        text = f"{entry.name}: all data is dense, since neither density= nor gradients= is given"
        told = Remark("dense-data", text, needed=True, details="it is sent without indices")
        dense = laid_out(dataclasses.replace(made, notes=(*made.notes, told)), asked)
        return with_partitions_that_fit(dense)
    data = SparseData(entry.metadata["sparse"], made.schedule, made.parameters, given)
    made = dataclasses.replace(made, notes=(*made.notes, Remark("data", f"{entry.name}: {data.note}")))
    return laid_out(made, asked, messages=data.messages).as_kind(SparsePlan, sparse=data)
