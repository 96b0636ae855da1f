"""NCCL's rules for sends and receives, as in its all-to-all: channels, parts and chunks of one message.

References
----------
NCCL 2.30.7, ``src/enqueue.cc`` (parts, protocol, chunks), ``src/init.cc`` (chunk sizes) and ``src/graph/paths.cc``
(channels for each peer); the same of 2.18 to 2.29 for what differs by release.
"""

from __future__ import annotations

from dataclasses import dataclass

from .call import KIB, NEWEST, PROTOCOLS, STEPS

NET_CHUNK, NVLINK_CHUNK, LL_LARGEST = 128 * KIB, 512 * KIB, 16 * KIB
# GB/s of a NIC that one channel to a peer is taken to carry.
NET_CHANNEL_GBS = 14
# From the first of these releases on LL is for messages of up to 16 KiB for each channel that a peer can have, from the
# second on for each that the message takes, as before the first.
LL_BY_MOST, LL_BY_TAKEN = (2, 22), (2, 29)
# Up to this release a peer on another machine has two channels, and one where the operations of all ranks would be
# more than four on each channel.
FEW_BY_NIC, OPERATIONS_OF_A_CHANNEL = (2, 28), 4
# Peers that a rank exchanges with at once; the others follow.
BATCH = 8
# Warps of a channel (640 threads), which are shared among these; up to how many of a share as many send as receive.
WARPS, EVEN_WARPS = 20, 4
LL_STEP = PROTOCOLS["ll"].buffer // STEPS


@dataclass(frozen=True, slots=True)
class PeerMessage:
    """How one message to one peer is sent.

    Parameters
    ----------
    n_bytes : int
        Size of the message.
    n_channels : int
        Parts, each on a channel of its own.
    protocol : str
        ``ll`` or ``simple``.
    chunk : int, bytes
        Size of the data sent at once on a channel.
    """

    n_bytes: int
    n_channels: int
    protocol: str
    chunk: int

    @property
    def part(self) -> int:
        """Bytes of the largest part."""
        return -(-self.n_bytes // self.n_channels)

    @property
    def n_chunks(self) -> int:
        """Chunks of the largest part, which are messages where it crosses a network."""
        return max(1, -(-self.part // self.chunk))


def peer_channels(
    n_channels: int, n_ranks: int, nic: float | None = None, version: tuple[int, ...] = NEWEST
) -> tuple[int, int]:  # fmt: skip
    """Return the least and the most channels to one peer.

    Parameters
    ----------
    n_channels : int
        Number of channels of a rank for messages: a power of two, the one above those of its rings.
    n_ranks : int
        Ranks.
    nic : float, bytes/s, optional
        Rate of a NIC, where there are several nodes.
    version : (int, int)
        Release of NCCL.
    """
    most = n_channels
    if nic is not None and version[:2] <= FEW_BY_NIC:
        most = min(most, 2 if 2 * n_ranks <= OPERATIONS_OF_A_CHANNEL * n_channels else 1)
    elif nic is not None:
        most = min(most, power_above(max(1, -(-int(nic / 1e9) // NET_CHANNEL_GBS))))
        while most > 1 and most * -(-n_ranks // BATCH) > n_channels:
            most //= 2
    least = most
    while least > 1 and least * n_ranks > n_channels:
        least //= 2
    return least, most


def receiving_warps(n_peers: int) -> int:
    """Return the warps of a channel that receive: those of a peer's share, for each that is served at once but itself.

    Parameters
    ----------
    n_peers : int
        Peers that a rank has messages for, itself among them; a single one is not itself.
    """
    served = min(n_peers, BATCH)
    share = WARPS // served
    each = share // 2 if share <= EVEN_WARPS else (share - 1) // 2
    return each * (served - 1 if 1 < n_peers <= BATCH else served)


def message(
    n_bytes: int, least: int, most: int, *, network: bool, many_nodes: bool, nvlink: bool = True, buffer: int = 0,
    version: tuple[int, ...] = NEWEST, net_chunk: int = 0,
) -> PeerMessage:  # fmt: skip
    """Cut one message.

    A part has at least half a chunk (on one node an eighth), and at most one chunk (32) unless all channels are used.

    Parameters
    ----------
    n_bytes : int
        Size of the message; 0 is only a signal.
    least, most : int
        Channels to one peer, of :func:`peer_channels`.
    network : bool
        Whether it goes over the network.
    many_nodes : bool
        Whether the communicator has several nodes.
    nvlink : bool
        Whether all GPUs of a node are joined by NVLink.
    buffer : int, bytes
        Buffer of a connection with Simple, which holds eight chunks; 0 for NCCL's own, which is large enough.
    version : (int, int)
        Release of NCCL.
    net_chunk : int, bytes
        Chunk where there are several nodes (``NCCL_P2P_NET_CHUNKSIZE``); 0 for NCCL's own.
    """
    step = (net_chunk or NET_CHUNK) if many_nodes else (NVLINK_CHUNK if nvlink else NET_CHUNK)
    step = min(step, buffer // STEPS) if buffer else step
    if n_bytes == 0:
        return PeerMessage(0, 1, "ll", LL_LARGEST)
    is_ll = LL_BY_MOST <= version[:2] < LL_BY_TAKEN and n_bytes <= most * LL_LARGEST
    step = LL_STEP if is_ll else step
    smallest, largest = (step // 2, step) if many_nodes else (step // 8, step * 32)
    n = min(least, -(-n_bytes // smallest))
    while max(smallest, -(-n_bytes // n)) > largest and n <= most // 2:
        n *= 2
    if not LL_BY_MOST <= version[:2] < LL_BY_TAKEN:
        is_ll = n_bytes <= n * LL_LARGEST
    protocol, chunk = ("ll", LL_STEP) if is_ll else ("simple", step)
    if network and protocol == "simple" and n_bytes < chunk:
        chunk //= 4
    elif network and n_bytes < 8 * chunk:
        chunk //= 2
    return PeerMessage(n_bytes, n, protocol, chunk // 2 if protocol == "ll" else chunk)


def power_above(number: int) -> int:
    """Return the power of two that is not smaller."""
    return 1 << (number - 1).bit_length()
