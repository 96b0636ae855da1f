"""Periodic jobs on shared links, event by event: a fluid model with one rate per job.

Between two events every job computes, waits, or sends at a constant rate. When a job begins or ends to send, rates are
shared again among the jobs that tight links join to it, directly or through others: progressive filling, with weights,
strict priorities, and each phase's own rate as the most that it takes. All other rates stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount
from commsim.engine.flow_state import Rows

from .shared_links_tables import COMPUTING, SENDING, WAITING, SharedLinks
from .shared_rates_kernel import FULL, TIE, SolveReach, bring_up_to_date, reach, share


@kernel
def simulate(
    t: SharedLinks,
    factor: NDArray[np.float64],
    mltcp: tuple[float, float, int],
    adjust: float,
    took: NDArray[np.float64],
    max_events: int,
) -> tuple[float, int]:
    """Run until every job has been recorded for its last iteration; those that are faster go on meanwhile.

    Parameters
    ----------
    t : SharedLinks
        Modified in place.
    factor : float64[n_jobs, n_draws]
        What the computing times of each iteration are multiplied by, used again from the first when they are spent.
    mltcp : (float, float, int)
        Slope and intercept of the weights, and in how many steps an iteration's bytes move them; 0 steps: they do not.
    adjust : float
        Part of the period by which a job's communication may be early or late before it waits; infinite for never.
    took : float64[2, n_jobs, n_iterations], s
        Written: how long each iteration was, and how long of it the job communicated.
    max_events : int
        Number of events after which the run is given up.

    Returns
    -------
    float, int
        The time at the end, and the number of events, which is more than `max_events` if the run was given up.
    """
    reached = SolveReach(np.empty(len(t.job), np.int32), np.empty(len(t.link), np.int32))
    return _run(t, reached, factor, mltcp, adjust, took, max_events)


@njit_norefcount
def _run(
    t: SharedLinks,
    reached: SolveReach,
    factor: NDArray[np.float64],
    mltcp: tuple[float, float, int],
    adjust: float,
    took: NDArray[np.float64],
    max_events: int,
) -> tuple[float, int]:
    """Do what :func:`simulate` says, with room for what a solve reaches."""
    job, link = t.job, t.link
    now, n_events, n_left, solve = 0.0, 0, len(job), 0
    for j in range(len(job)):
        job[j]["iteration_start"] = job[j]["start"]
        job[j]["state"] = COMPUTING
        job[j]["due"] = job[j]["start"] + _gap(t, j) * factor[j, 0]
    while n_left and n_events <= max_events:
        now = np.inf
        for j in range(len(job)):
            now = min(now, job[j]["due"])
        for j in range(len(job)):
            if job[j]["due"] <= now * TIE:
                n_events += 1
                n_left -= _advance(t, j, now, factor, adjust, took)
        for j in range(len(job)):
            if job[j]["is_dirty"]:
                job[j]["is_dirty"] = False
                if job[j]["state"] == SENDING:
                    solve += 1
                    n_reached = reach(t, j, reached, solve)
                    share(t, reached, n_reached, now, mltcp)
    for j in range(len(job)):
        if job[j]["state"] == SENDING:
            bring_up_to_date(job, j, now)
    for k in range(len(link)):
        _account(link, k, now)
    return now, n_events


@njit_norefcount
def _gap(t: SharedLinks, j: int) -> float:
    """Seconds of computing before the job's next phase, or before the end of its iteration."""
    job, phase = t.job, t.phase
    p = job[j]["phase"]
    gap: float = phase[p]["gap"] if p < job[j]["end_phase"] else job[j]["tail"]
    return gap


@njit_norefcount
def _advance(
    t: SharedLinks,
    j: int,
    now: float,
    factor: NDArray[np.float64],
    adjust: float,
    took: NDArray[np.float64],
) -> int:
    """Let what is due at job `j` happen, one step; return 1 if its last recorded iteration has just ended."""
    job, phase = t.job, t.phase
    done = 0
    if job[j]["state"] == SENDING:
        if job[j]["finish"] > now * TIE:  # only its weight moves on
            job[j]["is_dirty"] = True
            return 0
        bring_up_to_date(job, j, now)
        job[j]["communicated"] += now - job[j]["phase_start"]
        job[j]["sent"] += job[j]["left"]  # rounding
        job[j]["state"] = COMPUTING
        _load(t, j, -1.0, now)
        job[j]["phase"] += 1
    elif job[j]["phase"] < job[j]["end_phase"]:
        if job[j]["state"] == COMPUTING and job[j]["phase"] == job[j]["aligned"]:
            late = (now - job[j]["start"] - job[j]["offset"]) % job[j]["period"]
            if adjust * job[j]["period"] < late < (1.0 - adjust) * job[j]["period"]:
                job[j]["state"] = WAITING
                job[j]["n_adjusted"] += 1
                job[j]["due"] = now + job[j]["period"] - late
                return 0
        job[j]["state"] = SENDING
        job[j]["left"] = phase[job[j]["phase"]]["n_bytes"]
        job[j]["rate"] = 0.0
        job[j]["own_rate"] = phase[job[j]["phase"]]["rate"]
        job[j]["phase_start"] = job[j]["since"] = now
        beside = phase[job[j]["phase"]]["overlap"]
        job[j]["overlap_end"] = now + beside * factor[j, job[j]["iteration"] % factor.shape[1]]
        job[j]["is_dirty"] = True
        _load(t, j, 1.0, now)
        return 0
    else:
        i = job[j]["iteration"]
        if i < took.shape[2]:
            took[0, j, i] = now - job[j]["iteration_start"]
            took[1, j, i] = job[j]["communicated"]
            done = 1 if i == took.shape[2] - 1 else 0
        job[j]["iteration"] += 1
        job[j]["iteration_start"] = now
        job[j]["communicated"] = 0.0
        job[j]["sent_before"] += job[j]["sent"]
        job[j]["sent"] = 0.0
        job[j]["phase"] = job[j]["first_phase"]
    # What follows a phase waits for the computation beside it too; elsewhere that has ended.
    job[j]["due"] = max(now, job[j]["overlap_end"]) + _gap(t, j) * factor[j, job[j]["iteration"] % factor.shape[1]]
    return done


@njit_norefcount
def _load(t: SharedLinks, j: int, sign: float, now: float) -> None:
    """Put the job's phase on its links, or take it off; jobs on links that were or are tight get other rates."""
    job, use, link, user = t.job, t.use, t.link, t.user
    for u in range(job[j]["first_use"], job[j]["end_use"]):
        k = use[u]["link"]
        _account(link, k, now)
        was_tight = link[k]["is_tight"]
        link[k]["n_sending"] += int(sign)
        link[k]["asked"] += sign * job[j]["own_rate"] * use[u]["share"]
        if link[k]["n_sending"] == 0:
            link[k]["asked"] = 0.0  # so that rounding does not add up
        link[k]["is_tight"] = link[k]["asked"] > link[k]["capacity"] * FULL
        if was_tight or link[k]["is_tight"]:
            for other in range(link[k]["first_user"], link[k]["end_user"]):
                job[user[other]]["is_dirty"] = True


@njit_norefcount
def _account(link: Rows, k: int, now: float) -> None:
    """Add up how long, and by how much, a link was asked for more than it has."""
    lasted = now - link[k]["since"]
    link[k]["since"] = now
    if link[k]["is_tight"]:
        link[k]["contended"] += lasted
        link[k]["excess"] += (link[k]["asked"] - link[k]["capacity"]) * lasted
