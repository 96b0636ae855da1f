"""One packet at one moment, as a row: what a simulation hands to the writer, and what the reader gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

SWITCHML_UDP, SWITCHML_RDMA, ATP = range(3)
PROTOCOLS = ("switchml_udp", "switchml_rdma", "atp")
CONTRIBUTION, RESULT = 0, 1
RESENT, ECN_MARKED, COLLIDED = 1, 2, 4
OWN_BUFFER = 1 << 40  # bytes; addresses in RDMA packets below it start at 0, above it at wherever a real buffer is

# Fields that a row does not need may stay 0, but `elements` and, for RDMA, `message_packets`.
PACKET_EVENT = np.dtype(
    [
        ("time_ps", np.int64),  # 0 or more
        ("chunk", np.int64),  # packet's worth of elements: SwitchML's tsi; ATP's sequence number less 1
        ("src", np.uint32),  # IPv4 addresses as numbers; `node_address` makes them of nodes
        ("dst", np.uint32),
        ("workers", np.uint32),  # bitmap of whose values it holds, for ATP; 0 means only bit `worker`
        ("job", np.int32),
        ("worker", np.int32),  # number of the child of the switch that it comes from or goes to; -1 when not known
        ("slot", np.int32),  # of this packet, not of its message; ATP: of the pair; -1 when not known
        ("worker_port", np.uint16),  # UDP port of the worker; 0 for the protocol's usual one
        ("position", np.uint16),  # in its message, from 0
        ("message_packets", np.uint16),  # how many packets its message has
        ("elements", np.uint16),  # int32 values in it
        ("n_workers", np.uint8),  # of the job, for ATP
        ("protocol", np.uint8),  # number in PROTOCOLS
        ("kind", np.uint8),  # CONTRIBUTION or RESULT
        ("flags", np.uint8),  # RESENT, ECN_MARKED, COLLIDED; only ATP has them on the wire, and IP a mark
        ("version", np.uint8),
        ("exponent0", np.int8),
        ("exponent1", np.int8),
    ],
    align=True,
)

_LIMITS: dict[str, tuple[int, int]] = {
    "time_ps": (0, 2**63 - 1),
    "protocol": (0, len(PROTOCOLS) - 1),
    "kind": (0, 1),
    "version": (0, 1),
    "chunk": (0, 2**32 - 1),
    "elements": (1, 2048),
}
_LIMITS_OF: dict[int, dict[str, tuple[int, int]]] = {
    SWITCHML_UDP: {"slot": (0, 2**14 - 1), "job": (0, 2**31 - 1)},
    SWITCHML_RDMA: {"slot": (0, 2**14 - 1), "worker": (0, 127), "job": (0, 2**15 - 1), "message_packets": (1, 1024)},
    ATP: {"slot": (0, 2**16 - 20_001), "worker": (0, 31), "job": (0, 2**16 - 1)},
}


def node_address(nodes: NDArray[Any] | Sequence[int] | int) -> NDArray[np.uint32]:
    """IPv4 addresses of nodes of a network: node i is 10.0.0.1 plus i.

    Raises
    ------
    InputError
        If a number is negative or larger than the network 10.0.0.0/8.
    """
    numbers = np.asarray(nodes, np.int64)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < 2**24 - 2:
        raise InputError(f"nodes get addresses of 10.0.0.0/8, so 0..{2**24 - 3}, got {numbers.min()}..{numbers.max()}")
    return (numbers + 0x0A000001).astype(np.uint32)


def dotted(address: int) -> str:
    """IPv4 address as text."""
    return ".".join(str(int(address) >> shift & 255) for shift in (24, 16, 8, 0))


def check_events(events: NDArray[Any]) -> None:
    """Raise unless every row fits the fields of its protocol.

    Raises
    ------
    InputError
        Naming the first row that does not.
    """
    if events.dtype != PACKET_EVENT or events.ndim != 1:
        raise InputError(f"packets are PACKET_EVENT[n], got {events.dtype}{list(events.shape)}")
    _check_limits(events, np.ones(len(events), np.bool_), _LIMITS, "a packet")
    for protocol, limits in _LIMITS_OF.items():
        _check_limits(events, events["protocol"] == protocol, limits, PROTOCOLS[protocol])
    rdma = events["protocol"] == SWITCHML_RDMA
    _refuse(events, rdma & (events["position"] >= events["message_packets"]), "position", "less than message_packets")
    _refuse(events, rdma & (events["chunk"] * events["elements"] >= OWN_BUFFER // 4), "chunk", "in a tensor of 1 TiB")
    known = np.isin(events["elements"], (32, 64, 128, 256)) | (events["protocol"] != SWITCHML_UDP)
    _refuse(events, ~known, "elements", "32, 64, 128 or 256 for switchml_udp")


def _check_limits(
    events: NDArray[Any], selected: NDArray[np.bool_], limits: dict[str, tuple[int, int]], what: str
) -> None:
    for field, (low, high) in limits.items():
        column = events[field]
        _refuse(events, selected & ((column < low) | (column > high)), field, f"{low}..{high} for {what}")


def _refuse(events: NDArray[Any], bad: NDArray[np.bool_], field: str, wanted: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"packet {row}: {field} must be {wanted}, got {events[field][row]}")
