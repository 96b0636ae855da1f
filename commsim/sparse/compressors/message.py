"""The compressor, the message that it makes of a gradient, and the memory of what was left out (error feedback)."""

from __future__ import annotations

from collections.abc import Generator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, wrong_kind

# [n] floats.
Vector: TypeAlias = NDArray[Any]

# Yields what is to be summed over the ranks, is sent the sum; returns the decoded sum and this rank's part of it.
Exchange: TypeAlias = Generator[Vector, Vector, tuple[Vector, Vector]]


@dataclass(frozen=True, slots=True, eq=False)
class CompressedMessage:
    """One message.

    Parameters
    ----------
    n_elements : int
        Number of elements of the gradient.
    dtype : dtype
        Data type of the gradient.
    parts : tuple of array
        What goes on the wire, as it goes there. Lengths and kinds of number are known at both ends, from the
        compressor and the two above, but for the length of a list that the data decides.
    """

    n_elements: int
    dtype: np.dtype[Any]
    parts: tuple[NDArray[Any], ...]

    @property
    def n_bytes(self) -> int:
        """Bytes on the wire."""
        return sum(part.nbytes for part in self.parts)

    @property
    def payload(self) -> bytes:
        """The message itself."""
        return b"".join(part.tobytes() for part in self.parts)


class GradientMemory(Protocol):
    """What a rank keeps of the gradients that it has not sent."""

    def add(self, gradient: Vector) -> Vector:
        """Return what is to be compressed now: the gradient, and what was left before."""

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Remember what was to be compressed and is not in the message, given what the message decodes to."""


class Compressor(Protocol):
    """Makes messages of gradients; frozen."""

    @property
    def not_summed(self) -> str | None:
        """Why messages cannot be added on their way; None where they can, and :class:`SummingCompressor` holds."""

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:
        """Return the message of a rank in a step; the same for the same of both.

        Parameters
        ----------
        vector : [n]
            Finite floats.
        rank, step : int
            Rank and step that random numbers are drawn from, where the compressor draws any.

        Raises
        ------
        InputError
            If a value is NaN or infinite, or the vector is too short for what is to be kept of it.
        """

    def decode(self, message: CompressedMessage) -> Vector:
        """Return what a message says of the gradient, [n_elements]."""

    def memory(self) -> GradientMemory:
        """Return the memory of one rank, before the first step."""

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return the bytes of a message.

        Raises
        ------
        InputError
            If these depend on the data, or the gradient is too short.
        """


@runtime_checkable
class SummingCompressor(Protocol):
    """A compressor whose messages can be added on their way, by any all-reduce."""

    def exchange(self, vector: Vector, step: int, memory: GradientMemory) -> Exchange:
        """Compress, have the ranks' messages summed, and decode the sum; perhaps several times.

        Parameters
        ----------
        vector : [n]
            What the rank adds.
        step : int
            Number of the step.
        memory : GradientMemory
            Memory of the rank.
        """

    def exchange_bytes(self, n_elements: int, value_bytes: int = 4) -> tuple[int, ...]:
        """Return the bytes that each rank puts into each of the sums."""


def finite(values: Any, what: str = "a gradient") -> Vector:
    """Return floats that are finite: NaN and infinity would vanish in a list, a sign or a level, and are refused.

    Raises
    ------
    InputError
        If this is no vector of floats, or a value is NaN or infinite.
    """
    vector = np.asarray(values)
    if vector.ndim != 1 or not vector.size or vector.dtype.kind != "f":
        raise InputError(f"{what} must be [n >= 1] floats, got {vector.dtype} of shape {vector.shape}")
    good = np.isfinite(vector)
    if not good.all():
        bad = int(good.argmin())
        raise InputError(f"{what} must be finite, got {vector[bad]} at index {bad}")
    return vector


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


class CompressedRank:
    """One rank: a compressor, what the rank remembers, and the number of its next step.

    Parameters
    ----------
    compressor : Compressor
        Compressor of all ranks.
    rank : int
        Number of the rank.
    feedback : bool
        Whether to remember what was not sent, as the compressor's paper does; without, it is lost.
    """

    def __init__(self, compressor: Compressor, rank: int = 0, *, feedback: bool = True) -> None:
        self.compressor, self.rank = compressor, rank
        self.memory = compressor.memory() if feedback else Forgetful()
        self.step = 0

    def send(self, gradient: Vector) -> CompressedMessage:
        """Compress the next gradient, with what is left of those before it.

        Raises
        ------
        InputError
            If a value is NaN or infinite; what is remembered is as before then.
        """
        wanted = self.memory.add(finite(gradient))
        message = self.compressor.encode(wanted, self.rank, self.step)
        self._sent(wanted, self.compressor.decode(message))
        return message

    def exchange(self, gradient: Vector) -> Exchange:
        """Compress the next gradient, to be summed with those of the other ranks while compressed.

        Raises
        ------
        InputError
            If a value is NaN or infinite, or messages cannot be summed.
        """
        if not isinstance(self.compressor, SummingCompressor):
            raise InputError(f"these messages cannot be summed: {self.compressor.not_summed}")
        wanted = self.memory.add(finite(gradient))
        total, own = yield from self.compressor.exchange(wanted, self.step, self.memory)
        self._sent(wanted, own)
        return total, own

    def _sent(self, wanted: Vector, sent: Vector) -> None:
        self.memory.keep(wanted, sent)
        self.step += 1


def compressed_sum(workers: Sequence[CompressedRank], gradients: Sequence[Vector]) -> tuple[Vector, list[int]]:
    """Sum the gradients of all ranks, compressed: by sums of messages where they can be summed, else by all-gather.

    Parameters
    ----------
    workers : sequence of CompressedRank
        One for each rank, with the same compressor.
    gradients : sequence of [n]
        One for each rank.

    Returns
    -------
    [n], list of int
        What every rank ends with, added in the order of the ranks; and the bytes of each rank's messages.

    Raises
    ------
    InputError
        If a value is NaN or infinite, or the sum is.
    """
    for name, text in (("workers", workers), ("gradients", gradients)):
        if not isinstance(text, Sized):
            raise wrong_kind(name, "a list, of one for each rank", text)
    if not workers or len(workers) != len(gradients):
        raise InputError(f"needs one gradient for each of {len(workers)} ranks, got {len(gradients)}")
    if isinstance(workers[0].compressor, SummingCompressor):
        return _in_step([worker.exchange(gradient) for worker, gradient in zip(workers, gradients, strict=True)])
    messages = [worker.send(gradient) for worker, gradient in zip(workers, gradients, strict=True)]
    parts = [worker.compressor.decode(message) for worker, message in zip(workers, messages, strict=True)]
    return _sum(parts), [message.n_bytes for message in messages]


def _in_step(exchanges: list[Exchange]) -> tuple[Vector, list[int]]:
    """Run the exchanges of all ranks, sum by sum."""
    sent = [next(exchange) for exchange in exchanges]
    n_bytes = [0] * len(exchanges)
    while True:
        n_bytes = [n + message.nbytes for n, message in zip(n_bytes, sent, strict=True)]
        total, results, sent = _sum(sent), [], []
        for exchange in exchanges:
            try:
                sent.append(exchange.send(total))
            except StopIteration as end:
                results.append(end.value[0])
        if results:
            return results[0], n_bytes


def _sum(parts: Sequence[Vector]) -> Vector:
    total = parts[0].copy()
    with np.errstate(over="ignore"):
        for part in parts[1:]:
            total += part
    return finite(total, "the sum of compressed gradients")
