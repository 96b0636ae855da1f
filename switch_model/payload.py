"""What workers contribute: real tensors, or windows into one array of random numbers for any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.system import System

# Sixteen elements, a cache line, times a prime: blocks start on cache lines where k allows it, and two blocks of 256
# of a worker hold the same numbers only if they are a multiple of 262,139 blocks apart.
_SPAN = 16 * 262_139
_EXACT = {4: 2**24, 2: 2**8}  # integers up to which every sum is exact, by bytes: float32, bfloat16


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """Tensors of the workers of one or several jobs.

    A worker's tensors stand one after the other; element i of them, when it is the first of a packet, is
    ``values[base + (offset + i) % span]``, and the packet's other elements follow it. Chunks are the packets of all
    tensors of a job, numbered from 0 in each job; the last chunk of each tensor may be short.

    Parameters
    ----------
    values : int32[m] or float32[m]
        Array of all blocks; must not be changed.
    base, offset, span : int64[n_workers]
        Layout of each worker's tensor, see above.
    n_elements : tuple of tuple of int
        Elements of each tensor, per job.
    first_worker : int64[n_jobs + 1]
        Workers of job j are ``first_worker[j]`` to ``first_worker[j + 1] - 1``.
    integral : bool
        Whether every sum is exact, so that results must be equal bit for bit; always for int32.
    """

    values: NDArray[Any]
    base: NDArray[np.int64]
    offset: NDArray[np.int64]
    span: NDArray[np.int64]
    n_elements: tuple[tuple[int, ...], ...]
    first_worker: NDArray[np.int64]
    integral: bool

    @property
    def n_workers(self) -> int:
        """Workers of all jobs."""
        return int(self.first_worker[-1])

    def bounds(self, job: int, elements: int) -> NDArray[np.int64]:
        """Chunk c of a job, in packets of `elements`, is elements ``bounds[c]:bounds[c + 1]``; int64[n_chunks + 1]."""
        begins, total = [], 0
        for n in self.n_elements[job]:
            begins.append(np.arange(total, total + n, elements))
            total += n
        return np.concatenate((*begins, [total])).astype(np.int64)

    def block(self, worker: int, chunk: int, elements: int) -> NDArray[Any]:
        """Values that a worker sends in one packet."""
        job = int(np.searchsorted(self.first_worker, worker, side="right")) - 1
        first, end = self.bounds(job, elements)[chunk : chunk + 2]
        start = self.base[worker] + (self.offset[worker] + first) % self.span[worker]
        return self.values[start : start + end - first]


def given_payload(jobs: Sequence[Sequence[NDArray[Any]]], system: System) -> Payload:
    """Take real tensors.

    Parameters
    ----------
    jobs : sequence of sequences of int32[n_workers, n] or float32[n_workers, n]
        The tensors of each job. A single tensor is not copied. Floats of two bytes are rounded to bfloat16 first.
    system : System
        Says whether registers hold integers or floats.

    Raises
    ------
    InputError
        If an array has another type or shape, is empty, or has NaN or infinity.
    """
    dtype = np.dtype(np.float32 if system.arithmetic == "float" else np.int32)
    if not jobs or not all(jobs):
        raise InputError("a payload needs jobs of at least 1 tensor each")
    for job in jobs:
        for tensor in job:
            if tensor.dtype != dtype or tensor.ndim != 2 or not tensor.size or len(tensor) != len(job[0]):
                raise InputError(f"{system.name} needs {dtype}[n_workers, n] that is not empty, with as many workers "
                                 f"in every tensor of a job, got {tensor.dtype}{list(tensor.shape)}")  # fmt: skip
    whole = [job[0] if len(job) == 1 else np.concatenate(job, axis=1) for job in jobs]
    values = whole[0].reshape(-1) if len(whole) == 1 else np.concatenate([w.reshape(-1) for w in whole])
    if dtype == np.float32 and system.element_bytes == 2:
        from switch_model.bfloat16 import from_bfloat16, to_bfloat16

        values = from_bfloat16(to_bfloat16(values))
    if not np.isfinite(values).all():
        raise InputError(f"element {np.flatnonzero(~np.isfinite(values))[0]} of the tensors is NaN or infinite")
    n_workers = [len(w) for w in whole]
    span = np.repeat(np.array([w.shape[1] for w in whole], np.int64), n_workers)
    sizes = tuple(tuple(tensor.shape[1] for tensor in job) for job in jobs)
    integral = dtype == np.int32 or _adds_exactly(values, max(n_workers), system)
    return _frozen(values, np.cumsum(span) - span, np.zeros_like(span), span, sizes, n_workers, integral)


def drawn_payload(jobs: Sequence[tuple[int, Sequence[int]]], system: System, seed: int = 0) -> Payload:
    """Draw tensors, which share the memory of one array of 16 MiB whatever their number and size.

    Integers that wrap take all 32 bits. Integers that saturate, and floats, are integers so small that no sum of all
    workers leaves the range in which it is exact.

    Parameters
    ----------
    jobs : sequence of (int, sequence of int)
        Workers, and elements of each tensor, per job.
    system : System
        Says what the registers hold, and how large a block is.
    seed : int
        Seed of the numbers.

    Raises
    ------
    InputError
        If a job has no worker or a tensor no element, or too many workers for sums of small integers to be exact.
    """
    if not jobs or any(n < 1 or not sizes or min(sizes) < 1 for n, sizes in jobs):
        raise InputError(f"a payload needs jobs of at least 1 worker and tensors of at least 1 element, got {jobs}")
    n_workers, random = [n for n, _ in jobs], np.random.default_rng(seed)
    limit = 2**31
    if system.arithmetic != "wrap":
        limit = (limit if system.arithmetic == "saturate" else _EXACT[system.element_bytes]) // max(n_workers)
    if limit < 2:
        raise InputError(f"{system.name}: sums over {max(n_workers)} workers of the smallest integers are not exact")
    drawn = random.integers(-limit, limit, _SPAN + system.elements, np.int32)
    values = drawn.astype(np.float32) if system.arithmetic == "float" else drawn
    offset = random.integers(0, _SPAN // 16, sum(n_workers)) * 16
    sizes = tuple(tuple(int(n) for n in job[1]) for job in jobs)
    return _frozen(values, np.zeros_like(offset), offset, np.full_like(offset, _SPAN), sizes, n_workers, True)


def _frozen(
    values: NDArray[Any], base: NDArray[np.int64], offset: NDArray[np.int64], span: NDArray[np.int64],
    sizes: tuple[tuple[int, ...], ...], n_workers: Sequence[int], integral: bool,
) -> Payload:  # fmt: skip
    view = values.view()
    view.setflags(write=False)
    return Payload(view, base, offset, span, sizes, np.cumsum([0, *n_workers]), integral)


def _adds_exactly(values: NDArray[Any], n_workers: int, system: System) -> bool:
    largest = float(np.abs(values).max(initial=0.0))
    return bool(largest * n_workers <= _EXACT[system.element_bytes]) and bool((values == np.rint(values)).all())
