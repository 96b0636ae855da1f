"""How fast an operation can be at best, how far each algorithm is from it, and which schedule is the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from commsim.api import scenario_of
from commsim.core.units import parse_time, si_of
from commsim.prediction.checks import check_names, checked, checked_all
from commsim.prediction.inputs import NetworkLike, PlacementLike, SizeLike, network_of, sizes_of
from commsim.prediction.options import CostOptions, RankedOptions, takes
from commsim.prediction.read import changed_network as with_options
from commsim.prediction.scenario import ENGINES
from commsim.ranking.rank_algorithms import Ranking
from commsim.ranking.rank_algorithms import rank as rank_scenario
from commsim.ranking.synthesis import LowerBound
from commsim.ranking.synthesis.cost_of_faults import synthesize_for
from commsim.ranking.synthesis.made_schedules import MAX_MESSAGES
from commsim.ranking.synthesis.over_bound import OverBound, bound_of
from commsim.ranking.synthesis.over_bound import over_bound as bounded
from commsim.ranking.synthesis.synthesize import Synthesis

__all__ = ["lower_bound", "over_bound", "rank", "synthesize"]


@takes(RankedOptions)
def rank(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
    synthesized: bool = False,
    **options: Unpack[RankedOptions],
) -> Ranking:
    """Rank all algorithms of an operation on a network, by size.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network
        Same as in :func:`scenario_of`.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    algorithms : sequence of str
        Algorithms to rank. Default: all that implement the operation.
    named : sequence of str
        Further algorithms, such as ``nccl``, which have to run; switches are assumed to be programmable for these
        alone.
    synthesized : bool
        Whether the schedules that :func:`commsim.synthesize` makes are ranked too.
    **options
        Keywords of :class:`commsim.prediction.options.RankedOptions`.

    Raises
    ------
    InputError
        If the operation is unknown, or no algorithm can run.
    TypeError
        If a keyword is no option.

    Examples
    --------
    >>> import commsim as cs
    >>> ranking = cs.rank("broadcast", "star:n_hosts=8,latency=1us", ["1KiB", "64MiB"])
    >>> [found[0][0] for found in ranking.by_size.values()]
    ['binomial_broadcast', 'chain_broadcast']
    """
    check_names(options, RankedOptions)
    operation = checked("operation", operation)
    asked = scenario_of("", network, operation=operation, **options)
    return rank_scenario(
        asked, operation, [int(s) for s in sizes_of(sizes)], synthesized=synthesized,
        **checked_all({"algorithms": algorithms, "named": named}),
    )  # fmt: skip


def lower_bound(
    operation: str,
    network: NetworkLike,
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: float | str | None = None,
    root: int = 0,
    anywhere: bool = False,
) -> LowerBound:
    """Bound the time of an operation from below, for every schedule that anyone may find.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, seed, fail, scale, overhead
        Same as in :func:`scenario_of`.
    root : int
        Root, of operations that have one.
    anywhere : bool
        Whether servers on spare hosts and switches that add may help.

    Examples
    --------
    >>> import commsim as cs
    >>> least = cs.lower_bound("all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=0us", overhead="0us")
    >>> least.time(100e6) == 2 * 3 / 4 * 100e6 / 12.5e9
    True
    """
    operation, root = checked("operation", operation), checked("root", root)
    scenario = scenario_of(
        "", network, n_ranks=n_ranks, placement=placement, seed=seed, fail=fail, scale=scale, overhead=overhead
    )
    return bound_of(scenario, operation, root=root, anywhere=anywhere)


@takes(CostOptions)
def over_bound(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    engine: str = ENGINES[0],
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
    **options: Unpack[CostOptions],
) -> OverBound:
    """Predict the algorithms of an operation, and compare their times with the lower bound, as ``commsim bound`` does.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, seed, fail, scale, engine
        Same as in :func:`scenario_of`.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    algorithms, named
        Same as in :func:`commsim.rank`.
    **options
        Keywords of :class:`commsim.prediction.options.CostOptions`.

    Examples
    --------
    >>> import commsim as cs
    >>> found = cs.over_bound("all_gather", "star:n_hosts=4,latency=0us", "64MiB", overhead="0us",
    ...                       algorithms=["ring_all_gather"])
    >>> [round(one.times_bound, 3) for one in found.ratios]
    [1.0]
    """
    operation, where = checked("operation", operation), network_of(network)
    check_names(options, CostOptions)
    scenario = scenario_of(
        "", where, n_ranks=n_ranks, placement=placement, seed=seed, fail=fail, scale=scale, engine=engine, **options
    )
    whole = with_options(where, **options)[0] if fail or scale else None
    return bounded(
        scenario, operation, [int(size) for size in sizes_of(sizes)], whole=whole,
        **checked_all({"algorithms": algorithms, "named": named}),
    )  # fmt: skip


@takes(CostOptions)
def synthesize(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    root: int = 0,
    time_limit: float | str | None = None,
    max_messages: int = MAX_MESSAGES,
    textbook: bool = True,
    running: str | None = None,
    **options: Unpack[CostOptions],
) -> Synthesis:
    """Make the fastest schedules for an operation on a network, with a proven lower bound.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, seed, fail, scale
        Same as in :func:`scenario_of`.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    root : int
        Root, of operations that have one.
    time_limit : float, s, or str, optional
        Time after which nothing new is tried.
    max_messages : int
        Number of messages above which schedules are not tried.
    textbook : bool
        Whether registered collectives are tried too.
    running : str, optional
        Schedule that runs without the faults. Default: the fastest registered collective.
    **options
        Keywords of :class:`commsim.prediction.options.CostOptions`.

    Examples
    --------
    >>> import commsim as cs
    >>> found = cs.synthesize("all_gather", "ring:n_hosts=4", "1MiB")
    >>> found.best(2**20).time <= cs.predict("ring_all_gather", "ring:n_hosts=4", "1MiB").time
    True
    """
    operation, where = checked("operation", operation), network_of(network)
    root, max_messages = checked("root", root), checked("max_messages", max_messages)
    check_names(options, CostOptions)
    scenario = scenario_of(
        "", where, n_ranks=n_ranks, placement=placement, seed=seed, fail=fail, scale=scale, **options
    )  # fmt: skip
    limit = None if time_limit is None else si_of(time_limit, parse_time, "time_limit")
    return synthesize_for(
        scenario, operation, [int(size) for size in sizes_of(sizes)],
        whole=with_options(where, **options)[0] if fail or scale else None, running=running, root=root,
        time_limit=limit, max_messages=max_messages, textbook=textbook,
    )  # fmt: skip
