"""A profile's step timed again: read, grown to more ranks, and simulated with the costs of a network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.remark import Remark, as_remarks
from commsim.core.result import OverHashes
from commsim.core.units import count_text
from commsim.training.cost_by_simulation import NetworkCosts
from commsim.training.exchanges import ExchangesOnLinks
from commsim.training.hash_ends import spread_of
from commsim.training.task_graph import Task, simulate_graph
from commsim.training.timeline import TaskTimeline

from .exposed import RankWaits, waits_of
from .graph_of_ranks import TracedGraph
from .growth import MAX_FACTOR, growing_groups, grown
from .step import RankStep

ASSUMED = "computation is that of the profile, including pauses that no call explains; ranks begin the step together"


@dataclass(frozen=True, slots=True)
class RetimedStep:
    """A step on a network.

    Parameters
    ----------
    traced : TracedGraph
        What every rank does, those that were added included.
    timeline : TaskTimeline
        When.
    waits : RankWaits
        Waiting of the rank that waits the longest.
    notes : tuple of Remark
        What was assumed, drawn and chosen.
    hashes : OverHashes, optional
        The step with each exchange at the fastest and the slowest hash of its routes.
    """

    traced: TracedGraph
    timeline: TaskTimeline
    waits: RankWaits
    notes: tuple[Remark, ...]
    hashes: OverHashes | None = None


def more_ranks(
    traced: TracedGraph, steps: Sequence[RankStep], ranks: int | None, grow: Collection[str]
) -> tuple[TracedGraph, list[str]]:
    """Return the step of more ranks, and what was assumed.

    Parameters
    ----------
    traced, steps
        A profile, from :func:`commsim.profiles.read_ranks.traced_graph`.
    ranks : int, optional
        Number of all ranks, by default that of the profile.
    grow : collection of str
        Process groups that grow; by default the data-parallel one.

    Raises
    ------
    InputError
        If the ranks are no multiple of those of the profile, or it is not clear which group grows.
    """
    factor, rest = divmod(traced.world if ranks is None else ranks, traced.world)
    if rest or not 1 <= factor <= MAX_FACTOR:
        raise InputError(
            f"--ranks must be the {traced.world} ranks of the profile, times 1 to {MAX_FACTOR}, got {ranks}"
        )
    growing, said = growing_groups(traced, grow) if factor > 1 or grow else (frozenset[str](), [])
    return grown(traced, growing, factor), [*traced.notes, *said, *_assumed(traced, steps, factor)]


def retime(whole: TracedGraph, time_of: Callable[[Task], float], notes: Sequence[str] = ()) -> RetimedStep:
    """Simulate a step with what communication costs; exchanges that overlap on a network share its links.

    Parameters
    ----------
    whole : TracedGraph
        What every rank does.
    time_of : callable
        Seconds that an exchange costs by itself.
    notes : sequence of str
        What was assumed before.
    """

    def links_of(of: Callable[[Task], float]) -> ExchangesOnLinks | None:
        return ExchangesOnLinks(of) if isinstance(of, NetworkCosts) else None

    links = links_of(time_of)
    timeline = simulate_graph(whole.graph, time_of, links)
    hashes = spread_of(
        time_of, lambda of: simulate_graph(whole.graph, of, links_of(of)).iteration_time, timeline.iteration_time
    )
    remarks = as_remarks(notes, "read")
    if isinstance(time_of, NetworkCosts):
        remarks += time_of.notes()
    else:
        remarks.append(
            Remark("sharing-left-out", "without --network exchanges that overlap share nothing", needed=True)
        )
    if links is not None and links.n_shared:
        remarks.append(Remark("sharing", f"{count_text(links.n_shared, 'exchange')} overlapped others on shared links"))
    return RetimedStep(whole, timeline, waits_of(whole, timeline), tuple(dict.fromkeys(remarks)), hashes)


def _assumed(traced: TracedGraph, steps: Sequence[RankStep], factor: int) -> list[str]:
    lines = [ASSUMED]
    if len(traced.traced) < traced.world:
        few = f"{len(traced.traced)} of {count_text(traced.world, 'rank')} have a profile"
        lines.append(f"{few}; the others are assumed to do the same at the same time")
    if factor > 1:
        sharded = "arrays of groups that grow keep their size, and shards shrink"
        lines.append(f"each rank of the profile stands for {factor}; {sharded}")
    unseen = sum(wait.rule > 3 for step in steps for wait in step.waits)
    if unseen:
        n = count_text(sum(len(step.waits) for step in steps), "call")
        wait = "where the program waits for them follows from a rule"
        lines.append(f"the profile shows no wait for {unseen} of {n}: {wait}")
    return lines
