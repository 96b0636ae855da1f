"""NCCL's rules for sends and receives, as in its all-to-all: channels, parts and chunks of one message.

References
----------
NCCL 2.30.7, ``src/enqueue.cc`` (parts, protocol, chunks) and ``src/init.cc`` (chunk sizes, channels for each peer).
"""

from __future__ import annotations

from dataclasses import dataclass

from .call import KIB, PROTOCOLS

NET_CHUNK, NVLINK_CHUNK, LL_LARGEST = 128 * KIB, 512 * KIB, 16 * KIB
# GB/s of a NIC that one channel to a peer is taken to carry.
NET_CHANNEL_GBS = 14
# Peers that a rank exchanges with at once; the others follow.
BATCH = 8
# Warps of a channel (640 threads), which are shared among these; up to how many of a share as many send as receive.
WARPS, EVEN_WARPS = 20, 4
# Steps of a connection's buffer, of which each holds a chunk.
STEPS = 8


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


def peer_channels(n_channels: int, n_ranks: int, nic: float | None = None) -> tuple[int, int]:
    """Return the least and the most channels to one peer.

    Parameters
    ----------
    n_channels : int
        Number of channels of a rank for messages: a power of two.
    n_ranks : int
        Ranks.
    nic : float, bytes/s, optional
        Rate of a NIC, where there are several nodes.
    """
    most = n_channels
    if nic is not None:
        most = min(most, _power(max(1, int(nic / 1e9 / NET_CHANNEL_GBS))))
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
    n_bytes: int, least: int, most: int, *, network: bool, many_nodes: bool, nvlink: bool = True, buffer: int = 0
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
    """
    step = NVLINK_CHUNK if nvlink and not many_nodes else NET_CHUNK
    step = min(step, buffer // STEPS) if buffer else step
    if n_bytes == 0:
        return PeerMessage(0, 1, "ll", LL_LARGEST)
    smallest, largest = (step // 2, step) if many_nodes else (step // 8, step * 32)
    n = min(least, -(-n_bytes // smallest))
    while max(smallest, -(-n_bytes // n)) > largest and n <= most // 2:
        n *= 2
    protocol = "ll" if n_bytes <= n * LL_LARGEST else "simple"
    chunk = step if protocol == "simple" else PROTOCOLS["ll"].buffer // 8
    if network and protocol == "simple" and n_bytes < chunk:
        chunk //= 4
    elif network and n_bytes < 8 * chunk:
        chunk //= 2
    return PeerMessage(n_bytes, n, protocol, chunk // 2 if protocol == "ll" else chunk)


def _power(number: int) -> int:
    """Return the power of two that is not smaller."""
    return 1 << (number - 1).bit_length()
