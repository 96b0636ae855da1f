"""Draws of the hash of routes: a time is the median of several, with the fastest and the slowest, where they differ.

A hash of ECMP is one of many that switches may have. Only routes are drawn anew: placement, data, faults and jitter
keep their seed. The result is that of a real draw, so that its links and bytes belong to its time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_times
from commsim.core.network import SWITCH, Network
from commsim.core.result import OverHashes, Result
from commsim.prediction.scenario import Wish
from commsim.prediction.work_plan import Outcome, WorkPlan
from commsim.routing.routing import drawn_together

# Draws of every door, unless it is told; and where one takes seconds: of this many messages, and of packets.
HASHES, FEW, MANY = 8, 3, 200_000
# Draws at most while all are alike though cables have unequal rates, and up to how many messages: of two messages that
# cross, one in four draws may be the only one that avoids a slow cable.
MOST_ALIKE, FEW_MESSAGES = 64, 2_000
# Draws of a ratio of two medians of so few messages: with 8 it is off by up to 10 % (all-to-all of 32 hosts, 8 spines).
OF_RATIO = 64
# Relative difference of times from which on the hash matters.
DIFFERS = 0.01
# Part of the busiest link's time: where the hash moves messages that take as long, two that meet may be the busiest.
MOVED = 0.5
# Engines in which messages share links.
SHARING = ("flow", "packet")
__all__ = ["HASHES", "alike", "draws_of", "hash_seeds", "may_matter", "median_draw", "middle"]


def hash_seeds(seed: int, n: int) -> list[int]:
    """Return the seeds of draws 1 to n - 1, each a hash of the seed and the draw's number that users can name.

    Draw 0 is that of the seed itself. Seeds that users count up share no draws.

    Parameters
    ----------
    seed : int
        Seed of the scenario.
    n : int
        Number of draws.

    References
    ----------
    numpy.random.SeedSequence, whose 32 bits are the same in every version and on every machine.
    """
    return [int(np.random.SeedSequence([seed, k]).generate_state(1)[0]) for k in range(1, n)]


def usual_hashes(plan: WorkPlan, size: float, engine: str, *, is_ratio: bool) -> int:
    """Return the number of draws where none is asked for: fewer where one takes seconds, more for a ratio."""
    if is_ratio and engine == "flow" and _messages(plan, size) <= FEW_MESSAGES:
        return OF_RATIO
    return FEW if engine == "packet" or _messages(plan, size) > MANY else HASHES


def _messages(plan: WorkPlan, size: float) -> int:
    return sum(schedule.n_transfers for schedule in plan.at(size).schedules)


def draws_of(
    network: Network,
    first: Outcome,
    seeds: Sequence[int],
    play: Callable[[int], Outcome],
    more: Iterable[int] = (),
) -> list[Outcome]:
    """Return the first draw and those of other seeds; two where the hash cannot matter.

    Parameters
    ----------
    network : Network
        Network whose routes are hashed.
    first : Outcome
        First draw.
    seeds : sequence of int
        Seeds of the others.
    play : callable
        Function from a seed to a draw.
    more : iterable of int
        Seeds that are tried while all draws are alike though the hash may matter.
    """
    draws = [first]
    for k, seed in enumerate(seeds):
        with expected_times(len(seeds) - k if k else 2):  # after the second there are none or all others
            draws.append(play(seed))
        if len(draws) == 2 and not may_matter(network, first.results, draws[1].results):
            return draws
    for seed in more if len(draws) > 1 and alike(_times(draws)) else ():
        draws.append(play(seed))
        if not alike(_times(draws)):
            break
    return draws


def more_seeds(network: Network, seed: int, n: int, *, is_small: bool) -> list[int]:
    """Return the seeds behind the first `n` draws, for as long as all are alike; none behind a single one.

    Where all cables among which a hash chooses have one rate, the usual draws say whether messages meet.
    """
    if n < 2 or not is_small:
        return []
    rates = network.bandwidth[_between_ends_with_a_choice(network)]
    uneven = len(rates) > 0 and float(rates.min()) < float(rates.max())
    return hash_seeds(seed, MOST_ALIKE)[max(0, n - 1) :] if uneven else []


def _times(draws: Sequence[Outcome]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[result.time for result in draw.results] for draw in draws])


def median_draw(plan: WorkPlan, size: float, wish: Wish, *, is_ratio: bool) -> Outcome:
    """Predict one size with several hashes; see :func:`commsim.prediction.plans.run.over_hashes`."""
    observed = wish.trace or wish.model.watch is not None or wish.model.capture is not None
    quiet = wish.but(trace=False, watch=None, capture=None)
    with drawn_together((wish.seed if wish.hash_seed is None else wish.hash_seed, *hash_seeds(wish.seed, 2))):
        first = plan.outcome(size, quiet)
    engine = first.results[0].engine
    one = dataclasses.replace(quiet.with_engine(engine), hashes=1)
    n = (wish.hashes or usual_hashes(plan, size, engine, is_ratio=is_ratio)) if engine in SHARING else 1
    others = hash_seeds(wish.seed, n)
    seeds: list[int | None] = [wish.hash_seed, *others]
    few = engine in SHARING and _messages(plan, size) <= FEW_MESSAGES
    more = more_seeds(plan.network, wish.seed, n, is_small=few)
    with drawn_together(others[1:]):
        draws = draws_of(
            plan.network, first, others, lambda seed: plan.outcome(size, dataclasses.replace(one, hash_seed=seed)), more
        )
    seeds += more
    times = _times(draws)
    k = 0 if alike(times) else middle(times)
    found = draws[k]
    if observed:
        again = dataclasses.replace(wish, hashes=1, hash_seed=seeds[k])
        found = plan.outcome(size, again)
    remarks = first.remarks
    results = found.results
    if not alike(times):
        results = tuple(
            dataclasses.replace(result, hashes=OverHashes(len(draws), float(of.min()), float(of.max()), seeds[k]))
            for result, of in zip(results, times.T, strict=True)
        )
    return dataclasses.replace(found, results=results, remarks=remarks)


def alike(times: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> bool:
    """Whether all draws have the same times: float64[n_draws, n_results], s."""
    return bool((times.max(axis=0) <= (1 + DIFFERS) * times.min(axis=0)).all())


def middle(times: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> int:
    """Return the first draw with the median time."""
    relative = (times / np.where(times[0] > 0, times[0], 1.0)).mean(axis=1)
    return int(np.flatnonzero(relative == np.sort(relative)[(len(relative) - 1) // 2])[0])


def may_matter(network: Network, a: Sequence[Result], b: Sequence[Result]) -> bool:
    """Whether two draws differ, or another may: where messages that meet, or a slower cable, could be the busiest link.

    Two draws that are alike by chance say nothing: what cables carry in them is held against the slowest cable.
    """
    times = np.array([[result.time for result in draw] for draw in (a, b)])
    return not alike(times) or _may_be_busiest(network, a, b)


def _may_be_busiest(network: Network, a: Sequence[Result], b: Sequence[Result]) -> bool:
    load = [np.sum([result.link_bytes for result in one], axis=0) for one in (a, b)]
    most = np.maximum(*load)
    moved = np.abs(load[0] - load[1]) > DIFFERS * most
    cables = moved | _between_ends_with_a_choice(network)
    if not cables.any():
        return False
    rate = np.where(moved, network.bandwidth, np.inf)
    slowest = min(float(rate.min()), float(network.bandwidth[cables].min()))
    busiest = float((load[0] / network.bandwidth).max(initial=0.0))
    return bool(most[cables].max() / slowest >= MOVED * busiest > 0)


def _between_ends_with_a_choice(network: Network) -> NDArray[np.bool_]:
    """Links outside of machines between nodes that have several, one of them a switch: what a hash may choose among."""
    machine, src, dst = network.machine, network.src, network.dst
    switched = (network.kind[src] == SWITCH) | (network.kind[dst] == SWITCH)
    outside = (machine[src] < 0) | (machine[src] != machine[dst])
    degree = np.bincount(src[outside], minlength=network.n_nodes)
    found: NDArray[np.bool_] = outside & switched & (degree[src] > 1) & (degree[dst] > 1)
    return found
