"""Whether a bound by bytes is attained: what the best trees take at large sizes, in exact numbers."""

from __future__ import annotations

import importlib.util

import numpy as np

from commsim.core.errors import CommsimError

from .bound import TIE, LowerBound
from .trees.forest import DIRECTIONS, Grower
from .trees.whole_rates import unbalanced_switch, whole_network

# Ranks times links, of one flow to each rank; and of all-reduce, a linear program.
MAX_STEPS = {False: 40_000, True: 4_000}


def best_trees(bound: LowerBound) -> float | None:
    """Return how many times the bound the best trees take at large sizes.

    Only bounds for schedules in which only ranks add and copy are held against trees.

    Parameters
    ----------
    bound : LowerBound
        Lower bound of an operation that trees carry.

    Returns
    -------
    float or None
        Exactly 1 where the bound is attained. None where it is not known: for other operations, large networks, rates
        without a common measure, and switches whose rates in and out differ.
    """
    per_byte = max((part.per_byte for part in bound.parts), default=0.0)
    if bound.anywhere or bound.operation not in DIRECTIONS or not per_byte or bound.network is None:
        return None
    if importlib.util.find_spec("scipy") is None:
        return None
    network, ranks = bound.network, np.asarray(bound.ranks, np.int32)
    if len(ranks) * network.n_links > MAX_STEPS[bound.operation == "all_reduce"] or len(np.unique(ranks)) < len(ranks):
        return None
    whole = whole_network(network, ranks)
    if whole.rounded or unbalanced_switch(whole) is not None:
        return None
    try:
        times = Grower(whole, bound.operation, bound.root).per_byte / per_byte
    except CommsimError:
        return None
    return 1.0 if abs(times - 1) < TIE else times
