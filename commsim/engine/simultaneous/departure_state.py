"""State of flows that depart one after the other: links with clocks, and who holds whom."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

TIE = 1.0 + 1e-12  # levels this close are one level, as in the sharing kernels

LINK_ROW = np.dtype(
    [
        ("given", np.int64),  # what it gives to flows that others hold, in units so small that sums are exact,
        ("whole", np.int64),  # and its capacity
        ("per_unit", np.float64),
        ("top", np.float64),  # no flow that others hold has a higher level
        ("level", np.float64),  # of the flows that it holds
        ("n_held", np.int32),
        ("n_users", np.int32),
        ("first", np.int32),  # row of its users: those that it holds, then the others
        ("unit", np.float64),
        ("clock", np.float64),  # bytes that each flow would have been sent if it had always been held,
        ("since", np.float64),  # up to this time
        ("least", np.float64),  # first end of a flow that it holds, on its clock
        ("stale", np.bool_),  # whether `least` is to be found again
    ],
    align=True,
)


class State(NamedTuple):
    """All state; changed in place."""

    link: Any
    first: Any  # int64[n_flows + 1], rows of
    of_flow: Any  # int32[n_entries], links
    place: Any  # int32[n_entries], among the users of the link
    user: Any  # int32[n_entries], flows by link,
    user_entry: Any  # int32[n_entries], their entries,
    others: Any  # int32[n_entries, longest route], and their other links, ended by -1: read one after the other
    holder: Any  # int32[n_flows]
    ends: Any  # float64[n_flows], on the clock of the holder
    key: Any  # float64[n_links], heap of links to be looked at
    heap_place: Any  # int32[n_links]
    heap: Any  # int32[n_links]
    picked: Any  # int32[most users]
    next_end: Any  # float64[n_links], s, when the first flow that each holds will end; -1 where that must be found
    clock: Any  # float64[1], s
    n_heap: Any  # int64[1]
