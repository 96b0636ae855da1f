"""The links between two boxes, drawn together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """All links between two boxes, by pair; those inside a box are left out.

    Parameters
    ----------
    low, high : int64[n]
        The two boxes.
    up, down : int64[n]
        Links from low to high, and from high to low.
    rate : float64[n], bytes/s
        Of the fastest link.
    load_up, load_down : float64[n]
        Of the busiest link each way: what it carried over what it could carry; 0 without a result.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    rate: NDArray[np.float64]
    load_up: NDArray[np.float64]
    load_down: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.low)


def make_bundles(
    network: Network, box: NDArray[np.int64], row: NDArray[np.int64], load: NDArray[np.float64] | None
) -> Bundles:
    """Gather links by the boxes that they join.

    Parameters
    ----------
    network : Network
        Whose links.
    box : int64[n_nodes]
        Box of each node.
    row : int64[n_boxes]
        Row of each box; the lower one of a pair is `low`.
    load : float64[n_links] or None
        Of each link.
    """
    src, dst = box[network.src], box[network.dst]
    between = np.flatnonzero(src != dst)
    src, dst = src[between], dst[between]
    rises = (row[src] < row[dst]) | ((row[src] == row[dst]) & (src < dst))
    pairs = np.where(rises[:, np.newaxis], np.stack((src, dst), 1), np.stack((dst, src), 1))
    pairs, of_link = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    of_link, n = of_link.reshape(-1), len(pairs)
    rate, load_up, load_down = np.zeros(n), np.zeros(n), np.zeros(n)
    np.maximum.at(rate, of_link, network.bandwidth[between])
    if load is not None:
        np.maximum.at(load_up, of_link[rises], load[between][rises])
        np.maximum.at(load_down, of_link[~rises], load[between][~rises])
    up = np.bincount(of_link[rises], minlength=n)
    down = np.bincount(of_link[~rises], minlength=n)
    return Bundles(pairs[:, 0], pairs[:, 1], up, down, rate, load_up, load_down)


def link_loads(network: Network, link_bytes: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """Divide what each link carried by what it could have carried in that time.

    Parameters
    ----------
    network : Network
        Of `n_links` links.
    link_bytes : float64[n_links], bytes
        What each link carried.
    time : float, s
        In which time.

    Raises
    ------
    InputError
        If there is not one number per link.
    """
    if len(link_bytes) != network.n_links:
        given = f"{len(link_bytes)} links" if len(link_bytes) else "no links (a real run or a closed form has none)"
        raise InputError(f"the result has loads of {given}, but {network.name} has {network.n_links} links")
    return np.asarray(link_bytes / (network.bandwidth * time) if time else np.zeros(network.n_links))
