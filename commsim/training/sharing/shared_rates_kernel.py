"""Rates of the jobs that are sending: max-min fair on the links that join them.

Progressive filling, class by class of priority: the rates per weight of all unfrozen jobs rise together; a job is
frozen when it has its own rate, or when a link that it uses is full.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from commsim.engine.flow_state import Rows

from .shared_links_tables import SENDING, SharedLinks

TIE = 1.0 + 1e-12  # times and fair rates this close are one; they differ by rounding only
FULL = 1.0 + 1e-9  # what exceeds a capacity or a rate by less does not count as contention
LAST = 2**31 - 1


class SolveReach(NamedTuple):
    """Jobs and links that a solve reaches."""

    job: NDArray[np.int32]  # [n_jobs]
    link: NDArray[np.int32]  # [n_links]


@njit_norefcount
def bring_up_to_date(job: Rows, j: int, now: float) -> None:
    """Bring a sending job's bytes up to date."""
    lasted = now - job[j]["since"]
    moved = min(job[j]["rate"] * lasted, job[j]["left"])
    job[j]["left"] -= moved
    job[j]["sent"] += moved
    job[j]["since"] = now
    if job[j]["rate"] * FULL < job[j]["own_rate"]:
        job[j]["contended"] += lasted


@njit_norefcount
def reach(t: SharedLinks, first: int, reached: SolveReach, solve: int) -> tuple[int, int]:
    """Unfreeze the sending jobs that tight links join to job `first`; return how many jobs and links were reached."""
    job, use, link, user = t.job, t.use, t.link, t.user
    jobs, links = reached.job, reached.link
    jobs[0] = first
    job[first]["unfrozen"] = True
    n, n_jobs, n_links = 0, 1, 0
    while n < n_jobs:
        j = jobs[n]
        n += 1
        job[j]["is_dirty"] = False
        for u in range(job[j]["first_use"], job[j]["end_use"]):
            k = use[u]["link"]
            if link[k]["is_tight"] and link[k]["solve"] != solve:
                link[k]["solve"] = solve
                link[k]["free"] = link[k]["capacity"]
                links[n_links] = k
                n_links += 1
                for other in range(link[k]["first_user"], link[k]["end_user"]):
                    i = user[other]
                    if job[i]["state"] == SENDING and not job[i]["unfrozen"]:
                        job[i]["unfrozen"] = True
                        jobs[n_jobs] = i
                        n_jobs += 1
    return n_jobs, n_links


@njit_norefcount
def share(
    t: SharedLinks,
    reached: SolveReach,
    n_reached: tuple[int, int],
    now: float,
    mltcp: tuple[float, float, int],
) -> None:
    """Give jobs that are joined by links their new rates, and say when something happens to them next."""
    job, jobs, n_jobs = t.job, reached.job, n_reached[0]
    slope, intercept, n_steps = mltcp
    n_unfrozen = n_jobs
    for n in range(n_jobs):
        j = jobs[n]
        bring_up_to_date(job, j, now)
        job[j]["weight"] = job[j]["own_weight"]
        if n_steps:
            job[j]["weight"] *= slope * min(job[j]["sent"] / job[j]["n_bytes"], 1.0) + intercept
    while n_unfrozen:
        priority = LAST
        for n in range(n_jobs):
            j = jobs[n]
            if job[j]["unfrozen"]:
                priority = min(priority, job[j]["priority"])
        n_unfrozen -= fill_class(t, reached, n_reached, priority)
    for n in range(n_jobs):
        j = jobs[n]
        rate = job[j]["rate"]
        job[j]["finish"] = now + job[j]["left"] / rate if rate > 0.0 else np.inf
        job[j]["due"] = job[j]["finish"]
        if n_steps and rate > 0.0 and n_jobs > 1:
            job[j]["due"] = min(job[j]["finish"], now + _next_step(job, j, mltcp) / rate)


