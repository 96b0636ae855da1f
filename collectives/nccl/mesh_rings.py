"""Rings that use every link of a full mesh equally: RCCL's on machines whose GPUs are joined all to all by xGMI.

References
----------
Lucas, "Récréations mathématiques", volume 2, 1883 (Walecki's construction): the zigzag 0, 1, -1, 2, -2, ... over the
whole numbers modulo n - 1, closed through one more member, and its rotations. RCCL 2.22, ``src/graph/rome_models.cc``:
for eight MI300X seven rings and their reverses.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


@functools.cache
def mesh_cycles(n: int) -> tuple[tuple[int, ...], ...]:
    """Return 2 (n - 1) rings over n members, which together go over each link, in each direction, twice.

    Parameters
    ----------
    n : int
        Members of the mesh, at least 1. One or two have a single ring.
    """
    if n < 3:
        return (tuple(range(n)),)
    zigzag = [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(n - 1)]
    rings = [(n - 1, *((place + turn) % (n - 1) for place in zigzag)) for turn in range(n - 1)]
    return (*rings, *(ring[::-1] for ring in rings))


def mesh_order(
    machines: Sequence[Sequence[int]], channel: int, cycles: Sequence[Sequence[int]] | None = None
) -> NDArray[np.int64]:
    """Ranks in the order of the ring of a channel, which leaves every machine and enters the next by one rail.

    Parameters
    ----------
    machines : sequence of sequence of int
        Ranks of each, in the order of their rails.
    channel : int
        Number. With n ranks in a machine, n (n - 1) channels use all links and all rails
        equally: 56 of eight ranks.
    cycles : sequence of sequence of int, optional
        Rings inside every machine, as places in it; by default those of a full mesh.
    """
    order: list[int] = []
    for number, machine in enumerate(machines):
        inside = cycles or mesh_cycles(len(machine))
        cycle = inside[channel % len(inside)]
        # By two places from one use of a cycle to the next: then rails are used equally at both ends of the path.
        first = 2 + 2 * (channel // len(inside))
        path = [machine[cycle[(first + i) % len(cycle)]] for i in range(len(cycle))]
        order += reversed(path) if number % 2 else path
    return np.array(order)
