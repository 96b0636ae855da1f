"""Kernels of contention: what overload costs each job on a link, and the best shift of a job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, long_loops
from commsim.training.sharing.shared_links_tables import JOB_ROW, LINK_ROW, PHASE_ROW, USE_ROW, SharedLinks
from commsim.training.sharing.shared_rates_kernel import SolveReach, fill_class

from .shifted_rates import ShiftedRates

F = NDArray[np.float64]
# Levels of a job and jobs of a link up to which instants with the same rates are recognised: three bits for each job.
_LEVELS, _JOBS = 8, 20
_BLOCK = 256  # instants


@long_loops
@kernel
def stretch(rates: F, use: F, capacity: float, extra: F, row: NDArray[np.intp]) -> None:
    """Compute how much longer each job sends because of the others on one link, at each instant.

    At every instant the bytes that the jobs would send in one unit of time are served by the link as a fluid, max-min
    fairly, no job faster than its own rate, until all are sent. What a job needs beyond one unit of time is its extra.
    Jobs have few rates: an instant with the rates of an earlier one has its extra.

    Parameters
    ----------
    rates : float64[n_jobs, n_instants], bytes/s
        What each job would send.
    use : float64[n_jobs]
        How many times its rate the link carries.
    capacity : float, bytes/s
        Capacity of the link.
    extra : float64[n_rows, n_instants]
        Written: extra time per time; 0 where the link is not overloaded.
    row : intp[n_jobs]
        Rows of the jobs in `extra`.
    """
    n_jobs, n_instants = rates.shape
    job, one_use, link = np.zeros(n_jobs, JOB_ROW), np.zeros(n_jobs, USE_ROW), np.zeros(1, LINK_ROW)
    user, nothing = np.empty(n_jobs, np.int32), np.empty(0, np.int64)
    for j in range(n_jobs):
        job[j]["first_use"], job[j]["end_use"], job[j]["weight"] = j, j + 1, 1.0
        one_use[j]["share"], user[j] = use[j], j
    link[0]["end_user"] = n_jobs
    t = SharedLinks(job, np.empty(0, PHASE_ROW), one_use, link, user, nothing)
    reached = SolveReach(np.empty(n_jobs, np.int32), np.zeros(1, np.int32))
    level, n_levels = np.empty((n_jobs, _LEVELS)), np.zeros(n_jobs, np.int64)
    key_at, first_at = np.empty(4 * n_instants, np.int64), np.full(4 * n_instants, -1)
    for n in range(n_instants):
        total = 0.0
        for j in range(n_jobs):
            job[j]["left"] = job[j]["own_rate"] = rates[j, n]
            extra[row[j], n] = 0.0
            total += use[j] * rates[j, n]
        if total <= capacity * (1.0 + 1e-9):
            continue
        same = _instant_like(rates, n, level, n_levels, key_at, first_at)
        if same < n:
            for j in range(n_jobs):
                extra[row[j], n] = extra[row[j], same]
            continue
        now = 0.0
        while total > capacity * (1.0 + 1e-9):
            n_left = 0
            for j in range(n_jobs):
                if job[j]["left"] > 0.0:
                    job[j]["unfrozen"] = True
                    reached.job[n_left] = j
                    n_left += 1
            link[0]["free"] = capacity
            fill_class(t, reached, (n_left, 1), 0)
            step = np.inf
            for j in range(n_jobs):
                if job[j]["left"] > 0.0:
                    step = min(step, job[j]["left"] / job[j]["rate"])
            now += step
            total = 0.0
            for j in range(n_jobs):
                if job[j]["left"] > 0.0:
                    job[j]["left"] -= step * job[j]["rate"]
                    if job[j]["left"] <= 1e-9 * rates[j, n]:
                        job[j]["left"] = 0.0
                        extra[row[j], n] = now - 1.0
                    else:
                        total += use[j] * rates[j, n]
        for j in range(n_jobs):
            if job[j]["left"] > 0.0 and now > 0.0:
                extra[row[j], n] = now + job[j]["left"] / rates[j, n] - 1.0


@kernel
def _instant_like(
    rates: F, n: int, level: F, n_levels: NDArray[np.int64], key_at: NDArray[np.int64], first_at: NDArray[np.int64]
) -> int:
    """Return the first instant at which all jobs have the rates that they have at instant `n`; `n` if none is known.

    Parameters
    ----------
    level : float64[n_jobs, _LEVELS], bytes/s
        Rates that were met, of which each job has `n_levels`.
    key_at, first_at : int64[n_places]
        Hash table: keys made of the numbers of the jobs' levels, and the first instant of each; -1 where none is.
    """
    n_jobs, key = len(rates), 0
    if n_jobs > _JOBS:
        return n
    for j in range(n_jobs):
        k = 0
        while k < n_levels[j] and level[j, k] != rates[j, n]:
            k += 1
        if k == _LEVELS:
            return n
        if k == n_levels[j]:
            level[j, k] = rates[j, n]
            n_levels[j] += 1
        key = key * _LEVELS + k
    at = (key ^ (key >> 13) ^ (key >> 29)) % len(key_at)
    while first_at[at] >= 0:
        if key_at[at] == key:
            return int(first_at[at])
        at = at + 1 if at + 1 < len(key_at) else 0
    key_at[at], first_at[at] = key, n
    return n


@long_loops
@kernel
def largest_of(extra: F, row: NDArray[np.intp], largest: F) -> None:
    """Write the largest extra of some rows at each instant.

    Parameters
    ----------
    extra : float64[n_rows, n_instants]
    row : intp[n]
    largest : float64[n_instants]
        Written: 0 without a row.
    """
    for n in range(len(largest)):
        largest[n] = 0.0
    for r in row:
        of = extra[r]
        for n in range(len(largest)):
            largest[n] = of[n] if of[n] > largest[n] else largest[n]


@kernel
def link_loads(demand: F, links: NDArray[np.intp], capacity: F, loads: F) -> None:
    """Sum up what is sent over some links.

    Parameters
    ----------
    demand : float64[n_links, n_instants], bytes/s
        What all jobs send over each link.
    links : intp[n]
        Links whose demand has changed.
    capacity : float64[n_links], bytes/s
        Capacity of each link.
    loads : float64[3, n_links], bytes/s
        Written for these links: highest demand, mean demand beyond the capacity, mean demand.
    """
    n_instants = demand.shape[1]
    for link in links:
        highest = over = asked = 0.0
        for n in range(n_instants):
            now = demand[link, n]
            highest = max(highest, now)
            over += max(now - capacity[link], 0.0)
            asked += now
        loads[0, link], loads[1, link], loads[2, link] = highest, over / n_instants, asked / n_instants


@long_loops
@kernel
def shift_excess(
    demand: F, links: NDArray[np.intp], highest: F, use: F, own: F, capacity: F, sent: ShiftedRates, excess: F
) -> None:
    """Sum up by how much a job with each shift exceeds what links can carry beside others.

    A job sends at few rates. By what an instant exceeds the capacity with each of them is summed over the links once,
    then over the instants in the order of the job's iteration. A shift is a few runs of these, so that its sum is a
    few differences.

    Parameters
    ----------
    demand : float64[n_links, n_instants], bytes/s
        What all jobs send over each link.
    links : intp[n]
        Links of the job.
    highest : float64[n], bytes/s
        Highest demand on each of them.
    use : float64[n]
        How many times the job's rate each of them carries.
    own : float64[n_instants], bytes/s
        What the job itself sends now, as part of the demand; 0 of a job that does not send yet.
    capacity : float64[n_links], bytes/s
        Capacity of each link.
    sent : ShiftedRates
        What the job sends with each shift.
    excess : float64[n_shifts]
        Written: excess demand over the capacity, summed over links and instants.
    """
    n_levels, n_instants = len(sent.levels), len(sent.order)
    over, upto = np.zeros((n_levels, n_instants)), np.empty((n_levels, n_instants + 1))
    upto[:, 0] = 0.0
    others = np.empty(_BLOCK)
    for first in range(0, n_instants, _BLOCK):  # all rows of a block stay in the nearest cache
        end = min(first + _BLOCK, n_instants)
        for i in range(len(links)):  # loops without branches, which the compiler turns into vector instructions
            base, mine, most, times = demand[links[i], first:end], own[first:end], capacity[links[i]], use[i]
            per = 1.0 / most
            for n in range(len(base)):
                others[n] = base[n] - times * mine[n]
            for k in range(n_levels):
                more, row = times * sent.levels[k] - most, over[k, first:end]
                if highest[i] + more <= 0.0:
                    continue  # it would add zeros
                for n in range(len(base)):
                    beyond = others[n] + more
                    row[n] += (beyond if beyond > 0.0 else 0.0) * per
    for n in range(n_instants):  # the sums of the levels side by side: each waits for its own last addition only
        for k in range(n_levels):
            upto[k, n + 1] = upto[k, n] + over[k, sent.order[n]]
    for s in range(len(excess)):
        excess[s] = 0.0
        for r in range(sent.first_run[s], sent.first_run[s + 1]):
            k = sent.run[r, 0]
            excess[s] += upto[k, sent.run[r, 2]] - upto[k, sent.run[r, 1]]


@long_loops
@kernel
def link_excess(
    demand: F, links: NDArray[np.intp], highest: F, use: F, own: F, capacity: F, sent: ShiftedRates, excess: F
) -> None:
    """Write the sum of :func:`shift_excess` for each link by itself.

    Parameters
    ----------
    demand, links, highest, use, own, capacity, sent
        Same as there.
    excess : float64[n, n_shifts]
        Written: of each link, excess demand over the capacity, summed over instants.
    """
    for i in range(len(links)):
        one = slice(i, i + 1)
        shift_excess(demand, links[one], highest[one], use[one], own, capacity, sent, excess[i])
