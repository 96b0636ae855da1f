"""Tori, meshes and small hypercubes: hosts that are cabled to each other, drawn where their coordinates say."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .picture import Point

MAX_DIMS = 3
GAP_X, GAP_Y = 46.0, 62.0


def grid_dims(network: Network) -> list[int]:
    """Dimensions in which the nodes' coordinates differ; none unless there are two or three, and no switches."""
    at = network.coordinates
    if not at.size or (at < 0).any() or (network.kind != network.seat_kind).any():
        return []
    dims = [d for d in range(at.shape[1]) if np.ptp(at[:, d]) > 0]
    return dims if 2 <= len(dims) <= MAX_DIMS and len(np.unique(at, axis=0)) == len(at) else []


def on_grid(
    network: Network, dims: list[int], of_node: NDArray[np.int64], width: NDArray[np.float64], height: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Place boxes by the coordinates of their first nodes: the last dimension to the right, the one before it down.

    A third dimension goes back, up and to the right, by so little that no box covers another one.
    """
    first = np.unique(of_node, return_index=True)[1]
    at = [network.coordinates[first, d].astype(np.float64) for d in dims]
    deep = float(np.ptp(at[0])) if len(dims) == MAX_DIMS else 0.0
    wide = float(width.max())
    across, down = wide + GAP_X + deep * (wide * 0.5 + 8), height + GAP_Y + deep * (height + 8)
    x, y = at[-1] * across, at[-2] * down
    if len(dims) == MAX_DIMS:
        x, y = x + at[0] * (wide * 0.5 + 8), y - at[0] * (height + 8)
    return x - (x - width / 2).min(), y - y.min() + height / 2


def link_on_grid(network: Network, dims: list[int], ends: tuple[int, int], path: tuple[Point, Point]) -> list[Point]:
    """Points of a link between two nodes: straight between neighbours, an arc around those in between otherwise."""
    a, b = (network.coordinates[node, dims].astype(int) for node in ends)
    (x0, y0), (x1, y1) = path
    if np.abs(a - b).sum() <= 1:
        return [(x0, y0), (x1, y1)]
    length = math.hypot(x1 - x0, y1 - y0)
    bulge = min(34.0, 14.0 + 0.04 * length)
    if x1 < x0 or (x1 == x0 and y1 < y0):
        bulge = -bulge
    turns = np.linspace(0.0, 1.0, 13)
    side = 4 * bulge * turns * (1 - turns)
    points = zip(turns.tolist(), side.tolist(), strict=True)
    return [
        (x0 + (x1 - x0) * t + (y1 - y0) / length * s, y0 + (y1 - y0) * t - (x1 - x0) / length * s) for t, s in points
    ]
