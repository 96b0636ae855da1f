"""What NCCL's model needs to know: ranks, nodes, hardware, and the channels of each pattern."""

from __future__ import annotations

from dataclasses import dataclass, field

from commsim.core.errors import InputError

from .constants import CPUS, GENERATIONS, MAX_CHANNELS

PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
"""Kinds of paths, the shortest first."""
PATTERNS = ("ring", "tree", "nvls", "collnet")


@dataclass(frozen=True, slots=True)
class Channels:
    """Channels of one pattern, as NCCL's search of the topology finds them, or as it is taken to find them.

    Parameters
    ----------
    n : int
        How many, after doubling.
    intra, inter : float, bytes/s
        Of each channel, inside a node and between nodes.
    latency : float, s
        That the network plugin adds between nodes.
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


@dataclass(frozen=True, slots=True)
class Setting:
    """A communicator on its hardware.

    Parameters
    ----------
    n_ranks, n_nodes : int
        Ranks, and machines (or NVLink domains) that they are in.
    gpu : str
        The oldest generation among the GPUs, one of ``GENERATIONS``.
    cpu : str
        Who made the CPUs, one of ``CPUS``.
    channels : mapping of str to Channels
        Of ``ring``, ``tree``, and where they can be, ``nvls`` and ``collnet``.
    collnet : bool
        Whether a plugin lets the network reduce (SHARP), and is enabled.
    one_nic_tree : bool
        Whether trees go up and down through the same NIC.
    assumed : tuple of str
        What was not known, and what was taken instead.
    """

    n_ranks: int
    n_nodes: int
    gpu: str
    cpu: str
    channels: dict[str, Channels]
    collnet: bool = False
    one_nic_tree: bool = False
    assumed: tuple[str, ...] = field(default=())

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
    def per_node(self) -> float:
        """Ranks of a node, on average."""
        return self.n_ranks / self.n_nodes

    @property
    def nodes_column(self) -> int:
        """Column of the tables by number of nodes."""
        return min(self.n_nodes, 3) - 1
