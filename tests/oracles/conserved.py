"""Nothing of a gradient is lost: what everybody ends with, and what stays behind, are what there was."""

from typing import Any

import numpy as np


def dense(elements, n):
    """A list of indices and values with its zeros, float64."""
    out = np.zeros(n)
    for i, x in elements.items():
        out[i] = x
    return out


def as_dict(vector):
    """A SparseVector as a dictionary."""
    return dict(zip(vector.index.tolist(), vector.value.tolist(), strict=True))


def lost(gradients, result, residuals):
    """The sum of the gradients without the result and all residuals, float64[n]."""
    behind = sum((residual.astype(np.float64) for residual in residuals), np.zeros(len(result)))
    return gradients.astype(np.float64).sum(axis=0) - result.astype(np.float64) - behind


def rounding(gradients):
    """What as many float32 additions as there are ranks may lose of each element, twice over, float64[n]."""
    return 2 * len(gradients) * np.finfo(np.float32).eps * np.abs(gradients.astype(np.float64)).sum(axis=0)


def listed(fabric: Any) -> list[int]:
    """Packets that are in some queue or on some link."""
    found = []
    for link in fabric.link:
        found += [int(link["serving"])] if link["serving"] >= 0 else []
        for head in ("low_head", "high_head", "pipe_head"):
            p = int(link[head])
            while p >= 0:
                found.append(p)
                p = int(fabric.packet[p]["next"])
    return found
