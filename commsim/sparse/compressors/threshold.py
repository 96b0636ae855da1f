"""Threshold: the elements above a magnitude, as a list."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from commsim.core.errors import InputError

from . import compressor
from .element_list import read_list, write_list
from .message import CompressedMessage, Compressor, Residual, Vector, finite


@dataclass(frozen=True, slots=True)
class Threshold:
    """See :func:`threshold`."""

    above: float

    @property
    def not_summed(self) -> str:
        """Every rank has other indices."""
        return "every rank keeps other elements, so that lists cannot be added without growing"

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002
        """List what is above."""
        vector = finite(vector)
        return write_list(vector, np.flatnonzero(np.abs(vector) > np.float64(self.above)))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return the list with zeros between."""
        return read_list(message)

    def memory(self) -> Residual:
        """Return error feedback."""
        return Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        raise InputError(
            f"threshold:above={self.above:g} sends as many elements as the data has above it, which does not follow"
            f" from the size; top_k:density=... sends a known number"
        )


@compressor
def threshold(above: float) -> Compressor:
    """Keep the elements of larger magnitude than a threshold: (4 + v) bytes each, with error feedback.

    Parameters
    ----------
    above : float
        The threshold, 0 or more.

    Returns
    -------
    Compressor
        What is kept is exact, so that message and residual are the gradient bit for bit.

    Raises
    ------
    InputError
        If the threshold is negative or no finite number.

    References
    ----------
    Strom, "Scalable distributed DNN training using commodity GPU cloud computing", Interspeech 2015: a fixed
    threshold and a residual; there the threshold itself is sent in place of the value.
    """
    if not 0 <= above < math.inf:
        raise InputError(f"a threshold must be at least 0 and finite, got above={above}")
    return Threshold(above)
