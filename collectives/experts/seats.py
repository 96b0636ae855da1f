"""Seats of experts: the rank of each one, with replicas of popular experts, so that all ranks have as much to do."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

Ranks = NDArray[np.int32]


def ranks_of_choices(
    experts: NDArray[np.int32], n_experts: int, units: tuple[tuple[int, ...], ...], replicas: int, balance: bool
) -> Ranks:
    """Return the rank that each choice of each token goes to.

    Parameters
    ----------
    experts : int32[n_tokens, top_k]
        Experts of each token.
    n_experts : int
        Experts; rank by rank as many.
    units : tuple of tuple of int
        Ranks among which experts may be moved: of each machine where tokens go to few machines, else all.
    replicas : int
        Further seats of experts, in all; the most popular ones get them, one after the other.
    balance : bool
        Whether experts are seated by how many tokens they get, the most popular first, each on the least busy rank.

    Returns
    -------
    int32[n_tokens, top_k]

    Raises
    ------
    InputError
        If seats do not divide by ranks.

    References
    ----------
    DeepSeek-AI, "Expert parallelism load balancer", 2025: replicate, then pack; inside machines for limited routing.
    """
    n_ranks = sum(map(len, units))
    if n_experts % n_ranks:
        raise InputError(f"n_experts must be a multiple of {n_ranks} ranks, got {n_experts}")
    each = n_experts // n_ranks
    if not replicas and not balance:
        home: Ranks = experts // each
        return home
    if replicas < 0 or replicas % n_ranks:
        raise InputError(f"replicas must be a multiple of {n_ranks} ranks, 0 or more, got {replicas}")
    load = np.bincount(experts.ravel(), minlength=n_experts).astype(np.float64)
    seats: list[list[int]] = [[] for _ in range(n_experts)]
    for unit in units:
        mine = [e for rank in unit for e in range(rank * each, (rank + 1) * each)]
        _seat(mine, load, unit, each + replicas // n_ranks, seats)
    n_seats = np.array([len(seat) for seat in seats])
    table = np.zeros((n_experts, int(n_seats.max())), np.int32)
    for expert, seat in enumerate(seats):
        table[expert, : len(seat)] = seat
    token = np.arange(len(experts))[:, np.newaxis]
    seated: Ranks = table[experts, token % n_seats[experts]]
    return seated


def _seat(mine: list[int], load: NDArray[np.float64], unit: tuple[int, ...], room: int, seats: list[list[int]]) -> None:
    """Seat the experts of a unit on its ranks, `room` on each; replicas go to different ranks while there is room."""
    copies = dict.fromkeys(mine, 1)
    queue = [(-load[e], e) for e in mine]
    heapq.heapify(queue)
    for _ in range(room * len(unit) - len(mine)):
        _, e = queue[0]
        copies[e] += 1
        heapq.heapreplace(queue, (-load[e] / copies[e], e))
    parts = sorted(
        ((load[e] / n, e) for e, n in copies.items() for _ in range(n)), key=lambda part: (-part[0], part[1])
    )
    busy, left = dict.fromkeys(unit, 0.0), dict.fromkeys(unit, room)
    for share, e in parts:
        free = [rank for rank in unit if left[rank]]
        best = min(free, key=lambda rank: (rank in seats[e], busy[rank], rank))
        seats[e].append(best)
        busy[best] += share
        left[best] -= 1
