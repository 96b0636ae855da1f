"""A pool of processes that start anew; one of them that is ended from outside is one line."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .errors import BackendError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


@contextlib.contextmanager
def worker_pool(n: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes anew, without what this one has loaded; work that waits is dropped after an error.

    Parameters
    ----------
    n : int
        Processes.

    Raises
    ------
    BackendError
        If one of them was ended from outside.
    """
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(n, mp_context=get_context("spawn"), initializer=end_at_once) as pool:
        try:
            yield pool
        except BrokenExecutor:
            text = "one of the processes was ended from outside, perhaps for want of memory; --jobs 1 takes the least"
            raise BackendError(text) from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def end_at_once() -> None:
    """Have this process end as forked ones do: without taking apart all it has loaded, which takes 0.4 s."""
    atexit.register(os._exit, 0)
