"""The network as channels of rings and trees see it: they leave by the NIC of NCCL's search, whatever rail it is on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives.dense.multi_ring import leaving
from commsim.core.cache import once
from commsim.core.network import Network
from commsim.core.network_queries import fact
from commsim.prediction.good_parameters import nearest_rails
from commsim.routing.link_rows import only_sends

if TYPE_CHECKING:
    from commsim.nccl.plans.nccl_launch import NcclLaunch

# Algorithms whose channels leave a machine by the GPU beside the NIC that was found for them.
BY_SEARCH = ("ring", "tree", "nvls_tree")


def seen_by_channels(launch: NcclLaunch, parameters: Mapping[str, Any]) -> Network:
    """Return the network in which a call's messages find their ways.

    With PXN a message goes by the NIC of the receiver's rail. That holds for messages between pairs; a channel of a
    collective keeps to the NIC that the search gave to it. The two differ where machines have other rails alive: after
    a NIC has failed, two channels would share the NIC of one rail, and another NIC would be idle. So GPUs pass nothing
    on here. Where a channel leaves by a GPU without a NIC of its own, it needs another GPU, and all stays as it is.

    Parameters
    ----------
    launch : NcclLaunch
        Collective on placed ranks.
    parameters : mapping of str to value
        Parameters of its schedule.

    References
    ----------
    NCCL 2.30.7, ``src/graph/topo.cc`` (ncclTopoGetNetDev: "Honor the net device in the graph"; only without a graph
    is the NIC of the peer's rail looked for).
    """
    if parameters.get("algorithm") not in BY_SEARCH:
        return launch.network
    is_apart = once(launch._facts, "own NICs", lambda: _leave_by_own_nics(launch))
    return _without_relays(launch.network) if is_apart else launch.network


def _leave_by_own_nics(launch: NcclLaunch) -> bool:
    """Whether every GPU by which a channel leaves its machine has a NIC as near as any GPU has."""
    n_rails = int(launch.rings.get("rails") or 0)
    if len(launch.machines) < 2 or not n_rails:
        return False
    nodes = launch.placement.nodes
    links = np.array([n for _, n in nearest_rails(launch.network, nodes)])
    out = [machine[leaving(len(machine), rail, n_rails)] for machine in launch.machines for rail in range(n_rails)]
    return bool((links[out] == links.min()).all())


@fact
def _without_relays(network: Network) -> Network:
    """Return the network in which GPUs pass nothing on for others; itself where they do not."""
    relays = only_sends(network)
    return dataclasses.replace(network, forwards=network.forwards & ~relays) if relays.any() else network
