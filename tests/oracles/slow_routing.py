"""Breadth-first search written to be read."""

from commsim.core.network import Network


def distance(network: Network, source: int, target: int) -> int | None:
    """Fewest links from `source` to `target` through nodes that forward, or None."""
    if source == target:
        return 0
    frontier, seen, hops = {source}, {source}, 0
    while frontier:
        hops += 1
        reached = {
            int(b) for a, b in zip(network.src, network.dst, strict=True)
            if a in frontier and b not in seen
        }  # fmt: skip
        if target in reached:
            return hops
        seen |= reached
        frontier = {node for node in reached if network.forwards[node]}
    return None
