"""Bounds of ``commsim topo check``: rates of collectives that no routing exceeds."""

from __future__ import annotations

from commsim.core.network import Network
from commsim.ranking.synthesis.bound import lower_bound
from commsim.ranking.synthesis.optimal import all_to_all_rate, tree_all_reduce_rate

# Bytes at which no latency matters.
LARGE = 2.0**60


def bounds_of_collectives(network: Network) -> dict[str, tuple[float | None, str]]:
    """Return the rate (bytes/s; None if it is not known) that each collective cannot exceed, and why."""
    bound = lower_bound("all_reduce", network)
    return {
        "all_reduce, any schedule": (bound.rate, bound.why(LARGE)),
        "all_reduce, trees": (tree_all_reduce_rate(network), "linear program, reducing and broadcasting along trees"),
        "all_to_all": (all_to_all_rate(network), "linear program, maximum concurrent flow"),
    }
