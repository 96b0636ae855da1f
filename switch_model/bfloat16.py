"""bfloat16 as payload: two bytes per value.

References
----------
Kalamkar et al., "A study of bfloat16 for deep learning training", arXiv 1905.12322.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Largest relative error of rounding a normal number to bfloat16's 8 significant bits: half of the spacing at 1.
BFLOAT16_ROUNDING = 2.0**-8


def to_bfloat16(values: ArrayLike) -> NDArray[np.uint16]:
    """Round to the nearest bfloat16, ties to even.

    Parameters
    ----------
    values : float32[n]
        NaN stays NaN; what is beyond the largest bfloat16 becomes infinity.

    Returns
    -------
    uint16[n]
        Bits of the bfloat16.
    """
    from switch_model.arithmetic_kernel import round_to_bfloat16

    bits = np.array(values, np.float32, order="C", ndmin=1).view(np.uint32)
    round_to_bfloat16(bits.reshape(-1))
    return (bits >> 16).astype(np.uint16)


def from_bfloat16(bits: ArrayLike) -> NDArray[np.float32]:
    """Return the float32 of the same value; nothing is lost.

    Parameters
    ----------
    bits : uint16[n]
        Bits of the bfloat16.
    """
    return (np.atleast_1d(np.asarray(bits, np.uint16)).astype(np.uint32) << 16).view(np.float32)
