"""Advice: all all-reduces of a tensor on a network, ranked, with the bottleneck of each and the crossover densities."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.jit import Kernel
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import count_text, format_size, format_time
from commsim.core.value import Shown
from commsim.engine.flow_paths import COMPILES as EVENTS
from commsim.prediction.bounds.limited_by import Limit, limit_of, row_of_limit
from commsim.prediction.options import Quantity
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import changed_network
from commsim.ranking.contenders import (
    about_given,
    blaming,
    launch_of,
    prepare_all,
    priced_apart,
    skipped,
    with_launch,
)
from commsim.ranking.rank_algorithms import rank_algorithms
from commsim.sparse.plan_sparse import links_only

from .bottleneck import Bound, find_bound
from .candidates import NOT_PROGRAMMABLE, Alternative, candidates
from .crossovers import CrossoverAnswer, about_data, density_of_crossover, gains_of_servers, way_compared_with
from .question import Question, question_of

IN_RUNS = "non-zero elements are assumed in runs of {0} (--block); scattered ones make blocks pay far less"
REDUCED = "has fewer servers or partitions than it might: with more it is faster"
__all__ = ["Advice", "CrossoverAnswer", "Question", "TimedAlternative", "advise", "advise_for"]


@dataclass(frozen=True, slots=True)
class TimedAlternative:
    """One way with its time.

    Parameters
    ----------
    candidate : Alternative
        Way that was predicted.
    result : Result
        Result of the flow engine.
    bound : Bound
        What its time is made of.
    block : int
        Elements in which its data is sparse; 0 where it is dense.
    limit : Limit, optional
        What limits the time, in the words of all verbs.
    """

    candidate: Alternative
    result: Result
    bound: Bound
    block: int
    limit: Limit | None = None

    def row(self) -> dict[str, Any]:
        """Return the JSON row: that of ``commsim run``, with the way to name it there, and what it is bound by."""
        return (
            self.result.row()
            | {
                "spec": self.candidate.spec,
                "density": self.candidate.density,
                "way": self.candidate.way,
                "exact": self.candidate.exact,
                "bound_by": self.bound.phrase,
                "bound_term": self.bound.term,
                "terms_s": self.bound.terms,
                "busiest_link": self.bound.busiest_link or None,
                "busiest_link_busy": self.bound.busy,
            }
            | row_of_limit(self.limit)
        )


@dataclass(frozen=True, slots=True, repr=False)
class Advice(Shown):
    """The answer.

    Parameters
    ----------
    ranked : tuple of TimedAlternative
        The fastest first.
    ready : mapping of str to Plan
        Simulated collectives by spec, to ask more of them.
    left_out : mapping of str to str
        Reason for each spec or name that was not.
    notes : tuple of Remark
        What was derived or assumed, and should be printed.
    partitioned : mapping of (str, str) to tuple of str
        Specs that were tried, by group: one with several numbers of partitions, the fastest of them ranked.
    question : Question
        Question, with the number of servers that the network has places for.
    network : Network
        Network with its faults and costs.
    assumed : tuple of Remark
        What the times assume.
    whole : mapping of str to float, s, optional
        Time of each way by its label on the network without its faults, where it has some.
    launch : float, s
        Launch of a call that all times have, where one way is a call of the GPUs' library; else 0.
    """

    ranked: tuple[TimedAlternative, ...]
    ready: Mapping[str, Plan]
    left_out: Mapping[str, str]
    notes: tuple[Remark, ...]
    partitioned: Mapping[tuple[str, str], tuple[str, ...]]
    question: Question
    network: Network
    assumed: tuple[Remark, ...] = ()
    whole: Mapping[str, float] | None = None
    launch: float = 0.0

    @property
    def times(self) -> dict[str, float]:
        """Time of each way by its label, s."""
        return {ranked.candidate.label: ranked.result.time for ranked in self.ranked}

    def rows(self) -> list[dict[str, Any]]:
        """Return the JSON rows: the ways, the fastest first."""
        if self.whole is None:
            return [ranked.row() for ranked in self.ranked]
        return [ranked.row() | {"whole_s": self.whole.get(ranked.candidate.label)} for ranked in self.ranked]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was derived or assumed, and what was left out."""
        return (*self.notes, *skipped(self.left_out), *self.assumed)

    def __repr__(self) -> str:
        first = self.ranked[0]
        question = f"{format_size(first.result.size)}, {count_text(first.result.n_ranks, 'worker')}"
        best = f"{first.candidate.label} {format_time(first.result.time)}"
        return f"Advice({question}, {count_text(len(self.ranked), 'way')}, the best: {best})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each way, the fastest first, as a data frame of pandas or polars."""
        return frame_of(self.rows(), library)

    def crossover(self, against: str = "") -> CrossoverAnswer:
        """Find from which density on dense ways are faster, or the one that `against` names, by further predictions."""
        return density_of_crossover(self.question, self, against)

    def require_way(self, against: str) -> None:
        """Refuse what no crossover is sought against, as :meth:`crossover` does, before a ranking is printed."""
        way_compared_with(self.question, self, against)

    def servers(self) -> CrossoverAnswer:
        """Find up to how many CPU servers BytePS gains, by further predictions."""
        return gains_of_servers(self.question, self.network)


