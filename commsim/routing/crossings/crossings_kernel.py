"""Kernel that counts the routes over each link that hashes draw over a forest of classes, and keeps none of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel
from commsim.routing.ports_kernel import Ports
from commsim.routing.routing_kernel import hashed

# Of each node its class; of each class those above it, by depth, and its place among those below the same one; of each
# node its rows upwards, first and number, and where its own begin among those downwards; these, by place of the class.
Steps = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64],
              NDArray[np.int32]]  # fmt: skip
# The numbers of :func:`commsim.routing.link_rows.flow_hash`, as this kernel's type.
PLUS, FACTOR_1, FACTOR_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S33 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(33)


@kernel
def _mixed(h: np.uint64) -> np.uint64:
    """Do the same as :func:`commsim.routing.link_rows.mixed`."""
    h = (h ^ (h >> S30)) * FACTOR_1
    h = (h ^ (h >> S27)) * FACTOR_2
    return h ^ (h >> S31)


@kernel
def count_forest(
    flows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    seeds: NDArray[np.uint64],
    ports: tuple[tuple[Ports, Ports], NDArray[np.int32], NDArray[np.bool_]],
    steps: Steps,
    links: tuple[NDArray[np.int32], NDArray[np.int32], tuple[NDArray[np.int32], NDArray[np.int32]]],
    latency: NDArray[np.float64],
    choice: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], bool]:
    """Count the routes from endpoints to those of other machines, for the hashes of several seeds at once.

    A route's classes, and so the moves up and down, are the same whatever is hashed.

    Parameters
    ----------
    flows : (int64[n], int64[n], int64[n])
        Source, destination and channel of each route.
    seeds : uint64[n_seeds]
        Seeds of the hashes.
    ports : ((Ports, Ports), int32[n, 2], bool[n])
        Same as in :func:`commsim.routing.forest_kernel.walk_forest`.
    steps : Steps
        Links between switches from each switch to the classes that it is joined to.
    links : (int32[n_rows], int32[n_rows], (int32[n_links], int32[n_links]))
        Link of each row and the switch that it leads to; source and destination of each link.
    latency : float64[n_links], s
        Latency of each link.
    choice : int
        BY_HASH or BY_ONE_HASH.

    Returns
    -------
    n_over, furthest, known
        Routes over each link and the largest latency of these, by seed: int64[n_seeds, n_links] and float64[n_seeds,
        n_links], s; and whether all routes were found. If not, counts mean nothing.
    """
    n_seeds = seeds.shape[0]
    n_over = np.zeros((n_seeds, latency.shape[0]), np.int64)
    furthest = np.zeros((n_seeds, latency.shape[0]))
    src, dst, channel = flows
    (out, back), chosen, single = ports
    node_class, above, place, up, first_down, down = steps
    row_link, row_end, (link_src, link_dst) = links
    deepest = above.shape[1] - 1
    path = np.empty((2 * deepest + 4, n_seeds), np.int32)
    key = np.empty(n_seeds, np.int64)
    node = np.empty(n_seeds, np.int32)
    total = np.empty(n_seeds)
    for i in range(src.shape[0]):
        if not single[i]:
            return n_over, furthest, False
        leave, enter = chosen[i, 0], chosen[i, 1]
        before = 0.0
        for k in range(out[4][leave], out[4][leave + 1]):
            before += latency[out[5][k]]
        before += latency[out[1][leave]]
        entry = link_dst[out[1][leave]]
        last = link_src[back[1][enter]]
        for s in range(n_seeds):
            h = _mixed(seeds[s] ^ (np.uint64(src[i]) + PLUS))
            h = _mixed(h ^ (np.uint64(dst[i]) + PLUS))
            h = _mixed(h ^ (np.uint64(channel[i]) + PLUS))
            key[s] = np.int64(h >> S33)
            node[s] = entry
            total[s] = before
        m = 0
        if entry != last:
            goal, here = node_class[last], node_class[entry]
            depth = 0
            while depth < deepest and above[here, depth] != here:
                depth += 1
            climbs = True
            while climbs:  # to the first class above both
                depth -= 1
                if depth < 0:
                    return n_over, furthest, False
                for s in range(n_seeds):
                    low, n_choices = up[node[s], 0], up[node[s], 1]
                    if n_choices == 0:
                        return n_over, furthest, False
                    if n_choices > 1:
                        low += hashed(n_choices, key[s], node[s], choice)
                    path[m, s] = row_link[low]
                    total[s] += latency[row_link[low]]
                    node[s] = row_end[low]
                m += 1
                climbs = above[goal, depth] != above[here, depth]
            while depth < deepest and above[goal, depth] != goal:
                depth += 1
                below = place[above[goal, depth]]
                for s in range(n_seeds):
                    at = first_down[node[s]] + below
                    low, n_choices = down[at, 0], down[at, 1]
                    if n_choices == 0:
                        return n_over, furthest, False
                    if n_choices > 1:
                        low += hashed(n_choices, key[s], node[s], choice)
                    path[m, s] = row_link[low]
                    total[s] += latency[row_link[low]]
                    node[s] = row_end[low]
                m += 1
        for s in range(n_seeds):
            if node[s] != last:
                return n_over, furthest, False
            reached = total[s] + latency[back[1][enter]]
            for k in range(back[4][enter + 1] - 1, back[4][enter] - 1, -1):
                reached += latency[back[5][k]]
            total[s] = reached
            for k in range(m):
                over = path[k, s]
                n_over[s, over] += 1
                furthest[s, over] = max(furthest[s, over], reached)
        for s in range(n_seeds):
            for over in (out[1][leave], back[1][enter]):
                n_over[s, over] += 1
                furthest[s, over] = max(furthest[s, over], total[s])
            for over in out[5][out[4][leave] : out[4][leave + 1]]:
                n_over[s, over] += 1
                furthest[s, over] = max(furthest[s, over], total[s])
            for over in back[5][back[4][enter] : back[4][enter + 1]]:
                n_over[s, over] += 1
                furthest[s, over] = max(furthest[s, over], total[s])
    return n_over, furthest, True
