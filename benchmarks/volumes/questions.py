"""Questions that are drawn: a collective on a network, whose rates, times and size can be scaled and written anew."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import commsim as cs
import commsim.prediction.solve
from collectives import COLLECTIVES
from switch_model.systems import SYSTEMS

# Hosts of a network, and the networks: counts are drawn out of ranges; a list of dims is one word.
NETWORKS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("star", {"n_hosts": (2, 14)}), ("star", {"n_hosts": (8, 14)}), ("ring", {"n_hosts": (3, 9)}),
    ("fully_connected", {"n_hosts": (3, 9)}), ("hypercube", {"dimension": (2, 3)}), ("fat_tree", {"k": 4}),
    ("leaf_spine", {"n_leaves": (2, 4), "n_spines": (1, 3), "hosts_per_leaf": (1, 4)}),
    ("leaf_spine", {"n_leaves": (2, 3), "n_spines": 1, "hosts_per_leaf": (2, 4), "oversubscription": (1, 4)}),
    ("torus", {"dims": ("2x3", "3x3", "4x2", "2x2x2")}), ("bcube", {"n": (2, 3), "k": 1}),
    ("dragonfly", {"p": (1, 2), "a": 2, "h": 1}), ("multi_plane", {"n_planes": 2, "n_leaves": 2, "n_spines": (1, 2),
                                                                  "hosts_per_leaf": (1, 4)}),
    ("dual_tor", {"n_racks": 2, "n_spines": (1, 2), "hosts_per_rack": (1, 4)}),
    ("three_tier", {"n_pods": 2, "racks_per_pod": 2, "hosts_per_rack": (1, 2), "switches_per_pod": (1, 2),
                    "n_cores": (1, 2), "oversubscription": (1, 2)}),
    ("jellyfish", {"n_switches": (4, 5), "degree": 2, "hosts_per_switch": (1, 2), "seed": (0, 9)}),
)  # fmt: skip
# Gb/s: whole picoseconds a byte, also at twice the rate.
RATES = (10, 25, 40, 100, 200, 400)
LATENCIES = (0, 2, 500, 1000, 2000, 20_000)  # ns
OVERHEADS = (0, 0, 200, 1000, 10_000)  # ns
ENGINES = ("flow", "flow", "flow", "flow", "packet", "alpha-beta", "closed-form")
# Choices and costs of libraries depend on more than the network; relations of their own ask for them.
LIBRARIES = ("nccl_", "rccl_", "ep_")
ALGORITHMS = tuple(sorted(name for name in COLLECTIVES if not name.startswith(LIBRARIES)))
# Collectives with servers on free hosts though they need none.
WITH_SERVERS = ("atp", "parallax", "byteps", "parameter_server", "omnireduce")
# A byte is a whole number of elements and chunks of most collectives: 840 has many divisors.
UNIT = 16 * 840
MOST_PACKET_BYTES = 2**18


class Question(NamedTuple):
    """A collective on a network, with costs of messages.

    Parameters
    ----------
    collective : str
        Name of the collective.
    topology : str
        Name of the network, with its counts.
    rate, latency, overhead : float, Gb/s, ns, ns
        Of each link, and of each message.
    size : int, bytes
        Size of the operation.
    n_ranks : int
        Number of ranks.
    engine : str
        Model of time.
    seed : int
        Seed of what relations draw.
    """

    collective: str
    topology: str
    rate: float
    latency: float
    overhead: float
    size: int
    n_ranks: int
    engine: str
    seed: int

    @property
    def network(self) -> str:
        """The network as text."""
        return f"{self.topology},bandwidth={self.rate!r}Gbps,latency={self.latency!r}ns"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the collective declares."""
        return COLLECTIVES[self.collective].metadata

    @property
    def is_in_switch(self) -> bool:
        """Whether switches aggregate, whose packets have sizes of their own."""
        return bool(self.metadata["systems"]) or self.collective in SYSTEMS

    @property
    def has_helpers(self) -> bool:
        """Whether others than ranks take part, such as servers on free hosts, which jobs may share."""
        return self.is_in_switch or bool(self.metadata["needs"]) or self.collective in WITH_SERVERS

    @property
    def draw(self) -> random.Random:
        """Generator of what a relation draws."""
        return random.Random(self.seed)

    def options(self, **other: Any) -> dict[str, Any]:
        """Return the keywords of the question; others take their place, and None leaves one out."""
        given = {"n_ranks": self.n_ranks, "engine": self.engine, "overhead": f"{self.overhead!r}ns"} | other
        return {key: value for key, value in given.items() if value is not None}

    def ask(self, network: Any = None, size: Any = None, **other: Any) -> Any:
        """Return the prediction; what is given takes the place of what was drawn."""
        network = self.network if network is None else network
        return cs.predict(self.collective, network, self.size if size is None else size, **self.options(**other))

    def time(self, **other: Any) -> float:
        """Return the time of the prediction, s."""
        return float(self.ask(**other).time)

    def __str__(self) -> str:
        return (f"{self.collective} of {self.size} B, {self.n_ranks} ranks, {self.network}, overhead "
                f"{self.overhead} ns, {self.engine}")  # fmt: skip


def drawn_question(draw: random.Random) -> Question:
    """Draw a question; some cannot be answered."""
    name, ranges = draw.choice(NETWORKS)
    given = ",".join(f"{key}={_drawn(draw, value)}" for key, value in ranges.items())
    topology = f"{name}:{given}"
    n_hosts = len(cs.load_network(topology).hosts)
    engine = draw.choice(ENGINES)
    size = UNIT * round(2 ** draw.uniform(0, 8)) if draw.random() < 0.7 else draw.randint(1, 2**22)
    if engine == "packet":
        size = min(size, MOST_PACKET_BYTES)
    return Question(
        draw.choice(ALGORITHMS), topology, draw.choice(RATES), draw.choice(LATENCIES), draw.choice(OVERHEADS), size,
        draw.randint(1, n_hosts), engine, draw.randrange(2**31),
    )  # fmt: skip


def _drawn(draw: random.Random, value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return draw.choice(value) if isinstance(value[0], str) else draw.randint(*value)
