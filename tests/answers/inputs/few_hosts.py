from commsim.placement.candidate import PlacementCandidate
from commsim.placement.cluster import Cluster
from commsim.placement.rankings import placement_ranking


@placement_ranking
def few_hosts(candidate: PlacementCandidate, cluster: Cluster) -> float:
    """Hosts that jobs use."""
    return len({host for hosts in candidate.placement.values() for host in hosts})
