"""The hash of a flow, as a switch hashes a five-tuple."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def flow_hash(
    src: NDArray[np.int64], dst: NDArray[np.int64], channel: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Hash flows to 31 bits.

    Parameters
    ----------
    src, dst, channel : int64[n_flows]
        What makes the flow.
    seed : int
        Taken modulo 2^64.

    Returns
    -------
    int64[n_flows]
    """
    h = np.full(src.shape, np.uint64(seed % 2**64), np.uint64)
    for part in (src, dst, channel):
        h = mixed(h ^ (part.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)))
    return (h >> np.uint64(33)).astype(np.int64)


def mixed(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
