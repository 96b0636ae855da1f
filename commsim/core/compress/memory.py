"""Memories: of nothing, and of what was left out (error feedback)."""

from __future__ import annotations

import numpy as np

from .message import Vector


class Forgetful:
    """Remembers nothing: what is not in a message is lost. For unbiased compressors, which lose nothing on average."""

    def add(self, gradient: Vector) -> Vector:
        """Return the gradient."""
        return gradient

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Forget."""


class Residual:
    """Error feedback: what was to be sent and was not is added to the next gradient.

    Nothing is lost: after any number of steps the sum of all gradients is that of all decoded messages, and the
    residual. Exactly, where additions are exact; else each step's two additions round once each.

    Attributes
    ----------
    residual : [n] or None
        What was left out; None before the first step.

    References
    ----------
    Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of
    speech DNNs", Interspeech 2014. Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018.
    """

    def __init__(self) -> None:
        self.residual: Vector | None = None

    def add(self, gradient: Vector) -> Vector:
        """Return the gradient with the residual; what overflows is refused where it is compressed."""
        with np.errstate(over="ignore"):
            return gradient if self.residual is None else gradient + self.residual

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Remember the difference; what overflows is refused in the next step."""
        with np.errstate(over="ignore"):
            self.residual = wanted - sent