@njit_norefcount
def _next_step(job: Rows, j: int, mltcp: tuple[float, float, int]) -> float:
    """Bytes until the weight is another power of the n-th root of its largest over its smallest."""
    slope, intercept, n_steps = mltcp
    growth = math.log((slope + intercept) / intercept) / n_steps
    grown = math.log(job[j]["weight"] / job[j]["own_weight"] / intercept) / growth
    target = intercept * math.exp((math.floor(grown + 1e-6) + 1.0) * growth)
    bytes_left: float = (target - intercept) / slope * job[j]["n_bytes"] - job[j]["sent"]
    return bytes_left


@njit_norefcount
def fill_class(t: SharedLinks, reached: SolveReach, n_reached: tuple[int, int], priority: int) -> int:
    """Raise the rates per weight of the unfrozen jobs of one priority, until each meets a full link or its own rate.

    Returns
    -------
    int
        How many jobs that were.
    """
    job, use, link, user = t.job, t.use, t.link, t.user
    jobs, links = reached.job, reached.link
    n_links, n_class, n_unfrozen = n_reached[1], 0, 0
    for n in range(n_links):
        link[links[n]]["weight"] = 0.0
        link[links[n]]["n_unfrozen"] = 0
    for n in range(n_reached[0]):
        j = jobs[n]
        if job[j]["unfrozen"] and job[j]["priority"] == priority:
            jobs[n], jobs[n_class] = jobs[n_class], j
            n_class += 1
            job[j]["own_fair_rate"] = job[j]["own_rate"] / job[j]["weight"]
            for u in range(job[j]["first_use"], job[j]["end_use"]):
                k = use[u]["link"]
                link[k]["weight"] += use[u]["share"] * job[j]["weight"]
                link[k]["n_unfrozen"] += 1
    for n in range(n_links):
        weight = link[links[n]]["weight"]
        link[links[n]]["fair_rate"] = link[links[n]]["free"] / weight if weight else np.inf
    n_unfrozen = n_class
    while n_unfrozen:
        fair_rate = np.inf
        n = 0
        while n < n_links:
            k = links[n]
            if link[k]["n_unfrozen"]:
                fair_rate = min(fair_rate, link[k]["fair_rate"])
                n += 1
            else:  # behind the others, where this class sees it no more
                n_links -= 1
                links[n], links[n_links] = links[n_links], k
        for n in range(n_class):
            if job[jobs[n]]["unfrozen"]:
                fair_rate = min(fair_rate, job[jobs[n]]["own_fair_rate"])
        for n in range(n_class):
            j = jobs[n]
            if job[j]["unfrozen"] and job[j]["own_fair_rate"] <= fair_rate * TIE:
                _freeze(t, j, job[j]["own_rate"])
                n_unfrozen -= 1
        for n in range(n_links):
            k = links[n]
            if link[k]["n_unfrozen"] and link[k]["fair_rate"] <= fair_rate * TIE:
                for other in range(link[k]["first_user"], link[k]["end_user"]):
                    j = user[other]
                    if job[j]["unfrozen"] and job[j]["priority"] == priority:
                        _freeze(t, j, fair_rate * job[j]["weight"])
                        n_unfrozen -= 1
    return n_class


@njit_norefcount
def _freeze(t: SharedLinks, j: int, rate: float) -> None:
    """Give job `j` its rate, and take it from its links."""
    job, use, link = t.job, t.use, t.link
    job[j]["rate"] = rate
    job[j]["unfrozen"] = False
    for u in range(job[j]["first_use"], job[j]["end_use"]):
        k = use[u]["link"]
        link[k]["free"] = max(link[k]["free"] - use[u]["share"] * rate, 0.0)
        link[k]["weight"] -= use[u]["share"] * job[j]["weight"]
        link[k]["n_unfrozen"] -= 1
        if link[k]["n_unfrozen"]:
            link[k]["fair_rate"] = link[k]["free"] / link[k]["weight"]
