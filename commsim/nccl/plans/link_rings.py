"""NCCL's rings on placed ranks: by the NICs of machines, and in one machine over all direct links between its GPUs.

NCCL takes rings off the links until none is left that has room for another one (``ncclTopoCompute``). With a switch all
orders are alike; four GPUs joined all to all have rings in six, and the eight of a DGX-1 three and their reverses.

References
----------
NCCL 2.30, ``src/graph/search.cc``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any

from collectives.nccl.mesh_rings import mesh_cycles
from commsim.core.machines.local_nics import most_own
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.prediction.good_parameters import count_rails

Ring = tuple[int, ...]
# Rates of links that differ by less are equal.
_SAME = 1e-6
# Largest machine whose rings are searched, rings that are looked at, and steps of the search for those that fit.
MAX_GPUS, MAX_RINGS, MAX_STEPS = 16, 2000, 20_000


def rings_of_nccl(network: Network, placement: Placement, machines: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    """Return parameters of a collective: NICs by which rings leave machines, and rings over direct links of one.

    Parameters
    ----------
    network, placement : Network, Placement
        Network and placement of the ranks.
    machines : tuple of tuple of int
        Ranks of each machine, by their rails.
    """
    rails = (count_rails(network, placement, machines) or 0) * most_own(network, placement.nodes)
    cycles = rings_of_links(network, placement.nodes[list(machines[0])].tolist()) if len(machines) == 1 else ()
    return {"rails": rails, "cycles": cycles} if cycles else {"rails": rails}


def rings_of_links(network: Network, nodes: Sequence[int]) -> tuple[Ring, ...]:
    """Return the rings that use the direct links between GPUs of a machine, one for each channel in turn.

    Parameters
    ----------
    network : Network
        Network with links between the GPUs.
    nodes : sequence of int
        GPUs of one machine.

    Returns
    -------
    tuple of tuple of int
        Rings as places in `nodes`, each as often as links have room for it; empty where direct links close no ring of
        all of them, as where GPUs meet in an NVSwitch.
    """
    if not 3 <= len(nodes) <= MAX_GPUS:
        return ()
    place = {node: number for number, node in enumerate(nodes)}
    rate = {
        (place[a], place[b]): r
        for a, b, r in zip(network.src.tolist(), network.dst.tolist(), network.bandwidth.tolist(), strict=True)
        if a in place and b in place
    }
    if not rate:
        return ()
    least, most = min(rate.values()), max(rate.values())
    if most <= least * (1 + _SAME) and all(pair in rate for pair in permutations(range(len(nodes)), 2)):
        return mesh_cycles(len(nodes))
    links = {pair: int(r / least + _SAME) for pair, r in rate.items()}
    one_way = _most_that_fit(_closed(links, len(nodes)), links, len(nodes))
    return (*one_way, *(ring[::-1] for ring in one_way))


def _closed(links: Mapping[tuple[int, int], int], n: int) -> list[Ring]:
    """Return rings over the links, each in one direction, those over many links first."""
    next_to: dict[int, list[int]] = {a: [] for a in range(n)}
    for a, b in sorted(links):
        next_to[a].append(b)

    def go_on(path: Ring) -> Iterator[Ring]:
        if len(path) == n:
            if path[1] < path[-1] and (path[-1], 0) in links:
                yield path
            return
        for b in next_to[path[-1]]:
            if b not in path:
                yield from go_on((*path, b))

    found = [ring for ring, _ in zip(go_on((0,)), range(MAX_RINGS), strict=False)]
    return sorted(found, key=lambda ring: -min(links[pair] for pair in _pairs(ring)))


def _most_that_fit(rings: Sequence[Ring], links: Mapping[tuple[int, int], int], n: int) -> tuple[Ring, ...]:
    """Return the largest multiset of rings, each a unit of every link that it goes over, that the links have room for.

    A ring and its reverse take both directions alike, and two of the links of each GPU.
    """
    most = min(sum(links.get((a, b), 0) for b in range(n)) for a in range(n)) // 2
    best: tuple[Ring, ...] = ()
    steps = 0

    def add(first: int, taken: tuple[Ring, ...], used: Counter[tuple[int, int]]) -> None:
        nonlocal best, steps
        best = taken if len(taken) > len(best) else best
        for number in range(first, len(rings)):
            steps += 1
            if len(best) == most or steps > MAX_STEPS:
                return
            pairs = _pairs(rings[number])
            if all(used[pair] < links[pair] for pair in pairs):
                add(number, (*taken, rings[number]), used + Counter(pairs))

    add(0, (), Counter())
    return best


def _pairs(ring: Ring) -> list[tuple[int, int]]:
    """Return the neighbours in a ring, the lower one first: a link is the same in both directions."""
    return [(min(a, b), max(a, b)) for a, b in pairwise((*ring, ring[0]))]
