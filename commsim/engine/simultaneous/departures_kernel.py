"""Kernel for flows of different sizes that start together: from departure to departure, rates change where they must.

All flows that one link holds down have one rate and one clock, as where messages also enter
(:mod:`commsim.engine.bottlenecks.bottlenecks`). One allocation per departure by the event engine gives the same.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import long_loops, njit_norefcount
from commsim.engine.bottlenecks.fill_kernel import fill_all
from commsim.engine.bottlenecks.group_state import Floats, Groups, Wholes
from commsim.engine.bottlenecks.groups_kernel import leave_group, use, use_no_more
from commsim.engine.bottlenecks.levels_kernel import settle
from commsim.engine.bottlenecks.run_kernel import end_members, find_ends, first_end


@long_loops
@njit_norefcount
def simulate_departures(g: Groups, first: Wholes, n_bytes: Floats, ended: Floats) -> bool:
    """Simulate flows that all start at time 0.

    Parameters
    ----------
    g : Groups
        Groups without a flow; changed in place.
    first : int64[n_flows + 1]
        Where the flow links of each flow begin.
    n_bytes : float64[n_flows], bytes
        More than 0.
    ended : float64[n_flows], s
        Written: when each flow has left.

    Returns
    -------
    bool
        Whether all have; else more links are full at once than there are rows.
    """
    left = len(n_bytes)
    for s in range(left):
        use(g, s, first[s], first[s + 1])
        g.end[s] = n_bytes[s]
    fill_all(g, 0.0)
    while left > 0 and not g.counter["is_full"]:
        find_ends(g)
        now = first_end(g)
        if now == np.inf:
            break
        end_members(g, now)
        for k in range(g.counter["n_ended"]):
            s = g.ended[k]
            ended[s] = now
            use_no_more(g, s)
            leave_group(g, s, now)
        left -= g.counter["n_ended"]
        settle(g, now)
    return left == 0
