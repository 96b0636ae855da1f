"""The worker: computes chunks of points. This module imports nothing heavy: the environment has to be set first."""

from __future__ import annotations

import importlib
import json
import math
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .compute import Bench

# A worker is one of many: each has one thread.
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

MAX_MESSAGE = 500
# The bench of each thread, for the sweep that it computes.
_kept = threading.local()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Points that one worker computes in one go.

    Parameters
    ----------
    version : str
        Version of commsim; a worker of another version refuses.
    sweep : str
        Hash of the configuration.
    kinds : mapping of str to str
        Kind of every parameter.
    orders, digests, seeds : tuple
        Orders, digests and seeds of the points.
    parameters : tuple of mapping
        Parameters of the points.
    """

    version: str
    sweep: str
    kinds: Mapping[str, str]
    orders: tuple[int, ...]
    digests: tuple[str, ...]
    seeds: tuple[int, ...]
    parameters: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.orders)

    def part(self, which: slice) -> Chunk:
        """Return some of the points."""
        return Chunk(self.version, self.sweep, self.kinds, self.orders[which], self.digests[which], self.seeds[which],
                     self.parameters[which])  # fmt: skip


class ChunkTime(NamedTuple):
    """Seconds that a chunk took, by the clock; and in which its worker ran, and waited for a core."""

    elapsed: float = 0.0
    ran: float = 0.0
    waited: float = 0.0


def compute_chunk(chunk: Chunk) -> tuple[ChunkTime, list[bytes]]:
    """Compute the points of a chunk.

    Returns
    -------
    ChunkTime, list of bytes
        What it took, and a line of JSON for every point, in order; a point that failed has its error.

    Raises
    ------
    BackendError
        If this worker has another version of commsim than the driver.
    """
    from commsim.core.limits import scheduled

    began, (ran, waited) = time.perf_counter(), scheduled()
    bench = _ready(chunk)
    lines = []
    for order, digest, seed, parameters in zip(chunk.orders, chunk.digests, chunk.seeds, chunk.parameters, strict=True):
        head = {"point": digest, "order": order, "seed": seed, **parameters}
        lines.append(row_line(head | _row(bench, seed, parameters)))
    now_ran, now_waited = scheduled()
    return ChunkTime(time.perf_counter() - began, now_ran - ran, now_waited - waited), lines


def import_all() -> None:
    """Import what points need, so that all workers do so at once; it compiles nothing, but nothing is interpreted."""
    _one_thread()
    importlib.import_module("commsim.core.jit").compile_all()
    for name in ("numba", "commsim.prediction", "commsim.sweep.compute", "commsim.engine.flow_kernel"):
        importlib.import_module(name)


def row_line(row: Mapping[str, Any]) -> bytes:
    """Write one row as one line."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
    return json.dumps(finite, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line of bounded length; of what is no user's fault also its type."""
    from commsim.core.errors import CommsimError

    text = " ".join(str(error).split()) or "no message"
    text = text if isinstance(error, CommsimError) else f"{type(error).__name__}: {text}"
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 3]}..."


def begin_worker() -> None:
    """Make a process a worker: one thread, no reaction to Ctrl-C, and it ends with the driver."""
    import signal
    from multiprocessing import parent_process

    _one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    owner = parent_process()
    assert owner is not None  # it is started by `multiprocessing`

    def end_with_owner() -> None:
        owner.join()
        os._exit(1)  # a pool does not notice that its owner was killed, and would wait for work for ever

    threading.Thread(target=end_with_owner, daemon=True).start()


def _one_thread() -> None:
    """Let the libraries of this process start no threads, unless it was said how many."""
    for name in THREADS:
        os.environ.setdefault(name, "1")


def _ready(chunk: Chunk) -> Bench:
    _one_thread()
    from commsim.core.errors import BackendError
    from commsim.version import __version__

    if chunk.version != __version__:
        raise BackendError(f"a worker has commsim {__version__}, the sweep was started with {chunk.version}")
    if getattr(_kept, "sweep", None) != chunk.sweep:
        from .compute import Bench

        _kept.bench, _kept.sweep = Bench(chunk.kinds), chunk.sweep
    bench: Bench = _kept.bench
    return bench


def _row(bench: Bench, seed: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"error": None, **bench.row(seed, parameters)}
    except Exception as error:  # whatever is wrong with one point is said in its row, and the others go on
        return {"error": one_line(error)}
