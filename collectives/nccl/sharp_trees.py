"""Trees of the switches of a network that add (SHARP): for each rail one, above its member in every machine.

References
----------
Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", COMHPC 2016, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

# For each rail, the number of the switch above each machine's member and then above each switch; -1: the topmost.
SharpTrees = tuple[tuple[int, ...], ...]
# Above a switch that is not in the tree of a rail.
OUTSIDE = -2


def read_sharp_trees(name: str, trees: SharpTrees | None, n_machines: int) -> NDArray[np.int64]:
    """Check the trees; by default one switch is above all machines.

    Returns
    -------
    int64[n_rails, n_machines + n_switches]
        Participant above each, machines first and then switches; -1 for the topmost, -2 for what is in no tree.

    Raises
    ------
    InputError
        If rails differ in length, or one is no tree above all machines.
    """
    rows = [(0,) * n_machines + (-1,)] if trees is None else trees
    machines = "machines with sharp=on (dgx-h100:sharp=on@...) have SHARP; sharp of a collective"
    what = f"{name}: {machines} must have for each rail the switch above each of {n_machines} machines and each switch"
    if not isinstance(rows, Sequence) or not all(isinstance(row, Sequence) for row in rows):
        raise InputError(f"{what}, got {rows}")
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) <= n_machines:
        raise InputError(f"{what}, got rails of {sorted({len(row) for row in rows})} numbers")
    parent = np.array(rows, np.int64)
    n_switches = parent.shape[1] - n_machines
    for rail, row in enumerate(parent):
        inner = row[row != OUTSIDE]
        if inner.min() < -1 or inner.max() >= n_switches or row[:n_machines].min() < 0 or (row == -1).sum() != 1:
            raise InputError(f"{what} of 0..{n_switches - 1}, and -1 above exactly one; rail {rail} has {row.tolist()}")
        above = row
        for _ in range(n_switches):
            above = np.where(above >= 0, row[n_machines + np.maximum(above, 0)], above)
        if (above >= 0).any() or (above[row >= 0] == OUTSIDE).any():
            raise InputError(f"{what}; rail {rail} has a switch that never reaches the topmost: {row.tolist()}")
    return np.where(parent >= 0, parent + n_machines, parent)


def below_switches(
    tree: NDArray[np.int64], members: Sequence[int], first_switch: int, n_participants: int
) -> NDArray[np.int64]:  # fmt: skip
    """Return the parents of a rail's tree among all participants; -2 for those outside of it.

    Parameters
    ----------
    tree : int64[n_machines + n_switches]
        A row of :func:`read_sharp_trees`.
    members : sequence of int
        Rank of each machine that is in the tree.
    first_switch : int
        Helper that is the first switch.
    n_participants : int
        Ranks and helpers.
    """
    n_machines = len(members)
    parent = np.full(n_participants, OUTSIDE, np.int64)
    above = np.where(tree >= 0, tree - n_machines + first_switch, tree)
    parent[list(members)] = above[:n_machines]
    parent[first_switch : first_switch + len(tree) - n_machines] = above[n_machines:]
    return parent


def from_member(parent: NDArray[np.int64], member: int) -> NDArray[np.int64]:
    """Return the parents of the same tree with one of its members as the root.

    Parameters
    ----------
    parent : int64[n_participants]
        Parents of :func:`below_switches`.
    member : int
        Participant that is in the tree.
    """
    turned, below, above = parent.copy(), -1, member
    while above >= 0:
        turned[above], below, above = below, above, int(parent[above])
    return turned
