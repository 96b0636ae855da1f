"""Checksums of many packets at once: the IPv4 header's, and the invariant CRC of RoCEv2."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_IP, _UDP, _BTH = 8, 28, 36  # after eight bytes of ones, which stand for the header that RoCE does not have
_CHANGING = (_IP + 1, _IP + 8, _IP + 10, _IP + 11, _UDP + 6, _UDP + 7, _BTH + 4)


def ip_checksums(headers: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Checksums of IPv4 headers.

    Parameters
    ----------
    headers : uint8[n, 20]
        With 0 where the checksum goes.

    Returns
    -------
    uint16[n]

    References
    ----------
    RFC 1071.
    """
    total = np.ascontiguousarray(headers).view(">u2").sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return np.asarray(~total & 0xFFFF, np.uint16)


def invariant_crcs(packets: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Invariant CRCs of RoCEv2 packets of one length; on the wire the lowest byte goes first.

    What routers may change counts as ones: service and life time, both checksums, and the congestion byte of BTH.

    Parameters
    ----------
    packets : uint8[n, m]
        From the IPv4 header, without options, to the last byte before the CRC.

    Returns
    -------
    uint32[n]

    References
    ----------
    InfiniBand Architecture Specification, volume 1, annex A17.3.3.
    """
    n, length = packets.shape
    masked = np.empty((n, length + _IP), np.uint8)
    masked[:, :_IP] = 0xFF
    masked[:, _IP:] = packets
    masked[:, _CHANGING] = 0xFF
    flat = memoryview(masked.reshape(-1).data)
    width = length + _IP
    return np.fromiter((crc32(flat[at : at + width]) for at in range(0, n * width, width)), np.uint32, n)
