"""Kernels of jobs that meet on links: their iteration times at given starts, and on average over all.

They take one link after the other, without objects, since a request of the service looks at thousands of links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel
from commsim.placement.starts.phase_edges import MAX_PIECES

from .circle_kernel import apart

# One row for each job, and for each of its phases: as stretched with its rounded period, and as they were given.
JOB_ROW = np.dtype(
    [
        ("first_phase", np.int64), ("end_phase", np.int64), ("period", np.float64), ("whole", np.int64),
        ("mean", np.float64), ("peak", np.float64),
    ],
    align=True,
)  # fmt: skip
PHASE_ROW = np.dtype(
    [
        ("offset", np.float64), ("duration", np.float64), ("rate", np.float64), ("own", np.float64),
        ("length", np.float64),
    ],
    align=True,
)  # fmt: skip
MAX_STATES = 1024  # that jobs can have together; of more, so many are drawn
_ROUNDING = 1e-9


class MetJobs(NamedTuple):
    """Jobs, their phases and start times, and draws for states and moments that are too many to be tried.

    Parameters
    ----------
    row : JOB_ROW[n_jobs]
    phase : PHASE_ROW[n_phases]
        By job and offset.
    shift : float64[n_jobs], s
        How much later each starts.
    place : float64[64, MAX_STATES]
        Where in its iteration a job is in each drawn state.
    moment : float64[MAX_PIECES]
        Where in each of equal pieces of a circle it is looked at.
    quantum, longest : float, s
        What periods are rounded to, and the longest circle.
    """

    row: Records
    phase: Records
    shift: NDArray[np.float64]
    place: NDArray[np.float64]
    moment: NDArray[np.float64]
    quantum: float
    longest: float


@kernel
def perimeter_of(jobs: MetJobs, member: NDArray[np.int64]) -> float:
    """Return the seconds of the common circle of some jobs."""
    longest, common, fits = jobs.longest, 1, True
    for j in member:
        longest = max(longest, jobs.row[j]["whole"] * jobs.quantum)
    for j in member:
        whole = jobs.row[j]["whole"]
        a, b = common, whole
        while b:
            a, b = b, a % b
        common = common // a * whole
        if common * jobs.quantum > longest * (1 + 1e-9):
            fits = False
            break
    return common * jobs.quantum if fits else longest


@kernel
def edges_of(jobs: MetJobs, member: NDArray[np.int64], perimeter: float) -> NDArray[np.float64]:
    """Return the times from 0 to the perimeter at which phases begin or end; none where they are too many."""
    room, count = 2, 0.0
    for j in member:
        row = jobs.row[j]
        n_phases, period = row["end_phase"] - row["first_phase"], row["whole"] * jobs.quantum
        count += 2 * n_phases * (perimeter / period + 2)
        room += 2 * n_phases * int(np.ceil(perimeter / period))
    if count > MAX_PIECES:
        return np.empty(0)
    times, n = np.empty(room), 2
    times[0], times[1] = 0.0, perimeter
    for j in member:
        row = jobs.row[j]
        period = row["whole"] * jobs.quantum
        for p in range(row["first_phase"], row["end_phase"]):
            begin = jobs.phase[p]["offset"] + jobs.shift[j]
            for own in (begin % period, (begin + jobs.phase[p]["duration"]) % period):
                for k in range(int(np.ceil(perimeter / period))):
                    if own + k * period <= perimeter:
                        times[n] = own + k * period
                        n += 1
    return apart(times[:n], perimeter)


@kernel
def phase_at(jobs: MetJobs, j: int, moment: float) -> int:
    """Row of the phase in which a job sends at a moment; -1 while it computes."""
    row = jobs.row[j]
    period = row["whole"] * jobs.quantum
    for p in range(row["first_phase"], row["end_phase"]):
        since = moment - (jobs.shift[j] + jobs.phase[p]["offset"])
        if since - np.floor(since / period) * period < jobs.phase[p]["duration"]:
            return p
    return -1


@kernel
def phases_of(
    jobs: MetJobs, member: NDArray[np.int64], part: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the phases of some jobs in a row, for loops over many moments.

    Returns
    -------
    int64[n + 1], int64[n_own]
        Where the phases of each member begin, and the row of each phase.
    float64[5, n_own]
        Of each phase: begin and duration and period of its job, s; its demand as a share of the capacity; the share of
        an iteration in which it sends.
    """
    first = np.zeros(len(member) + 1, np.int64)
    for k in range(len(member)):
        row = jobs.row[member[k]]
        first[k + 1] = first[k] + row["end_phase"] - row["first_phase"]
    rows, own = np.empty(first[-1], np.int64), np.empty((5, first[-1]))
    for k in range(len(member)):
        j, row = member[k], jobs.row[member[k]]
        for q in range(first[k], first[k + 1]):
            rows[q] = row["first_phase"] + q - first[k]
            phase = jobs.phase[rows[q]]
            own[0, q], own[1, q] = jobs.shift[j] + phase["offset"], phase["duration"]
            own[2, q], own[3, q] = row["whole"] * jobs.quantum, part[k] * phase["rate"]
            own[4, q] = phase["own"] / row["period"]
    return first, rows, own


