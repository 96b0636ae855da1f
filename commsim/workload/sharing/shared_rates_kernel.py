"""Rates of the jobs that are sending: max-min fair on the links that join them.

Progressive filling, class by class of priority: the rates per weight of all open jobs rise together; a job closes when
it has its own rate, or when a link that it uses is full.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

from .shared_links_tables import SENDING

TIE = 1.0 + 1e-12  # times and levels this close are one; they differ by rounding only
FULL = 1.0 + 1e-9  # what exceeds a capacity or a rate by less does not count as contention
LAST = 2**31 - 1
Table = NDArray[Any]
Tables = tuple[Table, Table, Table, Table, NDArray[np.int32]]
Reached = tuple[NDArray[np.int32], NDArray[np.int32]]


@njit_norefcount
def settle(job: Table, j: int, now: float) -> None:
    """Bring a sending job's bytes up to date."""
    lasted = now - job[j]["since"]
    moved = min(job[j]["rate"] * lasted, job[j]["left"])
    job[j]["left"] -= moved
    job[j]["sent"] += moved
    job[j]["since"] = now
    if job[j]["rate"] * FULL < job[j]["own_rate"]:
        job[j]["contended"] += lasted


@njit_norefcount
def reach(tables: Tables, first: int, reached: Reached, solve: int) -> tuple[int, int]:
    """Open the sending jobs that tight links join to job `first`; return how many jobs and links were reached."""
    job, _, use, link, user = tables
    mine, links = reached
    mine[0] = first
    job[first]["is_open"] = True
    n, n_jobs, n_links = 0, 1, 0
    while n < n_jobs:
        j = mine[n]
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
                    if job[i]["state"] == SENDING and not job[i]["is_open"]:
                        job[i]["is_open"] = True
                        mine[n_jobs] = i
                        n_jobs += 1
    return n_jobs, n_links


@njit_norefcount
def share(
    tables: Tables,
    reached: Reached,
    found: tuple[int, int],
    now: float,
    mltcp: tuple[float, float, int],
) -> None:
    """Give jobs that are joined by links their new rates, and say when something happens to them next."""
    job, mine, n_jobs = tables[0], reached[0], found[0]
    slope, intercept, n_steps = mltcp
    n_open = n_jobs
    for n in range(n_jobs):
        j = mine[n]
        settle(job, j, now)
        job[j]["weight"] = job[j]["own_weight"]
        if n_steps:
            job[j]["weight"] *= slope * min(job[j]["sent"] / job[j]["n_bytes"], 1.0) + intercept
    while n_open:
        priority = LAST
        for n in range(n_jobs):
            j = mine[n]
            if job[j]["is_open"]:
                priority = min(priority, job[j]["priority"])
        n_open -= _fill_class(tables, reached, found, priority)
    for n in range(n_jobs):
        j = mine[n]
        rate = job[j]["rate"]
        job[j]["finish"] = now + job[j]["left"] / rate if rate > 0.0 else np.inf
        job[j]["due"] = job[j]["finish"]
        if n_steps and rate > 0.0 and n_jobs > 1:
            job[j]["due"] = min(job[j]["finish"], now + _next_step(job, j, mltcp) / rate)


@njit_norefcount
def _next_step(job: Table, j: int, mltcp: tuple[float, float, int]) -> float:
    """Bytes until the weight is another power of the n-th root of its largest over its smallest."""
    slope, intercept, n_steps = mltcp
    growth = math.log((slope + intercept) / intercept) / n_steps
    grown = math.log(job[j]["weight"] / job[j]["own_weight"] / intercept) / growth
    target = intercept * math.exp((math.floor(grown + 1e-6) + 1.0) * growth)
    bytes_left: float = (target - intercept) / slope * job[j]["n_bytes"] - job[j]["sent"]
    return bytes_left


@njit_norefcount
def _fill_class(tables: Tables, reached: Reached, found: tuple[int, int], priority: int) -> int:
    """Raise the rates per weight of the open jobs of one priority, until each meets a full link or its own rate.

    Returns
    -------
    int
        How many jobs that were.
    """
    job, _, use, link, user = tables
    mine, links = reached
    n_links, n_mine, n_open = found[1], 0, 0
    for n in range(n_links):
        link[links[n]]["weight"] = 0.0
        link[links[n]]["n_open"] = 0
    for n in range(found[0]):
        j = mine[n]
        if job[j]["is_open"] and job[j]["priority"] == priority:
            mine[n], mine[n_mine] = mine[n_mine], j
            n_mine += 1
            job[j]["own_level"] = job[j]["own_rate"] / job[j]["weight"]
            for u in range(job[j]["first_use"], job[j]["end_use"]):
                k = use[u]["link"]
                link[k]["weight"] += use[u]["share"] * job[j]["weight"]
                link[k]["n_open"] += 1
    for n in range(n_links):
        weight = link[links[n]]["weight"]
        link[links[n]]["level"] = link[links[n]]["free"] / weight if weight else np.inf
    n_open = n_mine
    while n_open:
        level = np.inf
        n = 0
        while n < n_links:
            k = links[n]
            if link[k]["n_open"]:
                level = min(level, link[k]["level"])
                n += 1
            else:  # behind the others, where this class sees it no more
                n_links -= 1
                links[n], links[n_links] = links[n_links], k
        for n in range(n_mine):
            if job[mine[n]]["is_open"]:
                level = min(level, job[mine[n]]["own_level"])
        for n in range(n_mine):
            j = mine[n]
            if job[j]["is_open"] and job[j]["own_level"] <= level * TIE:
                _close(tables, j, job[j]["own_rate"])
                n_open -= 1
        for n in range(n_links):
            k = links[n]
            if link[k]["n_open"] and link[k]["level"] <= level * TIE:
                for other in range(link[k]["first_user"], link[k]["end_user"]):
                    j = user[other]
                    if job[j]["is_open"] and job[j]["priority"] == priority:
                        _close(tables, j, level * job[j]["weight"])
                        n_open -= 1
    return n_mine


@njit_norefcount
def _close(tables: Tables, j: int, rate: float) -> None:
    """Give job `j` its rate, and take it from its links."""
    job, _, use, link, _ = tables
    job[j]["rate"] = rate
    job[j]["is_open"] = False
    for u in range(job[j]["first_use"], job[j]["end_use"]):
        k = use[u]["link"]
        link[k]["free"] = max(link[k]["free"] - use[u]["share"] * rate, 0.0)
        link[k]["weight"] -= use[u]["share"] * job[j]["weight"]
        link[k]["n_open"] -= 1
        if link[k]["n_open"]:
            link[k]["level"] = link[k]["free"] / link[k]["weight"]