def advise_for(
    network: Network,
    size: float | None = None,
    *,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: Quantity = None,
    reduce_rate: Quantity = None,
    software: str | None = None,
    seed: int = 0,
    **asked: Any,
) -> Advice:
    """Rank every way to sum a tensor on a network with faults and costs; say what the faults cost.

    Parameters
    ----------
    network : Network
        Network without the faults.
    size : float, bytes, optional
        Size of each worker's tensor. Default: that of the gradients.
    fail, scale, overhead, reduce_rate, software
        Same as in :func:`commsim.prediction.read.changed_network`.
    seed : int
        Seed of data, faults and placement.
    **asked
        Further parameters of :func:`.question.question_of`.

    Raises
    ------
    InputError
        If something is wrong, or nothing can run.
    """
    costs: dict[str, Any] = {"overhead": overhead, "reduce_rate": reduce_rate, "software": software}
    faulty, drawn = changed_network(network, fail=fail, scale=scale, seed=seed, **costs)
    question = question_of(faulty, size, seed=seed, **asked).on(faulty)
    advice = advise(question, faulty)
    whole = None
    if fail or scale:
        whole = advise(question, changed_network(network, **costs)[0]).times
    notes = tuple(dict.fromkeys((*drawn, *about_data(question, advice), *advice.notes)))
    return dataclasses.replace(advice, notes=notes, whole=whole)


def advise(question: Question, network: Network) -> Advice:
    """Predict every way on the flow engine, and rank them.

    Parameters
    ----------
    question : Question
        Question, as :meth:`.question.Question.on` returns it.
    network : Network
        Network that the workers are on.

    Raises
    ------
    InputError
        If nothing can run.
    """
    ways, left_out = candidates(question, network)
    by_spec = {candidate.spec: candidate for candidate in ways}
    size, known, fastest = int(question.size), dict[str, Result](), dict[tuple[str, str], str]()

    def predict(spec: str, plan: Plan) -> None:
        """Predict, at once with the times of transfers where they come from the same simulation."""
        with blaming(spec):
            known[spec] = plan.run(size, dataclasses.replace(question.wish, trace=plan.at(size).paths.traced_alike))
        other = fastest.setdefault(by_spec[spec].group, spec)
        if known[spec].time < known[other].time:
            fastest[by_spec[spec].group] = spec
            known[other] = dataclasses.replace(known[other], trace=None)

    if question.is_sparse:  # messages that differ are simulated event by event
        Kernel.needed_soon = EVENTS
    ready, refused = prepare_all(
        list(by_spec),
        network,
        n_ranks=question.n_workers,
        probe=predict,
        placement=question.placement,
        routing=question.routing,
        seed=question.seed,
    )
    launch = launch_of(ready.values())
    order = rank_algorithms(list(ready), [size], lambda spec, _: with_launch(ready[spec], known[spec], launch)).by_size[
        size
    ]
    best: dict[tuple[str, str], TimedAlternative] = {}
    tried: dict[tuple[str, str], tuple[str, ...]] = {}
    for spec, result in order:
        candidate = by_spec[spec]
        tried[candidate.group] = (*tried.get(candidate.group, ()), spec)
        if candidate.group not in best:
            sized = ready[spec].at(size)
            wish = dataclasses.replace(question.wish, trace=True).of_draw(result)
            traced = result if result.trace is not None else with_launch(sized, sized.run(size, wish), launch)
            untraced = dataclasses.replace(result, trace=None)
            own = untraced.time - known[spec].time  # of the launch
            called = dataclasses.replace(sized, before=sized.before + own)
            bound = find_bound(called.hashed_by(wish.hash_seed), traced)
            best[candidate.group] = TimedAlternative(
                candidate, untraced, bound, _block(ready[spec]), limit_of(sized, untraced)
            )
    remarks = (note for prepared in ready.values() for note in prepared.notes if note.code != "data")
    small = (Remark("reduced", f"{c.label} {REDUCED}", needed=True) for c in ways if c.reduced and c.spec in ready)
    notes = tuple(dict.fromkeys((*remarks, *small)))
    ranked = {row.candidate.label: ready[row.candidate.spec] for row in best.values()}
    assumed = about_given(ranked, network)
    if any(getattr(reason, "code", "") == NOT_PROGRAMMABLE for reason in left_out.values()):
        text = "systems that aggregate in switches are left out: --programmable assumes such switches"
        assumed = [*assumed, Remark(NOT_PROGRAMMABLE, text)]
    assumed += priced_apart(ranked, question.size)
    names = dict.fromkeys(plan.schedule.name for plan in ranked.values() if plan.data is not None)
    assumed += [one.of(name) for name in names for one in links_only(name, network)]
    if question.densities and question.gradients is None and question.block is None:
        assumed.append(Remark("data-in-runs", IN_RUNS.format(question.run), needed=True))
    return Advice(
        tuple(best.values()), ready, left_out | refused, notes, tried, question, network, assumed=tuple(assumed),
        launch=launch,
    )  # fmt: skip


def _block(prepared: Plan) -> int:
    return 0 if prepared.data is None else prepared.data.block
