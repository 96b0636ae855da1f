"""Hosts that faults cut off from the others, and the placement that leaves them out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.names.hostlist import compress_hosts
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network import Network

MAX_CHARACTERS = 120  # of the placement; a longer one is not written out


def told_cut_off(network: Network) -> str:
    """Say which hosts are cut off, after the error of a pair without a path; empty where there is nothing to leave out.

    Parameters
    ----------
    network : Network
        Network in which some pair has no path.
    """
    ends, hosts = network.endpoints, host_names(network)
    labels, part, counts = np.unique(_parts(network)[ends], return_inverse=True, return_counts=True)
    if len(labels) < 2 or counts.max() < 2:
        return ""
    is_cut = part != counts.argmax()
    cut = dict.fromkeys(hosts[node] for node in ends[is_cut].tolist())
    left = [host for host in dict.fromkeys(hosts[node] for node in ends.tolist()) if host not in cut]
    try:
        names, placement = compress_hosts(cut), compress_hosts(left)
    except InputError:  # of a file, with characters that a list of hosts cannot have
        return ""
    if not left or max(len(names), len(placement)) > MAX_CHARACTERS:
        return f"; {len(cut)} of {len(cut) + len(left)} hosts are cut off"
    verb, them = ("is", "it") if len(cut) == 1 else ("are", "them")
    return f"; {names} {verb} cut off: placement {placement} leaves {them} out"


def _parts(network: Network) -> NDArray[np.int64]:
    """Label each node with a node of its part: nodes that reach each other have the same; others pass on nothing."""
    number, passes = np.arange(network.n_nodes), network.forwards
    label = np.where(passes, number, network.n_nodes + number)
    inner = passes[network.src] & passes[network.dst]
    src, dst = network.src[inner], network.dst[inner]
    while True:
        lower = label.copy()
        np.minimum.at(lower, src, label[dst])
        np.minimum.at(lower, dst, label[src])
        lower[passes] = lower[lower[passes]]  # a label is a node that passes on, which may know a lower one
        if np.array_equal(lower, label):
            break
        label = lower
    outer = passes[network.dst] & ~passes[network.src]
    np.minimum.at(label, network.src[outer], label[network.dst[outer]])
    return label
