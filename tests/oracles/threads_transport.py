"""A transport between threads of this process: what schedules are executed over where no MPI is needed."""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any


class Mail:
    """Queues between all pairs of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[tuple[int, int, int], queue.SimpleQueue[Any]] = defaultdict(queue.SimpleQueue)

    def queue(self, src: int, dst: int, tag: int) -> queue.SimpleQueue[Any]:
        with self._lock:
            return self._queues[src, dst, tag]


class ThreadTransport:
    """One thread's way to the others."""

    name = "threads"
    look_ahead = 8
    acknowledges = False
    wait_some = None
    ranks_per_host = 1

    def __init__(self, mail: Mail, rank: int, size: int) -> None:
        self.mail, self.rank, self.size = mail, rank, size

    def isend(self, array: Any, peer: int, tag: int) -> None:
        self.mail.queue(self.rank, peer, tag).put(array.copy())

    def wait(self, handle: object) -> None:
        assert handle is None

    def receive_any_size(self, peer: int, tag: int) -> Any:
        return self.mail.queue(peer, self.rank, tag).get(timeout=60)


def on_threads(n: int, work: Callable[[ThreadTransport], Any]) -> list[Any]:
    """Call `work` on n threads, one per participant, and return what they return; the first failure is raised."""
    mail = Mail()
    found: list[Any] = [None] * n

    def run(rank: int) -> None:
        try:
            found[rank] = work(ThreadTransport(mail, rank, n))
        except BaseException as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = [error for error in found if isinstance(error, BaseException)]
    if failed:
        raise failed[0]
    return found
