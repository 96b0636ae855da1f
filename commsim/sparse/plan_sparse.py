"""The plan of a sparse collective whose data is known: messages take what their blocks take."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.errors import NoClosedFormError
from commsim.core.network import Network
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import format_size
from commsim.prediction.build import PARTITIONS, CollectiveRequest, build_collective, laid_out
from commsim.prediction.good_parameters import partitions_that_fit
from commsim.prediction.plans.cut_by_size import BY_SIZE, MAX_KEPT, most_partitions, with_partitions_that_fit
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import Run
from commsim.prediction.result_remarks import above_line_rate
from commsim.prediction.scenario import Wish
from commsim.prediction.software import known_software
from commsim.sparse.sparse_data import SparseData, split_data

__all__ = ["SparsePlan", "links_only", "of_density", "plan_sparse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsePlan(Plan):
    """A collective on data whose non-zero blocks are known.

    Parameters
    ----------
    sparse : SparseData
        Data of every rank.
    most : int
        Partitions at most, of which each size has as many as suit the overhead of messages; 0 where they are given.
    """

    sparse: SparseData
    most: int = 0

    @property
    def data(self) -> SparseData:
        """Blocks that are not zero."""
        return self.sparse

    def sizes(self, asked: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the sizes that are asked for; gradients of a file have their own."""
        if self.sparse.size is None:
            return Plan.sizes(self, asked)
        own = [float(self.sparse.size)]
        told = Remark(SIZE_UNUSED, "sizes have no effect, the size is that of the gradients")
        return own, [told] if list(asked) not in ([], own) else []

    def at(self, size: float) -> SparsePlan:
        """Return the plan of one size: with the partitions that suit it, where they are not given."""
        if not self.most or not 0 < size < float("inf"):
            return self
        k = self._partitions(size)
        if k not in self._at:
            if len(self._at) >= MAX_KEPT:
                del self._at[next(iter(self._at))]
            self._at[k] = self._cut(k)
        plan: SparsePlan = self._at[k]
        return plan

    def _partitions(self, size: float) -> int:
        """Return how many partitions are the fastest: all but a k-th of the lighter way passes beside the heavier one.

        k partitions take k o max(p, s) + (W + w/k)/B, where busiest ports carry w bytes one way and W the other one.
        """
        single = self._cut(1)
        p, s = single.schedule.n_ranks, single.schedule.n_helpers
        lighter = min(busiest_ways(single.schedule, single.sparse.messages(size)))
        best = partitions_that_fit(lighter, max(p, s), self.network, self.placement.nodes)
        return max(1, min(round(best), self.most))

    def _cut(self, k: int) -> Self:
        """Return the plan with k partitions."""
        parameters = {**self.parameters, PARTITIONS: k}
        schedule = COLLECTIVES[self.schedule.name].build(self.schedule.n_ranks, **parameters)
        data = dataclasses.replace(self.sparse, schedule=schedule, parameters=parameters, _last=None)
        plan = self.with_schedule(schedule, parameters, messages=data.messages)
        return dataclasses.replace(plan, sparse=data, most=0, _at={}, _bounds={})

    def run_of(self, size: float, wish: Wish) -> Run:
        """Return what an engine plays at one size; a size that the data cannot have is refused before anything runs."""
        one = self.at(size)
        if wish.engine == "closed-form":
            raise NoClosedFormError(f"{self.schedule.name}: the closed form is that of dense data; use engine flow")
        one.sparse.messages(size)
        return dataclasses.replace(Plan.run_of(one, size, wish), count=functools.partial(one.sparse.counters, size))

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on: busbw above that of links, and costs of the software."""
        own = above_line_rate(self.network, results, "zeros are not sent")
        own += links_only(self.schedule.name, self.network)
        own += self._first_messages([result.size for result in results])
        remarks = Plan.remarks(self, results, has_framing=has_framing, verbose=verbose)
        return remarks + [one.of(self.schedule.name) for one in own]

    def _first_messages(self, sizes: Sequence[float]) -> list[Remark]:
        """Describe the zeros that are sent before it is known what is not zero: what they add to the busiest port."""
        added = {size: self.at(size).sparse.zeros(size) for size in sizes} if self.sparse.form.only_data else {}
        size = max(added, key=added.__getitem__, default=0.0)
        if not added or not added[size]:
            return []
        text = f"{added[size]:.0%} of the bytes of {format_size(size)} are zeros, sent before it is known what is zero"
        return [Remark("first-messages", text, effect=-added[size])]

    def with_data(self, data: SparseData) -> SparsePlan:
        """Return the same with other data; routes and dependencies do not change."""
        paths = self.paths.with_messages(data.messages)
        return dataclasses.replace(self, paths=paths, sparse=data, _at={}, _bounds={})


def of_density(results: Sequence[Result]) -> list[Remark]:
    """Describe how sparse the data is, and how much denser the sum."""
    return [
        Remark(
            "density",
            f"{r.size:.0f} B: density {r.counters['density']:.4g}, of the sum {r.counters['union_density']:.4g}, "
            f"{r.counters['densification']:.4g} times denser",
        )
        for r in results
        if "union_density" in r.counters
    ]


def links_only(name: str, network: Network) -> list[Remark]:
    """Describe that times are without the measured costs of the collective's software, where some are known."""
    known = [key for key, one in known_software().items() if name in one.systems]
    if not known or network.software in known:
        return []
    text = f"without what its software takes, which --software {known[0]} adds"
    return [Remark("software-left-out", text, details=f"commsim reproduce {name} compares both with published times")]


def busiest_ways(schedule: Schedule, n_bytes: NDArray[np.float64]) -> tuple[float, float]:
    """Return what the busiest port of ranks and helpers carries to helpers, and from them.

    Parameters
    ----------
    schedule : Schedule
        Schedule with helpers.
    n_bytes : float64[n_transfers], bytes
        Payload of each transfer.
    """
    transfers, n = schedule.expand(), schedule.n_participants

    def most(way: NDArray[np.bool_]) -> float:
        ports = (np.bincount(transfers[end][way], n_bytes[way], n) for end in ("src", "dst"))
        return float(max(port.max() for port in ports))

    apart = transfers["src"] != transfers["dst"]
    return most(apart & (transfers["dst"] >= schedule.n_ranks)), most(apart & (transfers["src"] >= schedule.n_ranks))


def plan_sparse(request: CollectiveRequest) -> Plan:
    """Plan a sparse collective on its data; without data all is dense, and sent without indices."""
    entry = request.entry
    raw, given = split_data(entry, request.raw)
    request = dataclasses.replace(request, raw=raw)
    collective = build_collective(request)
    if given is None:
        text = f"{entry.name}: all data is dense, since neither density= nor gradients= is given"
        remark = Remark("dense-data", text, needed=True, details="it is sent without indices")
        dense = laid_out(dataclasses.replace(collective, notes=(*collective.notes, remark)), request)
        return with_partitions_that_fit(dense)
    data = SparseData(entry.metadata["sparse"], collective.schedule, collective.parameters, given)
    collective = dataclasses.replace(
        collective, notes=(*collective.notes, Remark("data", f"{entry.name}: {data.note}"))
    )
    most = most_partitions(collective.schedule, collective.parameters, request.network, collective.placement.nodes)
    if most:
        remark = Remark("partitions", BY_SIZE.format(entry.name))
        collective = dataclasses.replace(collective, notes=(*collective.notes, remark))
    return laid_out(collective, request, messages=data.messages).as_kind(SparsePlan, sparse=data, most=most)
