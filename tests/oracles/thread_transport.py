"""A transport between threads of one process: shows the executor's behaviour without MPI."""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

TIMEOUT = 20.0


class World:
    """What the ranks share; with `rendezvous` a send completes only when it has been received."""

    def __init__(
        self,
        size: int,
        rendezvous: bool = True,
        look_ahead: int = 8,
        any_order: bool = True,
        acknowledges: bool = False,
    ) -> None:
        self.size, self.rendezvous, self.look_ahead = size, rendezvous, look_ahead
        self.any_order, self.acknowledges = any_order, acknowledges
        self.lines: dict[Any, queue.Queue[Any]] = defaultdict(queue.Queue)
        self.lock = threading.Lock()
        self.wall = threading.Barrier(size, timeout=TIMEOUT)
        self.slots: list[Any] = [None] * size

    def line(self, key: Any) -> queue.Queue[Any]:
        with self.lock:
            return self.lines[key]

    def run(self, program: Callable[["ThreadTransport"], Any]) -> list[Any]:
        """Run `program` on every rank and return what each returned; the first error is raised."""
        results: list[Any] = [None] * self.size
        errors: list[BaseException] = []

        def work(rank: int) -> None:
            try:
                results[rank] = program(ThreadTransport(self, rank))
            except BaseException as error:
                errors.append(error)
                self.wall.abort()

        threads = [threading.Thread(target=work, args=(r,), daemon=True) for r in range(self.size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(2 * TIMEOUT)
        if errors:
            raise errors[0]
        assert not any(t.is_alive() for t in threads), "deadlock"
        return results


class ThreadTransport:
    """Sends hand over the array itself when rendezvous, so a buffer that is reused too early shows."""

    name = "threads"
    library = ""
    ranks_per_host = 1

    def __init__(self, world: World, rank: int) -> None:
        self.world, self.rank, self.size, self.look_ahead = world, rank, world.size, world.look_ahead
        self.acknowledges = world.acknowledges
        self.wait_some = self._wait_some if world.any_order else None
        self.posted: dict[Any, list[Any]] = defaultdict(list)

    def empty(self, n_elements: int, dtype: str) -> np.ndarray:
        return np.zeros(n_elements, dtype)

    def load(self, target: np.ndarray, values: np.ndarray) -> None:
        target[:] = values

    def values(self, array: np.ndarray) -> np.ndarray:
        return array

    def isend(self, array: np.ndarray, peer: int, tag: int) -> Any:
        taken = threading.Event()
        self.world.line((self.rank, peer, tag)).put((array if self.world.rendezvous else array.copy(), taken))
        if not self.world.rendezvous:
            taken.set()
        return ("send", taken)

    def irecv(self, array: np.ndarray, peer: int, tag: int) -> Any:
        # A real library may write into a posted buffer at any moment, so what stands there is destroyed at once.
        array[:] = -77
        arrived = threading.Event()
        self.posted[peer, tag].append((array, arrived))
        return ("receive", arrived)

    def receive_any_size(self, peer: int, tag: int) -> Any:
        return self.world.line((peer, self.rank, tag)).get(timeout=TIMEOUT)[0]

    def wait(self, handle: Any) -> None:
        self._wait_some([handle])

    def _wait_some(self, handles: list[Any]) -> list[int]:
        deadline = time.monotonic() + TIMEOUT
        while not (complete := [place for place, handle in enumerate(handles) if handle[1].is_set()]):
            if not self._progress():
                time.sleep(1e-5)
            assert time.monotonic() < deadline, f"rank {self.rank}: a {handles[0][0]} never completed"
            if self.world.wall.broken:
                raise RuntimeError("another rank failed")
        return complete

    def _progress(self) -> bool:
        """Match what has been sent with the posted receives, in the order of posting, as a library does in any wait."""
        moved = False
        for (peer, tag), waiting in self.posted.items():
            line = self.world.line((peer, self.rank, tag))
            while waiting and not line.empty():
                data, taken = line.get_nowait()
                array, arrived = waiting.pop(0)
                assert len(data) == len(array)
                array[:] = data
                taken.set()
                arrived.set()
                moved = True
        return moved

    def synchronize(self) -> None:
        pass

    def barrier(self) -> None:
        self.world.wall.wait()

    def max_over_ranks(self, values: np.ndarray) -> np.ndarray:
        self.world.slots[self.rank] = values.copy()
        self.world.wall.wait()
        out = np.max(self.world.slots, axis=0)
        self.world.wall.wait()
        return out

    def native(self, operation: str, n_elements: int, root: int, dtype: str, source: np.ndarray) -> Any:
        raise NotImplementedError

    def abort(self) -> None:
        self.world.wall.abort()

    def close(self) -> None:
        pass
