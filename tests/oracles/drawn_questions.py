"""Questions that are drawn with a seed: a collective of a few ranks on a small network, with costs of messages."""

import functools
import random
from typing import NamedTuple

import commsim as cs
import commsim.prediction.solve  # switch systems are collectives from here on
from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import Network

ENGINES = ("alpha-beta", "closed-form", "flow", "packet")
NETWORKS = (
    "star:n_hosts=12", "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4,oversubscription=2", "fat_tree:k=4",
    "ring:n_hosts=9", "torus:dims=3x3", "fully_connected:n_hosts=8", "hypercube:dimension=3",
    "dragonfly:a=2,h=1,p=2", "bcube:n=3,k=1",
)  # fmt: skip
# Whole picoseconds a byte, at twice the rate too.
BANDWIDTHS = ("10Gbps", "25Gbps", "40Gbps", "100Gbps", "200Gbps", "400Gbps")
MOST_RANKS = 8  # hosts of the smallest network
# Of libraries whose choices and costs depend on more than the network: they are asked by their names.
LIBRARIES = ("nccl_", "rccl_")
# sorted, and without those of other tests: what is drawn must not depend on what was imported before
ALGORITHMS = tuple(
    sorted(
        name
        for name in COLLECTIVES
        if not name.startswith(LIBRARIES) and COLLECTIVES[name].build.__module__.startswith("collectives.")
    )
)


class Question(NamedTuple):
    """A collective of `n_ranks` on a network whose nodes have the costs of messages, of `size` bytes."""

    collective: str
    network: Network
    size: int
    n_ranks: int
    engine: str

    def ask(self, **other):
        """Return the prediction; `other` takes the place of what was drawn."""
        network, size = other.pop("network", self.network), other.pop("size", self.size)
        given = {"n_ranks": self.n_ranks, "engine": self.engine} | other
        return cs.predict(self.collective, network, size, **given)

    def __str__(self):
        return f"{self.collective} of {self.size} B, {self.n_ranks} ranks, {self.network.name}, {self.engine}"


def network_with_costs(draw, spec):
    """Return a network with drawn rates, latencies and costs of messages."""
    spec += f",bandwidth={draw.choice(BANDWIDTHS)},latency={draw.choice((0, 2, 500, 2000, 20_000))}ns"
    costs = {"overhead": draw.choice(("0s", "200ns", "1us", "10us")), "reduce_rate": draw.choice((None, "10GB/s"))}
    return cs.scenario_of("ring_all_reduce", spec, **costs).network


@functools.cache
def drawn_questions(engine, n=25, seed=34, *, networks=NETWORKS):
    """Draw `n` questions that are answered, each with its answer."""
    draw, found = random.Random(f"{seed} {engine}"), []
    for _ in range(20 * n):
        network = network_with_costs(draw, draw.choice(networks))
        # 840 is a multiple of most numbers of chunks, and 16 of elements
        size = 16 * 840 * round(2 ** draw.uniform(0, 7)) if draw.random() < 0.7 else draw.randint(1, 2**20)
        asked = Question(draw.choice(ALGORITHMS), network, size, draw.randint(2, MOST_RANKS), engine)
        try:
            found.append((asked, asked.ask()))
        except InputError:
            continue
        if len(found) == n:
            return tuple(found)
    raise AssertionError(f"only {len(found)} of {n} questions were answered")
