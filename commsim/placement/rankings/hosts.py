"""Ranking by the hosts that jobs use."""

from __future__ import annotations

from commsim.core.network_queries import units
from commsim.placement.candidate import PlacementCandidate
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import numbers_of

from . import placement_ranking


@placement_ranking
def hosts(candidate: PlacementCandidate, cluster: Cluster) -> float:
    """Hosts or machines that jobs use: the fewest leave the most whole ones to jobs that come later."""
    unit, number = units(cluster.network), numbers_of(cluster.network)
    return float(len({int(unit[number[node]]) for nodes in candidate.placement.values() for node in nodes}))
