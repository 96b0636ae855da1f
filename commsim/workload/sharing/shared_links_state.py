"""The tables that the kernel of shared links works on, one row per thing.

A *link* is here only if the jobs together could ask for more than it has; all others slow nobody down. At a given time
it is *tight* if the jobs that are sending ask for more: only tight links join the rates of jobs.
"""

from __future__ import annotations

import numpy as np

COMPUTING, WAITING, SENDING = range(3)

JOB_ROW = np.dtype(
    [
        ("first_phase", np.int32),
        ("end_phase", np.int32),
        ("first_use", np.int32),
        ("end_use", np.int32),
        ("priority", np.int32),  # 0 goes first
        ("own_weight", np.float64),
        ("n_bytes", np.float64),  # of an iteration
        ("period", np.float64),
        ("tail", np.float64),  # computing after the last phase
        ("start", np.float64),
        ("aligned", np.int32),  # the phase that starts at `offset` if nothing is late
        ("offset", np.float64),
        # what changes
        ("state", np.int32),
        ("phase", np.int32),
        ("is_dirty", np.bool_),  # its rate may be another now
        ("is_open", np.bool_),  # while rates are shared: it has none yet
        ("iteration", np.int64),
        ("iteration_start", np.float64),
        ("phase_start", np.float64),
        ("communicated", np.float64),  # seconds of this iteration
        ("sent", np.float64),  # bytes of this iteration,
        ("sent_before", np.float64),  # of all iterations before it
        ("left", np.float64),  # bytes of this phase at time `since`
        ("since", np.float64),
        ("rate", np.float64),
        ("own_rate", np.float64),  # of the phase, the most that it may be
        ("weight", np.float64),
        ("own_level", np.float64),  # own rate per weight
        ("due", np.float64),  # when something happens next
        ("finish", np.float64),  # when the phase ends at this rate
        ("contended", np.float64),  # seconds at less than its own rate
        ("n_adjusted", np.int64),
    ],
    align=True,
)

PHASE_ROW = np.dtype([("gap", np.float64), ("n_bytes", np.float64), ("rate", np.float64)], align=True)
"""Seconds of computing before the phase; bytes of each host, and the most that it sends per second."""

USE_ROW = np.dtype([("link", np.int32), ("share", np.float64)], align=True)
"""How many times its rate a job puts on a link."""

LINK_ROW = np.dtype(
    [
        ("capacity", np.float64),
        ("first_user", np.int32),
        ("end_user", np.int32),
        ("n_sending", np.int32),
        ("is_tight", np.bool_),
        ("solve", np.int64),  # the last one that reached it
        ("asked", np.float64),  # what the sending jobs would take
        ("since", np.float64),
        ("contended", np.float64),  # seconds in which they ask for more than there is
        ("excess", np.float64),  # bytes, the integral of what they ask for too much
        ("free", np.float64),  # while rates are shared: not yet given away,
        ("weight", np.float64),  # wanted by the open jobs of a class per unit of level,
        ("n_open", np.int32),  # how many they are, and
        ("level", np.float64),  # the level at which they fill the link
    ],
    align=True,
)
