"""Deep gradient compression: top-k of a momentum that every rank keeps for itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.sparse.encodings import INDEX_BYTES

from . import compressor
from .element_list import count, largest, read_list, share, write_list
from .message import CompressedMessage, Compressor, Vector, finite

# Density of one epoch of the warm-up over that of the next.
FALLS_BY = 4


class MomentumMemory:
    """Velocity and accumulated velocity of one rank: momentum correction, local clipping, momentum masking.

    Attributes
    ----------
    velocity, accumulated : [n] or None
        u and v of the paper: u <- m u + g, v <- v + u; both are 0 where v has been sent.
    """

    def __init__(self, momentum: float, clip: float, n_ranks: int) -> None:
        self.momentum, self.clip = momentum, clip / math.sqrt(n_ranks)
        self.velocity: Vector | None = None
        self.accumulated: Vector | None = None

    def add(self, gradient: Vector) -> Vector:
        """Clip the gradient, and accumulate its velocity."""
        gradient = self._clipped(finite(gradient))
        if self.velocity is None or self.accumulated is None:
            self.velocity, self.accumulated = np.zeros_like(gradient), np.zeros_like(gradient)
        with np.errstate(over="ignore"):  # what overflows is refused where it is compressed
            self.velocity = gradient.dtype.type(self.momentum) * self.velocity + gradient
            self.accumulated = self.accumulated + self.velocity
        return self.accumulated

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Start again from 0 where something was sent: a stale velocity would carry it on."""
        self.accumulated = wanted - sent
        if self.velocity is not None:
            self.velocity = np.where(sent != 0, self.velocity.dtype.type(0), self.velocity)

    def _clipped(self, gradient: Vector) -> Vector:
        norm = float(np.linalg.norm(gradient.astype(np.float64))) if self.clip else 0.0
        return gradient if norm <= self.clip else gradient * gradient.dtype.type(self.clip / norm)


@dataclass(frozen=True, slots=True)
class DeepGradientCompression:
    """See :func:`dgc`."""

    density: float
    momentum: float
    clip: float
    n_ranks: int
    epoch: int

    @property
    def not_summed(self) -> str:
        """Every rank has other indices."""
        return "every rank keeps other elements, so that lists cannot be added without growing"

    def density_at(self, step: int) -> float:
        """Return the share of elements that is sent in a step: 1/4, 1/16, ... in the first epochs."""
        return max(self.density, FALLS_BY ** -(step // self.epoch + 1.0)) if self.epoch else self.density

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002
        """List the largest."""
        vector = finite(vector)
        return write_list(vector, largest(vector, count(len(vector), self.density_at(step), None)))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return the list with zeros between."""
        return read_list(message)

    def memory(self) -> MomentumMemory:
        """Return the momentum of one rank."""
        return MomentumMemory(self.momentum, self.clip, self.n_ranks)

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return k indices and values, after the warm-up."""
        return count(n_elements, self.density, None) * (INDEX_BYTES + value_bytes)


@compressor
def dgc(
    density: float = 0.001, momentum: float = 0.9, clip: float = 0.0, n_ranks: int = 1, epoch: int = 0
) -> Compressor:
    """Keep the k largest of an accumulated momentum: k(4 + v) bytes; the optimiser needs no momentum of its own.

    Parameters
    ----------
    density : float
        Share of elements that are kept, above 0 and at most 1.
    momentum : float
        m, 0 up to 1. With 0 and no clipping this is top-k with error feedback.
    clip : float
        Norm to which the sum of the gradients is to be cut; a rank cuts its own to ``clip / sqrt(n_ranks)``. 0 for no
        clipping.
    n_ranks : int
        Ranks, for clipping.
    epoch : int
        Steps of an epoch of the warm-up, in which the density falls from 1/4 by a factor of 4 with every epoch; 0 for
        no warm-up.

    Returns
    -------
    Compressor
        Whose memory corrects the momentum, clips, and masks.

    Raises
    ------
    InputError
        If a parameter is out of its range.

    References
    ----------
    Lin, Han, Mao, Wang and Dally, "Deep gradient compression: Reducing the communication bandwidth for distributed
    training", ICLR 2018.
    """
    share(density, None)
    if not 0 <= momentum < 1 or not 0 <= clip < math.inf or n_ranks < 1 or epoch < 0:
        raise InputError(
            "dgc needs momentum of 0 up to 1, clip and epoch of at least 0 and n_ranks of at least 1, got "
            f"momentum={momentum}, clip={clip}, n_ranks={n_ranks}, epoch={epoch}"
        )
    return DeepGradientCompression(density, momentum, clip, n_ranks, epoch)
