"""Which wires never share anything, and how fast they are: what happens on those needs no events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[Any]


def mark_lone(leg: Table, reduces: bool, wire: Table, slot: Table, entry: Table, resource: Table) -> None:
    """Mark the legs whose wires are alone on all that they use, and give them the solver's rates.

    At least one leg of each cycle is left unmarked: there is where events come from.

    Parameters
    ----------
    leg : LEG[n]
        Of one turn, each with a wire of its own; changed in place.
    reduces : bool
        Whether anything is reduced.
    wire, slot, entry, resource
        Tables of flow_state at the beginning.
    """
    n_wires, w = len(wire), leg["wire"]
    mine, sends = entry["slot"] % n_wires, entry["slot"] < n_wires
    is_port = np.arange(len(entry)) < slot["port"][entry["slot"]]
    used = sends | np.where(is_port, wire["receive_work"][mine] > 0, wire["reduces"][mine] & reduces)
    n_users = np.bincount(entry["resource"][used], minlength=len(resource))
    shares = np.bincount(mine[used & (n_users[entry["resource"]] > 1)], minlength=n_wires) > 0
    leg["lone"] = ~shares[w]
    _keep_one(leg)
    weight = slot["weight"][entry["slot"]]
    with np.errstate(over="ignore"):  # a reduction of no time, with a small weight
        level = (resource["left"] * resource["unit"])[entry["resource"]] / (weight * entry["share"])
    port, path, unit = (
        _least(level, mine, kept, n_wires)[w] * slot["weight"][w]
        for kept in (sends & is_port, sends, ~sends & ~is_port)
    )
    leg["overhead"] = np.where(wire["overhead_work"][w] > 0, wire["overhead_work"][w] / port, 0.0)
    leg["rate"], leg["reduce_rate"] = path, np.where(wire["reduces"][w], unit, np.inf)


def _least(level: NDArray[np.float64], of: NDArray[np.int32], kept: NDArray[np.bool_], n: int) -> NDArray[np.float64]:
    """Least level of each wire's kept entries; infinite where there are none."""
    least = np.full(n, np.inf)
    np.minimum.at(least, of[kept], level[kept])
    return least


def _keep_one(leg: Table) -> None:
    """Unmark a leg of each cycle whose legs are all marked."""
    seen = ~leg["lone"]
    for first in np.flatnonzero(leg["lone"]).tolist():
        k = first
        while not seen[k]:
            seen[k] = True
            k = int(leg["follower"][k])
            if k == first:
                leg["lone"][k] = False
