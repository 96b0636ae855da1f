"""One call of NCCL: what decides how it is cut. Versions, protocols, and which algorithm goes with which.

References
----------
NCCL 2.30.7, ``src/include/device.h`` and ``src/init.cc`` (buffers), ``src/include/comm.h`` (thresholds),
``src/graph/tuning.cc`` (threads).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from commsim.core.errors import InputError
from commsim.core.spec import is_whole

KIB = 1024

# Steps that a connection's buffer holds: so many may be under way before the receiver has taken the first.
STEPS = 8

OLDEST, NEWEST = (2, 8), (2, 32)
KNOWN = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
# Least and largest buffer of a connection with Simple; the least gives steps that chunks are multiples of.
BUFFERS = (4096, 2**30)
# Version of a call whose release nobody knows: the interval of its time is one over releases.
ANY = "any"
# Heads of NVLink SHARP at most (NCCL_MAX_NVLS_ARITY): in a rack of 72 GPUs, 32 of them own a part of the result.
MAX_HEADS = 32
# From this version on a call may have twice as many channels.
MORE_CHANNELS, FEW, MANY = (2, 27), 32, 64

# What each operation can be done with; all-to-all and send-receive have neither, they are point-to-point.
ALLOWED = {
    "all_reduce": ("ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain"),
    "all_gather": ("ring", "nvls", "pat", "collnet_direct"),
    "reduce_scatter": ("ring", "nvls", "pat", "collnet_direct"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}
# Operations where every rank has a part of the array of its own: NCCL counts, and cuts, one part.
BY_RANK = ("all_gather", "reduce_scatter")


@dataclass(frozen=True, slots=True)
class NcclProtocol:
    """Layout of bytes in a connection's buffer.

    Parameters
    ----------
    name : str
        Name in lower case.
    buffer : int, bytes
        Size of a connection's buffer; a step is an eighth of it.
    payload, wire : int, bytes
        Payload of each `wire` bytes that are sent.
    grain : int, bytes
        What chunks are multiples of.
    threads : int
        Largest number of threads of a channel of a ring or tree.
    threshold : int, bytes
        Size per thread below which a call takes fewer channels.
    """

    name: str
    buffer: int
    payload: int
    wire: int
    grain: int
    threads: int
    threshold: int

    @property
    def step(self) -> int:
        """Data of one step, in bytes."""
        return self.buffer // STEPS * self.payload // self.wire


PROTOCOLS = {
    p.name: p
    for p in (
        NcclProtocol("ll", 512 * KIB, 8, 16, 16, 512, 8),
        NcclProtocol("ll128", 4800 * KIB, 120, 128, 1920, 640, 8),
        NcclProtocol("simple", 4096 * KIB, 1, 1, 512, 512, 64),
    )
}


def release_of(text: str) -> tuple[int, int]:
    """Return the release whose rules a call has: of ``any``, where nobody knows it, the newest.

    Raises
    ------
    InputError
        As :func:`read_version`.
    """
    try:
        return NEWEST if text == ANY else read_version(text)
    except InputError as error:
        raise InputError(f"{error} ({ANY}, where nobody knows it)") from None


def read_version(text: str) -> tuple[int, int]:
    """Read ``2.27`` or ``2.27.5``.

    Raises
    ------
    InputError
        If it is no version, or one whose rules are not known.
    """
    parts = text.split(".")
    if len(parts) not in (2, 3) or not all(is_whole(part, 3) for part in parts):
        raise InputError(f"version must be MAJOR.MINOR of NCCL, {KNOWN}, got {text!r}")
    version = int(parts[0]), int(parts[1])
    if not OLDEST <= version <= NEWEST:
        raise InputError(f"the rules of NCCL {text} are not known; version is {KNOWN}")
    return version


def max_channels(version: tuple[int, int]) -> int:
    """Return how many channels a call can have."""
    return MANY if version >= MORE_CHANNELS else FEW


def check_pair(operation: str, algorithm: str, protocol: str) -> None:
    """Refuse an algorithm that an operation does not have, and a protocol that an algorithm does not have.

    Raises
    ------
    InputError
        Naming what would be right.
    """
    if operation not in ALLOWED:
        raise InputError(f"NCCL cuts {', '.join(ALLOWED)} by algorithm and protocol, not {operation}")
    if algorithm not in ALLOWED[operation]:
        raise InputError(f"NCCL has no {operation} with algorithm={algorithm}; it has {', '.join(ALLOWED[operation])}")
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    if protocol != "simple" and algorithm not in ("ring", "tree"):
        raise InputError(f"algorithm={algorithm} has protocol=simple only, got {protocol}; ring and tree have all")


@dataclass(frozen=True, slots=True)
class NcclCall:
    """One call of NCCL, with all that decides how it is cut.

    Parameters
    ----------
    operation : str
        Name of the operation.
    size : int, bytes
        Size as nccl-tests counts it: of the whole array.
    n_ranks, n_nodes : int
        Ranks, and machines (or NVLink domains) that they are in.
    algorithm, protocol : str
        Names as NCCL writes them, in lower case.
    n_channels : int
        Number of channels that the topology search found for the algorithm, after doubling.
    version : (int, int)
        Version of NCCL.
    slow : bool
        Whether the rings together carry at most 12 GB/s, as over PCIe: then they have fewer threads.
    heads : int
        Number of heads of NVLink SHARP and CollNet direct: GPUs of a machine that own a part. 0 means ranks over nodes.
    slow_network : bool
        Whether NVLink SHARP over several nodes carries less than 150 GB/s.
    buffer : int, bytes
        Buffer of a connection with Simple (``NCCL_BUFFSIZE``); 0 for NCCL's own, 4 MiB.
    nvls_chunk : int, bytes
        Largest chunk of NVLink SHARP; 0 for 128 KiB, and 64 KiB with trees of four nodes and more.
    rccl : bool
        Whether RCCL cuts and runs it, whose trees with Simple differ.

    Raises
    ------
    InputError
        If something is out of its range.
    """

    operation: str
    size: int
    n_ranks: int
    n_nodes: int = 1
    algorithm: str = "ring"
    protocol: str = "simple"
    n_channels: int = 1
    version: tuple[int, int] = NEWEST
    slow: bool = False
    heads: int = 0
    slow_network: bool = False
    buffer: int = 0
    nvls_chunk: int = 0
    rccl: bool = False

    def __post_init__(self) -> None:
        check_pair(self.operation, self.algorithm, self.protocol)
        if self.size < 1 or self.n_ranks < 1 or not 1 <= self.n_nodes <= self.n_ranks:
            raise InputError(
                f"a call has at least 1 byte, 1 rank, and 1 to as many nodes as ranks; got {self.size} bytes, "
                f"{self.n_ranks} ranks, {self.n_nodes} nodes"
            )
        if not 1 <= self.n_channels <= max_channels(self.version):
            major, minor = self.version
            raise InputError(
                f"NCCL {major}.{minor} has 1..{max_channels(self.version)} channels, got channels={self.n_channels}"
            )

        if self.buffer and (not BUFFERS[0] <= self.buffer <= BUFFERS[1] or self.buffer % BUFFERS[0]):
            raise InputError(f"buffer must be a multiple of {BUFFERS[0]} B up to 1 GiB, got {self.buffer}")
        if self.nvls_chunk and (not BUFFERS[0] <= self.nvls_chunk <= BUFFERS[1] or self.nvls_chunk % BUFFERS[0]):
            raise InputError(f"nvls_chunk must be a multiple of {BUFFERS[0]} B up to 1 GiB, got {self.nvls_chunk}")

    @property
    def layout(self) -> NcclProtocol:
        """The protocol, with the buffer of this call."""
        known = PROTOCOLS[self.protocol]
        return replace(known, buffer=self.buffer) if self.buffer and self.protocol == "simple" else known

    @property
    def count(self) -> int:
        """Bytes that are cut: of one rank's part where each has its own."""
        return -(-self.size // self.n_ranks) if self.operation in BY_RANK else self.size

    @property
    def n_heads(self) -> int:
        """Ranks of a node that each own a part of what the switch or the network adds."""
        return self.heads or max(1, self.n_ranks // self.n_nodes)
