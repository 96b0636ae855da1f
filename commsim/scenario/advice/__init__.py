"""Advice: all all-reduces of a tensor on a network, ranked, with the bottleneck of each and the crossover densities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.core.frames import frame_of
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.core.units import counted, format_size, format_time
from commsim.core.value import Shown
from commsim.scenario import Plan
from commsim.scenario.contenders import prepare_all, skipped, with_assumed_overhead
from commsim.scenario.ranking import rank_algorithms

from .bottleneck import Bound, find_bound
from .candidates import Candidate, candidates
from .question import Question

REDUCED = "has fewer servers or partitions than it might, so that the answer comes in seconds: with more it is faster"
__all__ = ["Advice", "Question", "Ranked", "advise"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One way with its time.

    Parameters
    ----------
    candidate : Candidate
        Way that was predicted.
    result : Result
        Result of the flow engine.
    bound : Bound
        What its time is made of.
    block : int
        Elements in which its data is sparse; 0 where it is dense.
    """

    candidate: Candidate
    result: Result
    bound: Bound
    block: int

    def row(self) -> dict[str, Any]:
        """Return the JSON row: that of ``commsim run``, with the way to name it there, and what it is bound by."""
        return self.result.row() | {
            "spec": self.candidate.spec,
            "way": self.candidate.way,
            "exact": self.candidate.exact,
            "bound_by": self.bound.phrase,
            "bound_term": self.bound.term,
            "terms_s": self.bound.terms,
            "busiest_link": self.bound.busiest_link or None,
            "busiest_link_busy": self.bound.busy,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Advice(Shown):
    """The answer.

    Parameters
    ----------
    ranked : tuple of Ranked
        The fastest first.
    ready : mapping of str to Plan
        Simulated collectives by spec, to ask more of them.
    left_out : mapping of str to str
        Reason for each spec or name that was not.
    notes : tuple of str
        What was derived or assumed, and should be printed.
    partitioned : mapping of (str, str) to tuple of str
        Specs that were tried, by group: one with several numbers of partitions, the fastest of them ranked.
    """

    ranked: tuple[Ranked, ...]
    ready: Mapping[str, Plan]
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    partitioned: Mapping[tuple[str, str], tuple[str, ...]]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was derived or assumed, and what was left out."""
        return (*self.notes, *skipped(self.left_out))

    def __repr__(self) -> str:
        first = self.ranked[0]
        asked = f"{format_size(first.result.size)}, {counted(first.result.n_ranks, 'worker')}"
        best = f"{first.candidate.label} {format_time(first.result.time)}"
        return f"Advice({asked}, {counted(len(self.ranked), 'way')}, the best: {best})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each way, the fastest first, as a data frame of pandas or polars."""
        return frame_of((ranked.row() for ranked in self.ranked), library)


def advise(question: Question, network: Network, *, assume_overhead: bool = False) -> Advice:
    """Predict every way on the flow engine, and rank them.

    Parameters
    ----------
    question : Question
        Question, as :meth:`.question.Question.on` returns it.
    network : Network
        Network that the workers are on.
    assume_overhead : bool
        Whether messages cost what :func:`commsim.scenario.contenders.with_assumed_overhead` says, as in ``run
        --operation``.

    Raises
    ------
    InputError
        If nothing can run.
    """
    ways, left_out = candidates(question, with_assumed_overhead(network) if assume_overhead else network)
    by_spec = {candidate.spec: candidate for candidate in ways}
    ready, refused = prepare_all(
        list(by_spec),
        network,
        n_ranks=question.n_workers,
        probe=lambda _, plan: plan.data and plan.data.messages(question.size),
        placement=question.placement,
        routing=question.routing,
        seed=question.seed,
        assume_overhead=assume_overhead,
    )
    size = int(question.size)
    order = rank_algorithms(list(ready), [size], lambda spec, size: ready[spec].predict(size)).by_size[size]
    best: dict[tuple[str, str], Ranked] = {}
    tried: dict[tuple[str, str], tuple[str, ...]] = {}
    for spec, result in order:
        candidate = by_spec[spec]
        tried[candidate.group] = (*tried.get(candidate.group, ()), spec)
        if candidate.group not in best:
            sized = ready[spec].at(size)
            bound = find_bound(sized, sized.predict(size, trace=True))
            best[candidate.group] = Ranked(candidate, result, bound, _block(ready[spec]))
    said = (note for prepared in ready.values() for note in prepared.notes if not _is_about_data(prepared, note))
    small = (f"{c.label} {REDUCED}" for c in ways if c.reduced and c.spec in ready)
    notes = tuple(dict.fromkeys((*said, *small)))
    return Advice(tuple(best.values()), ready, left_out | refused, notes, tried)


def _block(prepared: Plan) -> int:
    return 0 if prepared.data is None else prepared.data.block


def _is_about_data(prepared: Plan, note: str) -> bool:
    """Whether a note says what the data is, which is the same for all and in the question."""
    return prepared.data is not None and note.endswith(prepared.data.note)
