"""Boxes on a circle, where switches, or hosts, are cabled to each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .bundles import Bundles
from .metrics import BOX_HEIGHT, GAP, LOOSE, MOST_LOOSE
from .rows import first_above

Reals = NDArray[np.float64]


def on_circle(row: NDArray[np.int64], bundles: Bundles, width: Reals) -> tuple[Reals, Reals]:
    """Put the top row on a circle, and what hangs on it around it."""
    ring, outer = np.flatnonzero(row == row.max()), np.flatnonzero(row < row.max())
    attached = first_above(row, bundles)
    outer = outer[np.lexsort((outer, attached[outer]))]
    hanging = np.bincount(attached[outer], minlength=len(row))[ring] if outer.size else np.zeros(len(ring), np.int64)
    slots = np.maximum(1, hanging)
    begin = np.cumsum(slots) - slots
    angle = np.zeros(len(row))
    angle[ring] = begin + (slots - 1) / 2
    for box, first in zip(ring, begin, strict=True):
        mine = outer[attached[outer] == box]
        angle[mine] = first + np.arange(len(mine))
    angle *= 2 * math.pi / slots.sum()
    apart = GAP if len(ring) > MOST_LOOSE else LOOSE
    radius = max(110.0, len(ring) * (width[ring[0]] + apart) / (2 * math.pi))
    radii = np.full(len(row), radius)
    if outer.size:
        far = max(radius + 75.0, slots.sum() * (width[outer[0]] + GAP) / (2 * math.pi))
        radii[outer], radii[ring] = far, max(radius, far - 110.0)
    x, y = radii * np.sin(angle), -radii * np.cos(angle)
    return x - (x - width / 2).min(), y - y.min() + BOX_HEIGHT / 2
