"""Kernels of jobs beside others that run: what changed links cost each job, the rest being kept as it was found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel
from commsim.placement.starts.meeting_kernel import MetJobs, late_anywhere, late_at_starts, loss_at, times_of

from .start_kernel import BINS, add_folded, costs_of_starts, meetings_within

HELD = 1e-3  # as in commsim.placement.iteration_times: slow-downs that differ by less keep jobs in their positions
_TIGHT = 1e-9

F = NDArray[np.float64]
I = NDArray[np.int64]  # noqa: E741


class Uses(NamedTuple):
    """Which jobs use which links, by link.

    Parameters
    ----------
    link : int64[n]
        Links, ascending.
    first : int64[n + 1]
        The i-th of them has the entries ``first[i]`` to ``first[i + 1]``.
    job : int64[n_entries]
        Jobs, ascending on each link.
    part : float64[n_entries], s/byte
        Factor that turns a rate of the job into a share of the link's capacity.
    """

    link: I
    first: I
    job: I
    part: F


class Found(NamedTuple):
    """Iteration times that were found for each entry, s; 0 where nothing is exceeded.

    Parameters
    ----------
    held : float64[n_entries]
        At the start times.
    drift : float64[n_entries]
        Where the jobs drift past each other.
    first_of : int64[n_jobs + 1]
        Job j has the entries ``entry_of[first_of[j]]`` to ``entry_of[first_of[j + 1]]``.
    entry_of : int64[n_entries]
    group : int64[n_jobs]
        A job of the group that links join which can be exceeded.
    """

    held: F
    drift: F
    first_of: I
    entry_of: I
    group: I


class JobTimes(NamedTuple):
    """Iteration times of jobs, each float64[n_jobs], s: alone, at their starts, drifting, and what holds."""

    alone: F
    held: F
    drift: F
    final: F


@kernel
def meet_on(jobs: MetJobs, member: I, part: F, late: F, held: F, drift: F) -> float:
    """Write the iteration times of all jobs of a link, and return its score; 2 where its jobs cannot exceed it."""
    peak = 0.0
    for k in range(len(member)):
        peak += part[k] * jobs.row[member[k]]["peak"]
    if peak <= 1.0 + _TIGHT:
        return 2.0
    score = 1.0 - late_at_starts(jobs, member, part, late)
    times_of(jobs, member, part, late, held)
    late_anywhere(jobs, member, part, late)
    times_of(jobs, member, part, late, drift)
    return score


@kernel
def meet_again(jobs: MetJobs, uses: Uses, found: Found, changed: I) -> None:
    """Find the times of the entries of changed links anew.

    Parameters
    ----------
    found : Found
        Its `held` and `drift` are written.
    changed : int64[n]
        Positions of the links in `uses`.
    """
    late = np.zeros(len(jobs.phase))
    for i in changed:
        a, b = uses.first[i], uses.first[i + 1]
        held, drift = np.zeros(b - a), np.zeros(b - a)
        if b - a > 1 and meet_on(jobs, uses.job[a:b], uses.part[a:b], late, held, drift) > 1.0 + _TIGHT:
            for k in range(b - a):
                held[k] = drift[k] = 0.0
        for k in range(b - a):
            found.held[a + k], found.drift[a + k] = held[k], drift[k]


@kernel
def root_of(group: I, j: int) -> int:
    """Return the job that stands for a group."""
    while group[j] != j:
        group[j] = group[group[j]]
        j = group[j]
    return j


@kernel
def join(group: I, a: int, b: int) -> None:
    """Put the groups of two jobs together, under the lower number."""
    a, b = root_of(group, a), root_of(group, b)
    group[max(a, b)] = min(a, b)


@kernel
def sum_up(jobs: MetJobs, uses: Uses, found: Found, times: JobTimes) -> None:
    """Write groups and times of all jobs from what was found for their links."""
    n = len(jobs.row)
    worst = np.zeros(n)
    for e in range(len(uses.job)):
        worst[uses.job[e]] = max(worst[uses.job[e]], uses.part[e])
    for j in range(n):
        found.group[j] = j
        times.alone[j] = jobs.row[j]["period"] + loss_at(jobs, j, worst[j])
        times.held[j] = times.drift[j] = times.alone[j]
    for i in range(len(uses.link)):
        for e in range(uses.first[i], uses.first[i + 1]):
            j = uses.job[e]
            if found.held[e] > 0.0:
                join(found.group, uses.job[uses.first[i]], j)
                times.held[j] = max(times.held[j], found.held[e])
                times.drift[j] = max(times.drift[j], found.drift[e])
    settle(jobs, found.group, times)


@kernel
def settle(jobs: MetJobs, group: I, times: JobTimes) -> None:
    """Write which times hold: where the jobs of a group slow down by different factors, they drift.

    So they do where their periods are not to each other as the rounded ones, for which start times were sought.
    """
    n = len(jobs.row)
    low, high = np.full(n, np.inf), np.zeros(n)
    least, most = np.full(n, np.inf), np.zeros(n)
    for j in range(n):
        root = root_of(group, j)
        group[j] = root
        slow, rounding = times.held[j] / times.alone[j], times.alone[j] / (jobs.row[j]["whole"] * jobs.quantum)
        low[root], high[root] = min(low[root], slow), max(high[root], slow)
        least[root], most[root] = min(least[root], rounding), max(most[root], rounding)
    for j in range(n):
        root = group[j]
        drifts = high[root] - low[root] > HELD or most[root] - least[root] > HELD
        times.final[j] = times.drift[j] if drifts else times.held[j]


@kernel
def gather(uses: Uses, link: int, more: Uses, i: int) -> tuple[I, F, int, int]:
    """Jobs and factors of the i-th link of `more`, those of `uses` first, and where these begin and end."""
    at = np.searchsorted(uses.link, link)
    a = b = 0
    if at < len(uses.link) and uses.link[at] == link:
        a, b = uses.first[at], uses.first[at + 1]
    c, d = more.first[i], more.first[i + 1]
    member, part = np.empty(b - a + d - c, np.int64), np.empty(b - a + d - c)
    for k in range(b - a):
        member[k], part[k] = uses.job[a + k], uses.part[a + k]
    for k in range(d - c):
        member[b - a + k], part[b - a + k] = more.job[c + k], more.part[c + k]
    return member, part, a, b


@kernel
def same_links(a: I, a_part: F, b: I, b_part: F) -> bool:
    """Whether the same jobs demand the same of two links."""
    if len(a) != len(b):
        return False
    n_same = 0
    for k in range(len(a)):
        n_same += a[k] == b[k] and a_part[k] == b_part[k]
    return n_same == len(a)


@kernel
def add_jobs(jobs: MetJobs, uses: Uses, found: Found, more: Uses, before: JobTimes, times: JobTimes, score: F) -> None:
    """Write the times of all jobs when some more send, over links that others keep.

    Parameters
    ----------
    jobs : MetJobs
        All; those that are kept first.
    uses, found, before
        Uses of links by the jobs that are kept, and what was found for them.
    more : Uses
        Links of the jobs that are added.
    times : JobTimes
        Written, for all jobs.
    score : float64[n_links]
        Written: score of each link of `more`; 2 where its jobs cannot exceed it, 3 of one job.
    """
    n_kept, n = len(found.group), len(jobs.row)
    late = np.zeros(len(jobs.phase))
    group = np.empty(n, np.int64)
    worst, is_met = np.zeros(n), np.zeros(n, np.bool_)
    own_held, own_drift = np.zeros(n), np.zeros(n)
    is_new, held_e, drift_e = np.zeros(len(uses.job), np.bool_), np.zeros(len(uses.job)), np.zeros(len(uses.job))
    for j in range(n):
        group[j] = found.group[j] if j < n_kept else j
    done = [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), 0.0)]
    for i in range(len(more.link)):
        member, part, a, b = gather(uses, more.link[i], more, i)
        for e in range(more.first[i], more.first[i + 1]):
            worst[more.job[e]] = max(worst[more.job[e]], more.part[e])
        if len(member) == 1 and part[0] * jobs.row[member[0]]["peak"] <= 1.0 + _TIGHT:
            score[i] = 3.0
            continue
        at = -1
        for k in range(len(done)):  # both ways of a cable, and host links that meet the same jobs, are alike
            if same_links(done[k][0], done[k][1], member, part):
                at = k
                break
        if at < 0:
            at = len(done)
            held, drift = np.zeros(len(member)), np.zeros(len(member))
            done.append((member, part, held, drift, meet_on(jobs, member, part, late, held, drift)))
        _, _, held, drift, score[i] = done[at]
        if score[i] > 1.5 or len(member) == 1:
            continue
        for k in range(len(member)):
            j = member[k]
            join(group, member[0], j)
            is_met[j] = True
            if k < b - a:
                is_new[a + k], held_e[a + k], drift_e[a + k] = True, held[k], drift[k]
            else:
                own_held[j], own_drift[j] = max(own_held[j], held[k]), max(own_drift[j], drift[k])
    for j in range(n):
        if j >= n_kept:
            times.alone[j] = jobs.row[j]["period"] + loss_at(jobs, j, worst[j])
            times.held[j] = max(times.alone[j], own_held[j])
            times.drift[j] = max(times.alone[j], own_drift[j])
            continue
        times.alone[j], times.held[j], times.drift[j] = before.alone[j], before.held[j], before.drift[j]
        if is_met[j]:
            times.held[j] = times.drift[j] = before.alone[j]
            for q in range(found.first_of[j], found.first_of[j + 1]):
                e = found.entry_of[q]
                times.held[j] = max(times.held[j], held_e[e] if is_new[e] else found.held[e])
                times.drift[j] = max(times.drift[j], drift_e[e] if is_new[e] else found.drift[e])
    settle(jobs, group, times)


@kernel
def start_costs(jobs: MetJobs, uses: Uses, more: Uses, moved: int, cost: F) -> None:
    """Add what the links of one job are exceeded more by for each of its starts, beside all others.

    Jobs without a start (NaN) are not there yet.

    Parameters
    ----------
    more : Uses
        Links of the jobs that are added, among which is the one that is moved.
    cost : float64[BINS]
        Added to, as a part of the time, summed over links.
    """
    row = jobs.row[moved]
    rate, n_rates = np.empty(row["end_phase"] - row["first_phase"]), 0
    for p in range(row["first_phase"], row["end_phase"]):
        is_known = False
        for r in range(n_rates):
            is_known |= rate[r] == jobs.phase[p]["rate"]
        if not is_known:
            rate[n_rates] = jobs.phase[p]["rate"]
            n_rates += 1
    rate = rate[:n_rates]
    height = np.zeros((n_rates, BINS + 1))
    for i in range(len(more.link)):
        member, part = beside_on(jobs, uses, more, i, moved)
        if len(member):
            add_folded(jobs, moved, part[-1], member, part, rate, height)
    costs_of_starts(jobs, moved, rate, height, cost)


@kernel
def beside_on(jobs: MetJobs, uses: Uses, more: Uses, i: int, moved: int) -> tuple[I, F]:
    """Jobs and factors of the i-th link of `more`, the one that is moved as the last; none where its start is all one.

    So it is where they cannot exceed the link, and where no other job with a start is on it.
    """
    member, part, a, b = gather(uses, more.link[i], more, i)
    own, peak, last = -1, 0.0, -1
    for k in range(len(member)):
        if k < b - a and (member[k] == moved or np.isnan(jobs.shift[member[k]])):
            continue
        last += 1
        member[last], part[last] = member[k], part[k]
        peak += part[last] * jobs.row[member[last]]["peak"]
        if member[last] == moved:
            own = last
    if own < 0 or last < 1 or peak <= 1.0 + _TIGHT:
        return member[:0], part[:0]
    member[own], member[last] = member[last], member[own]
    part[own], part[last] = part[last], part[own]
    return member[: last + 1], part[: last + 1]


@kernel
def starts_within(jobs: MetJobs, uses: Uses, more: Uses, moved: int, low: float, span: float, near: float) -> F:
    """Return the starts of one job at which phases meet on its links, as :func:`meetings_within` for each of them."""
    found = np.zeros(0)
    for i in range(len(more.link)):
        member, _ = beside_on(jobs, uses, more, i, moved)
        if len(member):
            found = np.append(found, meetings_within(jobs, moved, member[:-1], low, span, near))
    return found


@kernel
def add_excess(jobs: MetJobs, uses: Uses, more: Uses, moved: int, starts: F, cost: F) -> None:
    """Add what the links of one job are exceeded by at some of its starts, exactly.

    Parameters
    ----------
    starts : float64[n], s
        Starts of the job on circles of rounded periods.
    cost : float64[n]
        Added to, as a part of the time, summed over links.
    """
    late, before = np.zeros(len(jobs.phase)), jobs.shift[moved]
    for i in range(len(more.link)):
        member, part = beside_on(jobs, uses, more, i, moved)
        if len(member):
            for k in range(len(starts)):
                jobs.shift[moved] = starts[k]
                cost[k] += late_at_starts(jobs, member, part, late)
    jobs.shift[moved] = before
