"""How many pieces a pipelined collective cuts its data into: one rule for predictions and for real runs.

A pipeline of k pieces over h hops takes h - 1 + k times that of a piece. Small pieces fill it sooner and pay more
overheads; the best number balances both. With a fixed number (64, whatever the size) a real double tree of 4 KiB takes
0.9 ms where one message each way takes some microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from commsim.core.registry import Entry
from commsim.core.schedule import Schedule

# Bytes that a link sends during the overhead of a message, o B: 1.3 us at 100 Gb/s, 0.3 us at 400 Gb/s. A constant, not
# the network's own product, since ranks that execute a schedule do not know the network and must cut as the model does.
OVERHEAD_BYTES = 16384
# Pieces where no size is known, as in a saved schedule; and the fewest of the most that a large number of ranks allows.
USUAL = 64
# Pieces times ranks, so that a schedule keeps within some million messages.
MAX_PIECES_OF_RANKS = 2**18


def count_pieces(n_ranks: int, n_bytes: float, n_hops: int) -> int:
    """Return the number of pieces, sqrt((h - 1) n / (o B)), with which a pipeline of h hops is fastest.

    Parameters
    ----------
    n_ranks : int
        p; pieces are at most 64, or 2^18 / p where that is more.
    n_bytes : float
        n: what passes each hop in all.
    n_hops : int
        h, at least 0. One hop is no pipeline, and has one piece.
    """
    square = max(n_hops - 1, 0) * n_bytes / OVERHEAD_BYTES
    # One piece more is faster as long as k (k + 1) is below the square: the first k for which it is not is the best.
    best = math.ceil((math.sqrt(1 + 4 * square) - 1) / 2)
    return max(1, min(best, max(USUAL, MAX_PIECES_OF_RANKS // n_ranks)))


def sized_parameters(entry: Entry[Schedule], n_ranks: int, size: float, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with the number of pieces that suits a size, where the collective is cut and none is given.

    Parameters
    ----------
    entry : Entry
        The collective.
    n_ranks : int
        Ranks.
    size : float, bytes
        Size of the operation.
    parameters : dict
        Its parameters so far.
    """
    pieces: Callable[[int, float], int] | None = entry.metadata.get("pieces")
    if pieces is None or parameters.get("n_chunks") is not None:
        return parameters
    return parameters | {"n_chunks": pieces(n_ranks, size)}
