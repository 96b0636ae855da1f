"""The loop of a sweep: chunks out, rows in, a bounded number in flight; what is lost with a worker is retried."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

from commsim.core.errors import BackendError

from .executors import WorkerPool
from .ray_cluster import WORKER_DIED
from .worker import Chunk, ChunkTime, compute_chunk, import_all, one_line, row_line

CHUNKS_PER_WORKER = 2
# Tries of a point that ends a worker which had no other point; then its row has an error.
MAX_TRIES = 3
SECONDS_TO_BREAK = 60.0
# Without an answer, until workers are looked at; an executor that sees a dead one itself needs milliseconds.
SECONDS_TO_NOTICE = 2.0

Answer = tuple[ChunkTime, list[bytes]]


class RetriedChunks:
    """Runs chunks on a pool, and retries those whose worker died.

    Parameters
    ----------
    pool : WorkerPool
        Pool that runs the chunks.
    finished : callable
        Is given the time, the rows as lines, and how many of them failed with their worker, of each chunk.
    """

    def __init__(self, pool: WorkerPool, finished: Callable[[ChunkTime, list[bytes]], None]) -> None:
        self._pool, self._finished = pool, finished
        self._in_flight: dict[Future[Answer], Chunk] = {}
        self._suspects: deque[Chunk] = deque()
        self._tries: dict[str, int] = {}

    def run(self, chunks: Iterator[Chunk]) -> None:
        """Run all chunks; the first one before the others, so that the others find kernels that are compiled.

        Raises
        ------
        BackendError
            If the executor does not start, or broke and cannot be made again.
        """
        first = next(chunks, None)
        if first is None:
            return
        self._require_workers()
        self._submit(first)
        self._drain()
        room = CHUNKS_PER_WORKER * self._pool.n_workers
        for chunk in chunks:
            while self._suspects or len(self._in_flight) >= room:
                self._drain() if self._suspects else self._collect()
            self._submit(chunk)
        self._drain()

    def _require_workers(self) -> None:
        for _ in range(MAX_TRIES):
            try:
                starting = [self._pool.submit(import_all) for _ in range(self._pool.n_workers)]
                for future in starting:
                    future.result()
                return
            except BrokenExecutor:
                self._pool.renew()
        raise BackendError(
            f"the workers of the executor {self._pool.name} end as soon as they start; "
            "a script that runs a sweep needs `if __name__ == '__main__':` around it"
        )

    def _drain(self) -> None:
        """Wait for all chunks in flight; then retry those in flight when a worker died, one at a time."""
        while self._in_flight or self._suspects:
            if not self._in_flight:
                self._submit(self._suspects.popleft())
            self._collect()

    def _submit(self, chunk: Chunk) -> None:
        try:
            self._in_flight[self._pool.submit(compute_chunk, chunk)] = chunk
        except BrokenExecutor as error:  # it broke since the last answer came
            self._suspects.append(chunk)
            self._settle(list(self._in_flight), error)

    def _collect(self) -> None:
        done: set[Future[Answer]] = set()
        while self._in_flight and not done:
            done, _ = wait(self._in_flight, timeout=SECONDS_TO_NOTICE, return_when=FIRST_COMPLETED)
            if not done:
                self._pool.end_if_cut_off()
        self._settle(done, None)

    def _settle(self, done: Iterable[Future[Answer]], broken: BrokenExecutor | None) -> None:
        """Take the answers; if the executor is broken, all the others come to an end too."""
        lost = []
        for future in done:
            error = self._take(future)
            if error is not None:
                lost.append(self._in_flight[future])
                broken = error if isinstance(error, BrokenExecutor) else broken
                if not isinstance(error, BrokenExecutor):
                    self._lost(lost.pop(), error)
            del self._in_flight[future]
        if broken is None:
            return
        wait(self._in_flight, timeout=SECONDS_TO_BREAK)
        for future, chunk in self._in_flight.items():
            if not future.done() or self._take(future) is not None:
                lost.append(chunk)
        self._in_flight.clear()
        self._pool.renew()
        if len(lost) == 1:
            self._lost(lost[0], broken)  # no other was there, so it is to blame
        else:
            self._suspects.extend(lost)

    def _take(self, future: Future[Answer]) -> Exception | None:
        """Pass on the answer of a chunk, or return why it was lost."""
        try:
            took, lines = future.result(timeout=SECONDS_TO_BREAK)
        except (BrokenExecutor, BackendError) as error:
            if isinstance(error, BackendError):
                raise
            return error
        except Exception as error:  # compute_chunk lets nothing through, so this is the executor's own
            if type(error).__name__ in ("KilledWorker", *WORKER_DIED):  # Dask's comes after several workers died
                return error
            raise BackendError(f"the executor {self._pool.name} failed: {one_line(error)}") from None
        self._finished(took, lines)
        return None

    def _lost(self, chunk: Chunk, error: Exception) -> None:
        """Retry the halves of a chunk that broke its worker; a point that is lost ``MAX_TRIES`` times has failed."""
        if len(chunk) > 1:
            half = len(chunk) // 2
            self._suspects.extend((chunk.part(slice(half)), chunk.part(slice(half, None))))
            return
        digest = chunk.digests[0]
        self._tries[digest] = self._tries.get(digest, 0) + 1
        if self._tries[digest] < MAX_TRIES:
            self._suspects.append(chunk)
            return
        text = f"{MAX_TRIES} workers died while they computed only this point: {one_line(error)}"
        row = {"point": digest, "order": chunk.orders[0], "seed": chunk.seeds[0], **chunk.parameters[0]}
        self._finished(ChunkTime(), [row_line(row | {"error": text})])
