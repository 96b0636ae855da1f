"""The kind of compressed gradients: a collective that carries them, with other sizes and the same schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.prediction.build import CollectiveWork, plan_collective
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import over_hashes
from commsim.prediction.scenario import Scenario, Wish
from commsim.prediction.work_plan import Outcome, Work
from commsim.sparse.compressors import compressor_of
from commsim.sparse.compressors.message import Compressor, SummingCompressor

# Bytes of an element of a gradient.
FLOAT = 4
__all__ = ["CompressedPlan", "CompressedWork", "compressed"]


@dataclass(frozen=True, slots=True)
class CompressedPlan:
    """A collective that sums compressed gradients: an all-reduce of messages, or an all-gather and sums.

    Parameters
    ----------
    prepared : Plan
        Collective of the messages.
    compressor : Compressor
        What makes them.
    name : str
        Name of the compressor, with its parameters.

    Raises
    ------
    InputError
        If the operation can do nothing with such messages, or the collective is sparse itself.
    """

    prepared: Plan
    compressor: Compressor
    name: str

    def __post_init__(self) -> None:
        collective, operation = self.prepared.schedule.name, self.prepared.schedule.operation
        if self.prepared.data is not None:
            raise InputError(f"{collective} has sparse data already, which {self.name} would compress once more")
        if operation not in ("all_reduce", "all_gather"):
            raise InputError(
                f"a compressor sums gradients by an all-reduce or an all-gather, and {collective} is a {operation}"
            )
        if operation == "all_reduce" and self.compressor.not_summed is not None:
            raise InputError(
                f"{collective} cannot sum messages of {self.name}: {self.compressor.not_summed}; use an all-gather, "
                "such as ring_all_gather"
            )

    @property
    def schedule(self) -> Schedule:
        """What is sent."""
        return self.prepared.schedule

    @property
    def network(self) -> Network:
        """Where."""
        return self.prepared.network

    @property
    def has_own_costs(self) -> bool:
        """Whether messages have the costs of a library's primitives, not the overhead of the network."""
        return self.prepared.has_own_costs

    @property
    def may_collide(self) -> bool:
        """Whether routes are drawn by hashing where there are several."""
        return self.prepared.may_collide

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedule of messages, of the one result."""
        return self.prepared.schedules

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What was derived, and should be printed."""
        how = "messages are summed" if self._summed else "messages are gathered, and summed at every rank"
        return (
            *self.prepared.notes,
            Remark("compressed", f"{self.name}: {how}; compressing takes no time", details="sizes are the gradient's"),
        )

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the sizes that are asked for: those of the gradient."""
        return self.prepared.sizes(sizes)

    def at(self, size: float) -> CompressedPlan:  # noqa: ARG002
        """Return the plan of one size, the same for all."""
        return self

    def links_used(self, sizes: Collection[float], routing: str | None) -> NDArray[np.bool_] | None:
        """Return the links on the routes of all messages, bool[n_links]; None where that takes long."""
        return self.prepared.links_used(sizes, routing)

    def predict(self, size: float, **options: Any) -> Result:
        """Predict one size; options are fields of :class:`commsim.prediction.scenario.Wish`."""
        return self.run(size, Wish.of(**options))

    def run(self, size: float, wish: Wish) -> Result:
        """Predict one size: the one result of :func:`commsim.prediction.plans.run.over_hashes`."""
        return over_hashes(self, size, wish).results[0]

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what the results of the messages leave out."""
        return self.prepared.remarks(results, has_framing=has_framing, verbose=verbose)

    def outcome(self, size: float, wish: Wish) -> Outcome:
        """Predict one size.

        Parameters
        ----------
        size : float, bytes
            Size of each rank's gradient, before it is compressed.
        wish : Wish
            Engine and its options.

        Returns
        -------
        Outcome
            An all-reduce of `size`, whatever the operation on messages. Of several messages that each start
            where the one before has ended, times and loads are summed; a trace is that of the last.

        Raises
        ------
        InputError
            If the gradient is no whole number of elements, or a message's length depends on the data.
        """
        sizes = self._messages(size)
        runs = [self.prepared.outcome(self._sent(n_bytes), wish).results[0] for n_bytes in sizes]
        summed = dataclasses.replace(
            runs[-1],
            operation="all_reduce",
            size=size,
            time=sum(r.time for r in runs),
            time_from_last_start=runs[0].time_from_last_start + sum(r.time for r in runs[1:]),
            link_bytes=np.sum([r.link_bytes for r in runs], axis=0),
            bytes_on_wire=sum(r.bytes_on_wire for r in runs),
            samples=runs[0].samples if len(runs) == 1 else np.empty(0),
            counters=self._counters(runs, size, sum(sizes)),
        )
        return Outcome((summed,))

    def shown(self, size: float) -> Plan:
        """Return the plan of the one message of a size, whose timeline is shown.

        Raises
        ------
        InputError
            If each rank sends several messages, each after the one before.
        """
        sizes = self._messages(size)
        if len(sizes) != 1:
            raise InputError(f"{self.name}: {len(sizes)} messages, one after the other, have no timeline")
        sent = self._sent(sizes[0])
        plan = self.prepared.shown(sent)
        return dataclasses.replace(plan, sent=sent if plan.sent is None else plan.sent)

    def _messages(self, size: float) -> tuple[int, ...]:
        """Return the bytes of each rank's messages for a gradient of `size` bytes."""
        if size % FLOAT or not size >= FLOAT:
            raise InputError(f"{self.name}: a gradient is whole elements of {FLOAT} bytes, got a size of {size:g}")
        return self.message_bytes(int(size) // FLOAT)

    def _sent(self, n_bytes: int) -> float:
        """Return the size of the operation on messages; that of an all-gather is the size of all blocks."""
        return float(n_bytes if self._summed else self.schedule.n_ranks * n_bytes)

    def message_bytes(self, n_elements: int) -> tuple[int, ...]:
        """Return the bytes of each rank's messages."""
        if isinstance(self.compressor, SummingCompressor) and self._summed:
            return self.compressor.exchange_bytes(n_elements, FLOAT)
        return (self.compressor.message_bytes(n_elements, FLOAT),)

    @property
    def _summed(self) -> bool:
        return self.schedule.operation == "all_reduce"

    @staticmethod
    def _counters(runs: list[Result], size: float, n_bytes: int) -> Mapping[str, float]:
        names = set.intersection(*(set(r.counters) for r in runs))
        total = {name: sum(r.counters[name] for r in runs) for name in sorted(names)}
        return total | {"message_bytes": float(n_bytes), "compression": size / n_bytes}


def compressed(prepared: Plan, compressor: str) -> CompressedPlan:
    """Put a compressor in front of a prepared collective.

    Parameters
    ----------
    prepared : Plan
        Collective from :func:`commsim.prediction.build.prepare`.
    compressor : str
        Such as ``top_k:density=0.01``.

    Raises
    ------
    InputError
        If the compressor is unknown, or as :class:`CompressedPlan`.
    """
    return CompressedPlan(prepared, compressor_of(compressor), compressor)


@dataclass(frozen=True, slots=True, eq=False)
class CompressedWork(CollectiveWork):
    """A collective of compressed gradients.

    Parameters
    ----------
    compressor : str
        Compressor, such as ``top_k:density=0.01``.
    """

    NAME: ClassVar[str] = "compressed gradients"
    TAKES: ClassVar[frozenset[str]] = Work.TAKES | {"start_jitter", "trace", "method", "watch"}
    KEEPS_OPERATION: ClassVar[bool] = False  # messages may be gathered

    compressor: str = ""

    @classmethod
    def read(cls, given: str) -> CompressedWork:
        """Return the collective of a compressor."""
        return cls(compressor=given)

    def plan(self, scenario: Scenario) -> CompressedPlan:
        """Plan the collective of its messages."""
        return compressed(plan_collective(scenario), self.compressor)
