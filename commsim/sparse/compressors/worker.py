"""Ranks that compress one gradient after the other, and the sum that all of them get."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.errors import InputError
from .message import Compressed, Compressor, Exchange, Forgetful, Summed, Vector, finite


class Worker:
    """One rank: a compressor, what the rank remembers, and the number of its next step.

    Parameters
    ----------
    compressor : Compressor
        Of all ranks.
    rank : int
        Which.
    feedback : bool
        Whether to remember what was not sent, as the compressor's paper does; without, it is lost.
    """

    def __init__(self, compressor: Compressor, rank: int = 0, *, feedback: bool = True) -> None:
        self.compressor, self.rank = compressor, rank
        self.memory = compressor.memory() if feedback else Forgetful()
        self.step = 0

    def send(self, gradient: Vector) -> Compressed:
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
        if not isinstance(self.compressor, Summed):
            raise InputError(f"these messages cannot be summed: {self.compressor.not_summed}")
        wanted = self.memory.add(finite(gradient))
        total, own = yield from self.compressor.exchange(wanted, self.step, self.memory)
        self._sent(wanted, own)
        return total, own

    def _sent(self, wanted: Vector, sent: Vector) -> None:
        self.memory.keep(wanted, sent)
        self.step += 1


def total_of(workers: Sequence[Worker], gradients: Sequence[Vector]) -> tuple[Vector, list[int]]:
    """Sum the gradients of all ranks, compressed: by sums of messages where they can be summed, else by all-gather.

    Parameters
    ----------
    workers : sequence of Worker
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
    if not workers or len(workers) != len(gradients):
        raise InputError(f"needs one gradient for each of {len(workers)} ranks, got {len(gradients)}")
    if isinstance(workers[0].compressor, Summed):
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