@kernel
def late_at_starts(
    jobs: MetJobs, member: NDArray[np.int64], part: NDArray[np.float64], late: NDArray[np.float64]
) -> float:
    """Add up by how much the link is exceeded in each phase of its jobs, at their start times.

    Parameters
    ----------
    member : int64[n]
        Jobs on the link.
    part : float64[n], s/byte
        Factor that turns a rate of each into a share of the capacity.
    late : float64[n_phases]
        Written: excess of the demand while each phase sends, as a part of the time; rows of these jobs only.

    Returns
    -------
    float
        Mean excess.
    """
    perimeter = perimeter_of(jobs, member)
    edges = edges_of(jobs, member, perimeter)
    n = max(1, len(edges) - 1) if len(edges) else MAX_PIECES
    for j in member:
        for p in range(jobs.row[j]["first_phase"], jobs.row[j]["end_phase"]):
            late[p] = 0.0
    first, rows, own = phases_of(jobs, member, part)
    begin, duration, period, demand = own[0], own[1], own[2], own[3]
    at = np.empty(len(member), np.int64)
    total = 0.0
    for i in range(n):
        if len(edges):
            length, moment = edges[i + 1] - edges[i], (edges[i + 1] + edges[i]) / 2
        else:
            length = perimeter / MAX_PIECES
            moment = (i + jobs.moment[i]) * length
        load = -1.0
        for k in range(len(member)):
            at[k] = -1
            for q in range(first[k], first[k + 1]):  # as phase_at
                since = moment - begin[q]
                if since - np.floor(since / period[q]) * period[q] < duration[q]:
                    at[k] = rows[q]
                    load += demand[q]
                    break
        if load > _ROUNDING:
            over = load * length / perimeter
            total += over
            for k in range(len(member)):
                if at[k] >= 0:
                    late[at[k]] += over
    return total


@kernel
def late_anywhere(
    jobs: MetJobs, member: NDArray[np.int64], part: NDArray[np.float64], late: NDArray[np.float64]
) -> float:
    """Add up the same where each job starts at any time, as often as at any other; return the mean excess."""
    n, states, total = len(member), 1.0, 0.0
    for j in member:
        row = jobs.row[j]
        states *= row["end_phase"] - row["first_phase"] + 1
        for p in range(row["first_phase"], row["end_phase"]):
            late[p] = 0.0
    is_drawn = states > MAX_STATES or n > len(jobs.place)
    first, rows, own = phases_of(jobs, member, part)
    demand, share, idle = own[3], own[4], np.empty(n)
    for k in range(n):
        sends = 0.0
        for q in range(first[k], first[k + 1]):
            sends += share[q]
        idle[k] = max(0.0, 1.0 - sends)
    m = MAX_STATES if is_drawn else int(states)
    at, load, length = np.full((n, m), -1), np.full(m, -1.0), np.full(m, 1.0 / MAX_STATES if is_drawn else 1.0)
    rest, more = np.empty(m), np.empty(m)
    n_before = 1
    for k in range(n):
        if is_drawn:
            drawn = jobs.place[k % len(jobs.place)]
            for i in range(m):
                rest[i], more[i] = drawn[i] - idle[k], 0.0
            for q in range(first[k], first[k + 1]):
                for i in range(m):
                    if rest[i] >= 0.0:
                        at[k, i], more[i] = q, demand[q]
                    rest[i] -= share[q]
            for i in range(m):
                load[i] += more[i]
            continue
        n_states = first[k + 1] - first[k] + 1
        for i in range(m):
            state = i // n_before % n_states
            length[i] *= share[first[k] + state - 1] if state else idle[k]
            if state:
                at[k, i] = first[k] + state - 1
                load[i] += demand[at[k, i]]
        n_before *= n_states
    for i in range(m):
        if load[i] > _ROUNDING:
            total += load[i] * length[i]
            for k in range(n):
                if at[k, i] >= 0:
                    late[rows[at[k, i]]] += load[i] * length[i]
    return total


@kernel
def loss_at(jobs: MetJobs, j: int, part: float) -> float:
    """Seconds that a job loses in an iteration where a rate is `part` times as many links."""
    lost = 0.0
    for p in range(jobs.row[j]["first_phase"], jobs.row[j]["end_phase"]):
        phase = jobs.phase[p]
        lost += max(0.0, phase["own"] * (1.0 + max(0.0, part * phase["rate"] - 1.0)) - phase["length"])
    return lost


@kernel
def times_of(
    jobs: MetJobs,
    member: NDArray[np.int64],
    part: NDArray[np.float64],
    late: NDArray[np.float64],
    times: NDArray[np.float64],
) -> None:
    """Write the iteration time of each job of a link from what was added up, float64[n], s."""
    full = -1.0
    for k in range(len(member)):
        full += part[k] * jobs.row[member[k]]["mean"]
    for k in range(len(member)):
        j, lost = member[k], 0.0
        period = jobs.row[j]["period"]
        for p in range(jobs.row[j]["first_phase"], jobs.row[j]["end_phase"]):
            phase = jobs.phase[p]
            lost += max(0.0, phase["own"] + late[p] * period - phase["length"])
        if full > 0:
            lost = max(lost, min(period * full, loss_at(jobs, j, part[k] * len(member))))
        times[k] = period + lost


@kernel
def meet_at(
    jobs: MetJobs,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    part: NDArray[np.float64],
    drift: bool,
    times: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Write the iteration times of all jobs of some links at their starts, or where they drift; return the scores.

    Parameters
    ----------
    first : int64[n_links + 1]
        Link k has the members ``first[k]`` to ``first[k + 1]``.
    member, part
        Same as in :func:`late_at_starts`, for all links.
    times : float64[n_members], s
        Written.

    Returns
    -------
    float64[n_links]
    """
    late, scores = np.zeros(len(jobs.phase)), np.empty(len(first) - 1)
    for k in range(len(scores)):
        own, parts = member[first[k] : first[k + 1]], part[first[k] : first[k + 1]]
        excess = late_anywhere(jobs, own, parts, late) if drift else late_at_starts(jobs, own, parts, late)
        times_of(jobs, own, parts, late, times[first[k] : first[k + 1]])
        scores[k] = 1.0 - excess
    return scores
