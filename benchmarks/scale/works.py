"""What the benchmark of scale measures: one collective on one kind of network, at growing numbers of ranks."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.schedule import Schedule
from commsim.prediction.inputs import load_network

# Bytes of every collective.
SIZE = 2.0**30
# Up to this many transfers the answer is compared with the event engine's, unless that takes minutes.
FULL_TRANSFERS = 10_000_000
# Transfers per second of processor time that irregular works have to reach.
LEAST_RATE = 2e6

RINGS = (1024, 2048, 4096, 8192, 16384)
LARGE = (8192, 32768, 131072)
LARGE_LIMIT = (10.0, 2000.0)
MILLION = 2**20
COLLIDING = (1024, 8192)
COLLIDING_LIMITS = {"ring": {8192: (120.0, 1000.0)}, "halving_doubling": {8192: (10.0, 1000.0)}}
REDUCTIONS = ("ring", "halving_doubling", "double_tree", "hierarchical")
RING_TRANSFERS = 2 * 1023 * 1024


def star(n: int) -> str:
    """Name a star of as many hosts."""
    return f"star:n_hosts={n},bandwidth=100Gbps,latency=1us"


def fat_tree(n: int) -> str:
    """Name the smallest fat tree that has enough hosts, and not less than 1,024."""
    k = next(k for k in itertools.count(16, 2) if k**3 // 4 >= n)
    return f"fat_tree:k={k},bandwidth=100Gbps,latency=1us"


def small_fat_tree(n: int) -> str:
    """Name the smallest fat tree that has enough hosts."""
    return f"fat_tree:k={next(k for k in itertools.count(4, 2) if k**3 // 4 >= n)}"


def rails(n: int) -> str:
    """Name three tiers over hosts of 8 GPUs, none oversubscribed: 32 hosts share 8 leaves, 16 such groups are a pod."""
    hosts = n // 8
    pod = min(hosts // 64, 16)
    return f"rail_optimized:n_hosts={hosts},hosts_per_group=32,groups_per_pod={pod},cores_per_spine=32"


@dataclass(frozen=True, slots=True)
class Series:
    """One collective on one kind of network.

    Parameters
    ----------
    collective : str
        Which.
    network : callable
        From the number of ranks to a topology.
    routing : str
        How paths are chosen; ECMP with seed 0.
    ranks : tuple of int
        How many.
    few : int
        How many where it only has to be quick: to load the kernels, and in tests.
    limits : mapping of int to (s, MB)
        What the work may take at most, for some numbers of ranks.
    random_rates : bool
        Whether each cable has a rate between a half of its own and all of it.
    scattered : bool
        Whether ranks sit on hosts at random, so that paths collide.
    jitter : float, s
        Ranks start at random times up to this.
    unequal : bool
        Whether blocks are of 1, 2, 3 or 4 chunks.
    full_ranks : int
        Up to this many the answer is compared with the event engine's, if there are not too many transfers.
    """

    collective: str
    network: Callable[[int], str]
    routing: str
    ranks: tuple[int, ...]
    few: int
    limits: Mapping[int, tuple[float, float | None]] = field(default_factory=dict)
    random_rates: bool = False
    scattered: bool = False
    jitter: float = 0.0
    unequal: bool = False
    full_ranks: int = 2**20

    def build_network(self, n: int) -> Network:
        """Return the network for `n` ranks."""
        network = load_network(self.network(n))
        if not self.random_rates:
            return network
        factor = np.tile(np.random.default_rng(0).uniform(0.5, 1.0, network.n_links // 2), 2)  # both ways alike
        return dataclasses.replace(network, bandwidth=network.bandwidth * factor)

    def build_schedule(self, n: int) -> str | Schedule:
        """Return the collective for `n` ranks, as :func:`commsim.prediction.prepare` takes it."""
        if not self.unequal:
            return self.collective
        counts = np.random.default_rng(0).integers(1, 5, n * n)
        return COLLECTIVES[self.collective].build(n, counts=tuple(counts.tolist()))


def _series() -> dict[str, Series]:
    ring, direct = "ring_all_reduce", "direct_all_to_all"
    found = {
        "ring, star": Series(ring, star, "dmodk", RINGS, 64, {4096: (0.05, 300.0)}),
        "ring, star, random rates": Series(ring, star, "dmodk", RINGS, 64, {4096: (0.05, 300.0)}, random_rates=True),
    }
    for routing in ("dmodk", "spray"):
        found[f"ring, fat tree, {routing}"] = Series(ring, fat_tree, routing, RINGS[:3], 64, {4096: (0.5, 300.0)})
    for name, routing in itertools.product(REDUCTIONS, ("dmodk", "spray", "ecmp")):
        ranks: tuple[int, ...] = LARGE
        limits = {LARGE[-1]: LARGE_LIMIT}
        if (name, routing) == ("ring", "spray"):  # as the network itself spreads packets
            ranks, limits = (*LARGE, MILLION), limits | {MILLION: (10.0, 1500.0)}
        if routing == "ecmp":  # collisions have no symmetry, so 8,192 ranks are enough
            ranks, limits = COLLIDING, COLLIDING_LIMITS.get(name, {})
        found[f"{name}, rails, {routing}"] = Series(
            f"{name}_all_reduce", rails, routing, ranks, 512, limits, full_ranks=LARGE[0]
        )
    for routing, few, many in (("dmodk", 0.05, 0.5), ("ecmp", 0.1, 1.5)):
        most = {256: (few, None), 1024: (many, None)}
        found[f"all-to-all, fat tree, {routing}"] = Series(direct, fat_tree, routing, (256, 1024), 16, most)
    for routing in ("dmodk", "ecmp"):
        found[f"unequal all-to-all, fat tree, {routing}"] = Series(
            "direct_all_to_all_v",
            fat_tree,
            routing,
            (64, 128, 256),
            16,
            {256: (15.0, None)},
            unequal=True,
            full_ranks=128,
        )
    fast = {1024: (RING_TRANSFERS / LEAST_RATE, None)}
    found["ring, fat tree, random rates, ecmp"] = Series(
        ring, fat_tree, "ecmp", (256, 512, 1024), 64, fast, random_rates=True
    )
    found["ring, scattered on a fat tree, random rates, ecmp"] = Series(
        ring, fat_tree, "ecmp", (256, 512, 1024), 64, fast, random_rates=True, scattered=True
    )
    found["ring, fat tree, late starters, ecmp"] = Series(
        ring, fat_tree, "ecmp", (256, 512, 1024), 64, {1024: (2.0, None)}, jitter=1e-3
    )
    found["byteps, star"] = Series("byteps", star, "dmodk", (64, 256), 16)
    found["byteps, fat tree, ecmp"] = Series("byteps", small_fat_tree, "ecmp", (16, 128), 16)
    pieces = "byteps:n_partitions=8"
    found["byteps in 8 partitions, star"] = Series(pieces, star, "dmodk", (64,), 16)
    found["byteps in 8 partitions, fat tree, ecmp"] = Series(pieces, small_fat_tree, "ecmp", (16, 128), 16)
    return found


SERIES = _series()
