"""The channels that NCCL's search of a regular machine comes to: how many, and how fast each.

NCCL packs as many equal channels as fit into a machine, for each of a list of rates, and keeps what carries the most in
all; then it doubles channels that are fast and few, at half the rate. Its search goes over every link; here a machine
is two numbers, a GPU's links and its NICs. ``NCCL_GRAPH_DUMP_FILE`` says what NCCL really found.

References
----------
NCCL 2.30, ``src/graph/search.cc``. 8 H100 with 8 NICs of 400 Gb/s have 8 rings of 48 GB/s, not of 45: a log of 2.28 on
RoCE ("Pattern 4, crossNic 2, nChannels 8, bw 48"), and the tuning logs of 2.27.5 in meta-pytorch/autoparallel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from collectives.nccl.call import NEWEST
from commsim.core.errors import InputError

# Of the rate of the best channels so far: below that the search tries no others.
SLOWEST_TRIED = 0.49
_FIT = 1e-9
# Kinds of paths, the shortest first.
PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
# A generation has a row in the tables of this module, and one in ``gpu_costs.toml``.
GENERATIONS = ("volta", "ampere", "hopper", "blackwell")
SINCE_HOPPER = GENERATIONS[GENERATIONS.index("hopper") :]
CPUS = ("intel", "amd", "other")
NVLS_EFFICIENCY = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
NET_OVERHEAD_US = {"intel": 1.0, "amd": 2.0, "other": 1.0}

# By protocol: what is left of a tree's rate from 64 B, 128 B and so on to 256 MiB; below and above all of it.
TREE_CORRECTION = (
    (1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0),
    (1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0),
    (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
)
SMALLEST_CORRECTED = 64

# Rates of a channel inside a node that the search tries, the fastest first.
CHANNEL_GBS = {
    "volta": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3), "ampere": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    "hopper": (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
    "blackwell": (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
}  # fmt: skip
# The same between nodes.
CHANNEL_NET_GBS = {
    "volta": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "ampere": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "hopper": (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    "blackwell": (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
}  # fmt: skip
MAX_CHANNELS = 64
# First release known to give half as many channels more where CollNet is on (src/graph/connect.cc).
MORE_WITH_COLLNET = (2, 12)
# Rings that carry at most this together, in bytes/s, have fewer threads (src/graph/tuning.cc).
SLOW_RINGS = 12e9
DOUBLED_FROM_GBS = 25.0
DOUBLED_FROM_HOPPER_GBS = 50.0
FEW_CHANNELS = 4
# Heads of NVLink SHARP up to which the search has time to raise their rate between nodes.
RAISED_HEADS = 16
# Rings that the search puts on each NIC, and the rate of one, by network, where a log says so and the rate of the NIC
# does not: 4 GH200 with 4 NICs on Slingshot have 12 rings, doubled to 24 channels (NCCL 2.26.2, aws-ofi-nccl 1.13.0).
# Their rate is not in the log; from 12 to 22 GB/s NCCL's choices are the same, on two machines those of Alps' tables.
RINGS_PER_NIC = dict.fromkeys(("slingshot", "slingshot-2025"), (3, 20e9))
# Latency between machines that aws-ofi-nccl reports on EFA, s (its src/platform-aws.cpp: P4d, P5 and P5e; P5en,
# P6 and G7e). NCCL adds it to its hops, twice with Simple. Other plugins report none.
REPORTED_LATENCY = {"efa": 75e-6, "efa2": 75e-6, "efa3": 35e-6}


def packed_channels(
    gpu: str, inside: float, outside: float | None = None, n_nics: int = 0, network: str = "", near: int = 0
) -> tuple[int, float]:  # fmt: skip
    """Pack channels into a machine.

    Parameters
    ----------
    gpu : str
        Generation.
    inside : float, bytes/s
        Bandwidth of a GPU's links to the others of its machine; infinite for the only GPU of one.
    outside : float, bytes/s, optional
        Bandwidth of a NIC; with NICs, every channel goes in and out through one.
    n_nics : int
        NICs of a machine.
    network : str
        Network of the machines; of those in ``RINGS_PER_NIC``, NICs have as many channels as stand there.
    near : int
        GPUs of a machine if each has a NIC of its own: rings go in and out by two (crossNic 2). 0: they close inside.

    Returns
    -------
    int, float
        How many channels, and the rate of each in bytes/s.

    Raises
    ------
    InputError
        If even the slowest channel does not fit.
    """
    speeds = CHANNEL_GBS[gpu] if outside is None else CHANNEL_NET_GBS[gpu]
    best = (0, 0.0)
    for gbs in speeds:
        speed = gbs * 1e9
        if best[0] and speed <= SLOWEST_TRIED * best[1]:
            break
        n = MAX_CHANNELS if inside == float("inf") else int(inside / speed + _FIT)
        n += n // (near - 1) if near > 1 else 0
        if outside is not None:
            n = min(n, n_nics * _rings_of_a_nic(network, speed, outside))
        n = min(n, MAX_CHANNELS)
        if n * speed > best[0] * best[1] * (1 + _FIT):
            best = n, speed
    if not best[0]:
        beside = "" if outside is None else f", and the {n_nics} NICs of a machine have {outside / 1e9:.3g} GB/s each"
        links = f"a GPU's links to the others have {inside / 1e9:.3g} GB/s{beside}"
        raise InputError(f"no channel fits: the slowest that NCCL tries has {speeds[-1]} GB/s, {links}")
    return best


def _rings_of_a_nic(network: str, speed: float, nic: float) -> int:
    if network not in RINGS_PER_NIC:
        return int(nic / speed + _FIT)
    n, most = RINGS_PER_NIC[network]
    return n if speed <= min(nic, most) else 0


def doubled(gpu: str, n: int, rate: float) -> tuple[int, float]:
    """Double the channels where NCCL does: fast ones, and on Hopper and later only very fast or few ones."""
    is_less = gpu in SINCE_HOPPER and rate < DOUBLED_FROM_HOPPER_GBS * 1e9 and n > FEW_CHANNELS
    if rate < DOUBLED_FROM_GBS * 1e9 or is_less:
        return n, rate
    twice = min(2 * n, MAX_CHANNELS)
    return twice, rate / -(-twice // n)


def tree_intra(gpu: str, n: int, rate: float, inside: float, per_node: int) -> float:
    """Return the rate inside a node of each of `n` channels of trees between nodes, or of CollNet's.

    These carry each byte over a NIC half as often as a ring. So the search raises the rate inside, with the one between
    nodes left as it is, through its list until it is twice as much or does not fit. A chain of p GPUs has p - 1 links,
    so that they carry p / (p - 1) as many channels as those of a closed ring; one GPU has none.
    """
    if inside == float("inf"):
        return 2 * rate
    whole, raised = inside * per_node / max(1, per_node - 1), rate
    for gbs in sorted(CHANNEL_NET_GBS[gpu]):
        if raised >= 2 * rate or n * gbs * 1e9 > whole * (1 + _FIT):
            break
        raised = max(raised, gbs * 1e9)
    return raised


def nvls_channels(gpu: str, n_gpus: int, inside: float, n_nics: int = 0) -> tuple[int, float]:
    """One channel for each GPU of the machine that heads one, at the fastest rate at which all fit.

    A channel takes its rate of every GPU's links, and twice of its head's (ncclTopoSearchTryNvls). With NICs (0 for one
    machine) only the nearest GPU of each heads one (ncclTopoSearchRecNet).
    """
    n, speeds = (min(n_gpus, n_nics), CHANNEL_NET_GBS) if n_nics else (n_gpus, CHANNEL_GBS)
    speed = next((gbs * 1e9 for gbs in speeds[gpu] if (n + 1) * gbs * 1e9 <= inside * (1 + _FIT)), 0.0)
    return (n, speed) if speed else (0, 0.0)


def lacks_nvls_of_two(version: tuple[int, int], n_gpus: int) -> bool:
    """Whether so few GPUs of a machine have no NVLink SHARP in a release (src/transport/nvls.cc, 2.28.7)."""
    return n_gpus <= 2 and version < (2, 28)


def nvls_inter(gpu: str, n: int, rate: float, outside: float, n_nics: int) -> float:
    """Return the rate between nodes of each of `n` channels of NVLink SHARP.

    With the rate inside left as it is, the search raises the one between nodes until it is twice as much or does not
    fit the NICs (second pass of ncclTopoCompute, since 2.19); where the NICs are slower it lowers both. In a rack it
    has used up its time by then: a table of 20 racks of GB200 has the rates of trees, which raised ones would hide.

    Parameters
    ----------
    gpu : str
        Generation.
    n : int
        Number of channels.
    rate : float, bytes/s
        Rate of each inside a node.
    outside : float, bytes/s
        Bandwidth of a NIC.
    n_nics : int
        NICs of a machine.

    Returns
    -------
    float, bytes/s
        The rate; 0 if even the slowest does not fit.
    """
    most = next((gbs * 1e9 for gbs in sorted(CHANNEL_NET_GBS[gpu]) if gbs * 1e9 >= 2 * rate), float("inf"))
    most = most if n <= RAISED_HEADS else rate
    fitting = (gbs * 1e9 for gbs in CHANNEL_NET_GBS[gpu] if n_nics * int(outside / (gbs * 1e9) + _FIT) >= n)
    return next((speed for speed in fitting if speed <= most), 0.0)


@dataclass(frozen=True, slots=True)
class Channels:
    """Channels of one pattern, as NCCL's search of the topology finds them, or as it is taken to find them.

    Parameters
    ----------
    n : int
        How many, after doubling.
    intra, inter : float, bytes/s
        Bandwidth of each channel, inside a node and between nodes.
    latency : float, s
        Latency that the network plugin adds between nodes.
    path_intra, path_inter : str
        The longest kind of path between two GPUs, and between a GPU and its NIC; one of ``PATHS``.
    same : bool
        Whether all channels visit the GPUs in the same order.
    """

    n: int
    intra: float
    inter: float
    latency: float = 0.0
    path_intra: str = "NVL"
    path_inter: str = "PIX"
    same: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.n <= MAX_CHANNELS:
            raise InputError(f"there are 0..{MAX_CHANNELS} channels, got {self.n}")
        for name in ("intra", "inter", "latency"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"channels: {name} must be 0 or more and finite, got {getattr(self, name)}")
        for name in ("path_intra", "path_inter"):
            if getattr(self, name) not in PATHS:
                raise InputError(f"channels: {name} must be one of {', '.join(PATHS)}, got {getattr(self, name)!r}")


class Assumption(NamedTuple):
    """What was taken of a machine that nobody said, and the flag of ``commsim nccl`` that says it.

    With a code it is no guess but what the network itself shows: a remark by itself, with its effect or always shown.
    """

    what: str
    flag: str = ""
    code: str = ""
    effect: float | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.flag})" if self.flag else self.what


@dataclass(frozen=True, slots=True)
class NcclSetting:
    """A communicator on its hardware.

    Parameters
    ----------
    n_ranks, n_nodes : int
        Ranks, and machines (or NVLink domains) that they are in.
    gpu : str
        The oldest generation among the GPUs, one of ``GENERATIONS``.
    cpu : str
        Vendor of the CPUs, one of ``CPUS``.
    channels : mapping of str to Channels
        Channels of ``ring``, ``tree``, and where they can be, ``nvls`` and ``collnet``.
    collnet : bool
        Whether a plugin lets the network reduce (SHARP), and is enabled.
    one_nic_tree : bool
        Whether trees go up and down through the same NIC.
    assumed : tuple of Assumption
        What was not known, and what was taken instead.
    version : (int, int)
        Version of NCCL.
    min_ctas, max_ctas : int
        Bounds of the channels of a call; 0 for none.
    buffer : int, bytes
        Buffer of a connection with Simple; 0 for NCCL's own.
    socket_threads : int
        Threads of a rank that copy over sockets; 0 for NCCL's own.
    """

    n_ranks: int
    n_nodes: int
    gpu: str
    cpu: str
    channels: dict[str, Channels]
    collnet: bool = False
    one_nic_tree: bool = False
    assumed: tuple[Assumption, ...] = field(default=())
    version: tuple[int, int] = NEWEST
    min_ctas: int = 0
    max_ctas: int = 0
    buffer: int = 0
    socket_threads: int = 0

    def __post_init__(self) -> None:
        if self.n_ranks < 2:
            raise InputError(f"NCCL chooses nothing for fewer than 2 ranks, got {self.n_ranks}")
        if not 1 <= self.n_nodes <= self.n_ranks:
            raise InputError(f"{self.n_ranks} ranks are on 1..{self.n_ranks} nodes, got {self.n_nodes}")
        if self.gpu not in GENERATIONS:
            raise InputError(f"gpu must be one of {', '.join(GENERATIONS)}, got {self.gpu!r}")
        if self.cpu not in CPUS:
            raise InputError(f"cpu must be one of {', '.join(CPUS)}, got {self.cpu!r}")
        for pattern in ("ring", "tree"):
            if pattern not in self.channels or not self.channels[pattern].n:
                raise InputError(f"the {pattern} needs at least 1 channel")

    @property
    def call_channels(self) -> int:
        """Channels of a call before a release's limit."""
        return self.limited(self.found_channels)

    def limited(self, n: int) -> int:
        """Return a number of channels within the bounds that the user gave."""
        return min(max(n, self.min_ctas), self.max_ctas or MAX_CHANNELS)

    def channels_of(self, pattern: str) -> int:
        """Return the channels of a call of one pattern before a release's limit: as many again as the search finds."""
        ring = self.channels["ring"]
        more = self.found_channels - 2 * ring.n
        return self.limited(2 * self.channels.get(pattern, ring).n + more)

    @property
    def found_channels(self) -> int:
        """Channels of a call before bounds: twice the rings that the search found, thrice with CollNet."""
        twice, collnet = 2 * self.channels["ring"].n, self.channels.get("collnet")
        if not self.collnet or collnet is None or self.version < MORE_WITH_COLLNET or self.n_ranks == self.n_nodes:
            return twice
        return twice + (twice // 2 if collnet.intra > collnet.inter else 0)

    @property
    def has_slow_rings(self) -> bool:
        """Whether all rings together carry so little that NCCL gives them fewer threads."""
        return self.channels["ring"].n * self.channels["ring"].intra <= SLOW_RINGS

    @property
    def per_node(self) -> float:
        """Ranks of a node, on average."""
        return self.n_ranks / self.n_nodes

    @property
    def nodes_column(self) -> int:
        """Column of the tables by number of nodes."""
        return min(self.n_nodes, 3) - 1
