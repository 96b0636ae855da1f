"""NCCL's setting: a communicator on its hardware as NCCL sees it, and what it calls algorithms, protocols and paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from collectives.nccl.call import NEWEST
from collectives.nccl.nvls_sizes import nvls_sizes
from commsim.core.errors import InputError

# Kinds of paths, the shortest first.
PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
# Those that have only PCIe switches on them.
SHORT_PATHS = PATHS[: PATHS.index("PXB") + 1]
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
# A generation has a row in the tables of this module, and one in ``gpu_costs.toml``.
GENERATIONS = ("volta", "ampere", "hopper", "blackwell")
SINCE_HOPPER = GENERATIONS[GENERATIONS.index("hopper") :]
CPUS = ("intel", "amd", "other")
MAX_CHANNELS = 64
# First release known to give half as many channels more where CollNet is on (src/graph/connect.cc).
MORE_WITH_COLLNET = (2, 12)
# Rings that carry at most this together, in bytes/s, have fewer threads (src/graph/tuning.cc).
SLOW_RINGS = 12e9


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
    net_chunk, nvls_chunk : int, bytes
        Chunk of messages between machines, and largest chunk of NVLink SHARP; 0 for NCCL's own.
    nic : float, bytes/s
        Rate of a NIC, as NCCL reads it; 0 for one machine.
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
    net_chunk: int = 0
    nvls_chunk: int = 0
    nic: float = 0.0

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

    def nvls_call(self, algorithm: str) -> tuple[int, int]:
        """Return the channels of a call with NVLink SHARP within bounds, and its largest chunk in bytes."""
        nvls = self.channels.get("nvls", self.channels["ring"])
        sizes = nvls_sizes(
            self.gpu, self.n_nodes, self.version, per_node=self.n_ranks // self.n_nodes, nic=self.nic,
            near=nvls.path_inter in SHORT_PATHS, said=self.nvls_chunk,
        )  # fmt: skip
        return self.limited(sizes.channels), sizes.tree_chunk if algorithm == "nvls_tree" else sizes.chunk

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
