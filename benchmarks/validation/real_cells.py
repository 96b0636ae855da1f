"""What is run in testbeds: networks, collectives, sizes, placements. Small enough for two cores and a quarter hour."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from commsim.core.network import Network
from commsim.prediction.inputs import load_network

KIB, MIB = 1 << 10, 1 << 20
SMALL = (64 * KIB,)
USUAL = (256 * KIB, MIB, 4 * MIB)
FOUR = ("ring_all_reduce", "halving_doubling_all_reduce", "pairwise_all_to_all", "binomial_tree_all_reduce")
# Of other operations than all-reduce and all-to-all. Where they run has a group of its own, so that `--groups` can add
# these runs to those that were made before.
PARTS = ("ring_reduce_scatter", "ring_all_gather", "recursive_doubling_all_gather", "binomial_broadcast",
         "chain_broadcast", "binomial_reduce")  # fmt: skip
LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=1,latency=0us"


@dataclass(frozen=True, slots=True)
class Group:
    """Runs in one testbed.

    Parameters
    ----------
    name : str
        Unique; begins the ids of its rows.
    network : str
        ``topology:key=value,...``.
    collectives : tuple of str
        What is run.
    sizes : tuple of int, bytes
        Each at every size.
    placement : str
        Of the ranks.
    ranks : int or None
        All seats unless given.
    routing : str or None
        Of the network, where it has several paths.
    slower : float
        What the last host's links carry, relative to the others'.
    quick : bool
        Whether it belongs to the quick subset too.
    backend : str
        What carries the messages.
    native : tuple of str
        Operations of which the library's own collective is run too.
    calibrated : bool
        Whether costs are measured; not where messages between two are sent otherwise than inside the collective.
    """

    name: str
    network: str
    collectives: tuple[str, ...]
    sizes: tuple[int, ...] = USUAL
    placement: str = "packed"
    ranks: int | None = None
    routing: str | None = None
    slower: float = 1.0
    quick: bool = False
    backend: str = "mpi"
    native: tuple[str, ...] = ()
    calibrated: bool = True

    def build(self) -> Network:
        """Return the network."""
        network = load_network(self.network)
        if self.slower != 1:
            last = network.hosts[-1]
            touched = (network.src == last) | (network.dst == last)
            name = f"{network.name}, {network.nodes[last]} at {self.slower:g}"
            network = dataclasses.replace(
                network, name=name, bandwidth=np.where(touched, self.slower, 1.0) * network.bandwidth
            )
        return network if self.routing is None else dataclasses.replace(network, routing=self.routing)


GROUPS = (
    Group("star4-200M", "star:n_hosts=4,bandwidth=200Mbps,latency=0us",
          (*FOUR, "hierarchical_all_reduce", "direct_all_to_all", "parameter_server:n_servers=1",
           "double_tree_all_reduce:n_chunks=4"), SMALL + USUAL),
    Group("star4-200M-quick", "star:n_hosts=4,bandwidth=200Mbps,latency=0us",
          ("ring_all_reduce", "pairwise_all_to_all"), (MIB,), quick=True),
    Group("star4-200M-large", "star:n_hosts=4,bandwidth=200Mbps,latency=0us", FOUR[:3], (16 * MIB,)),
    Group("star4-500M", "star:n_hosts=4,bandwidth=500Mbps,latency=0us", FOUR, (*USUAL, 16 * MIB)),
    Group("star4-500M-64M", "star:n_hosts=4,bandwidth=500Mbps,latency=0us", FOUR[:2], (64 * MIB,)),
    Group("star8-100M", "star:n_hosts=8,bandwidth=100Mbps,latency=0us", (*FOUR, "parameter_server:n_servers=2"),
          SMALL + USUAL),
    Group("two-to-one4-packed", f"{LEAF_SPINE},hosts_per_leaf=2,bandwidth=200Mbps,uplink_bandwidth=200Mbps",
          (*FOUR[:3], "hierarchical_all_reduce")),
    Group("two-to-one4-spread", f"{LEAF_SPINE},hosts_per_leaf=2,bandwidth=200Mbps,uplink_bandwidth=200Mbps",
          (*FOUR[:3], "hierarchical_all_reduce"), placement="spread"),
    Group("two-to-one8-packed", f"{LEAF_SPINE},hosts_per_leaf=4,bandwidth=100Mbps,uplink_bandwidth=200Mbps",
          (*FOUR[:3], "hierarchical_all_reduce"), (256 * KIB, MIB)),
    Group("two-to-one8-spread", f"{LEAF_SPINE},hosts_per_leaf=4,bandwidth=100Mbps,uplink_bandwidth=200Mbps",
          (*FOUR[:3], "hierarchical_all_reduce"), (256 * KIB, MIB), placement="spread"),
    Group("one-slow4", "star:n_hosts=4,bandwidth=200Mbps,latency=0us", FOUR, slower=0.5),
    Group("fat-tree-50M", "fat_tree:k=4,bandwidth=50Mbps,latency=0us", FOUR[:3], (256 * KIB, MIB), ranks=8,
          routing="dmodk"),
    Group("torus3x3-50M", "torus:dims=3x3,bandwidth=50Mbps,latency=0us", ("torus_all_reduce:dims=3x3",),
          (256 * KIB, MIB), routing="shortest"),
    Group("dual-tor-50M", "dual_tor:n_racks=2,n_spines=2,hosts_per_rack=2,bandwidth=50Mbps,latency=0us",
          FOUR[:3], (256 * KIB, MIB), routing="shortest"),
    Group("omnireduce-50M", "star:n_hosts=4,bandwidth=50Mbps,latency=0us",
          tuple(f"omnireduce:density={d},block=256,n_aggregators=1,n_partitions=1" for d in (0.01, 0.1, 0.5)),
          (MIB, 4 * MIB)),
    Group("switch-50M", "star:n_hosts=4,bandwidth=50Mbps,latency=0us", ("ring_all_reduce", "switchml"), USUAL[:2]),
    Group("switch-20M", "star:n_hosts=4,bandwidth=20Mbps,latency=0us", ("ring_all_reduce", "switchml"), USUAL[:2]),
    Group("gloo-200M", "star:n_hosts=4,bandwidth=200Mbps,latency=0us", (), USUAL[1:], backend="gloo",
          native=("all_reduce",), calibrated=False),
    Group("star4-200M-parts", "star:n_hosts=4,bandwidth=200Mbps,latency=0us", PARTS, USUAL),
    Group("star4-500M-parts", "star:n_hosts=4,bandwidth=500Mbps,latency=0us", PARTS, USUAL),
    Group("star8-100M-parts", "star:n_hosts=8,bandwidth=100Mbps,latency=0us", PARTS, USUAL[:2]),
    Group("two-to-one4-packed-parts", f"{LEAF_SPINE},hosts_per_leaf=2,bandwidth=200Mbps,uplink_bandwidth=200Mbps",
          PARTS),
    Group("two-to-one4-spread-parts", f"{LEAF_SPINE},hosts_per_leaf=2,bandwidth=200Mbps,uplink_bandwidth=200Mbps",
          PARTS, placement="spread"),
    Group("fat-tree-50M-parts", "fat_tree:k=4,bandwidth=50Mbps,latency=0us", (PARTS[0], PARTS[1], PARTS[3]),
          USUAL[:2], ranks=8, routing="dmodk"),
    Group("mpich-200M", "star:n_hosts=4,bandwidth=200Mbps,latency=0us", (), USUAL[1:], native=("all_reduce",)),
)  # fmt: skip

# Groups of which the first should be slower than the second by the predicted factor.
SLOWED = (
    ("two-to-one4-spread", "two-to-one4-packed"),
    ("two-to-one8-spread", "two-to-one8-packed"),
    ("two-to-one4-spread-parts", "two-to-one4-packed-parts"),
)
# Groups in which the first collective should take longer than the second by the predicted factor.
FASTER = (("switch-50M", "ring_all_reduce", "switchml"), ("switch-20M", "ring_all_reduce", "switchml"))
