"""An executor over Ray's tasks: a cluster that runs already, or one of this machine."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from commsim.core.errors import BackendError, InputError
from commsim.core.extras import needs

# What Ray raises when a worker or its machine has ended, and not the function that it ran.
WORKER_DIED = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError")


class RayExecutor(Executor):
    """Submit calls as tasks of Ray, one processor each; a task whose worker dies is not repeated by Ray.

    Parameters
    ----------
    address : str, optional
        ``ray://HOST:PORT``. Default: what ``RAY_ADDRESS`` says, otherwise a new cluster on this machine. A program
        that has called ``ray.init`` keeps its cluster.
    n : int
        Workers of a new cluster.

    Raises
    ------
    InputError
        If Ray is not installed.
    BackendError
        If no cluster answers there.
    """

    def __init__(self, address: str | None, n: int) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError:
            raise InputError(needs("--executor ray needs Ray", "ray")) from None
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            _connect(self._ray, address or os.environ.get("RAY_ADDRESS"), n)
        self.num_workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._call = self._ray.remote(num_cpus=1, max_retries=0)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a task; its answer is a future."""
        future: Future[Any] = self._call.remote(fn, args, kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - ended at once
        """Leave the cluster; one of our own ends."""
        if self._is_ours:
            self._ray.shutdown()


def _connect(ray: Any, address: str | None, n: int) -> None:
    # A new cluster sends no statistics of use to Ray's authors.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"address": address} if address else {"num_cpus": n, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError) as error:
        text = (str(error).splitlines() or ["no message"])[0]
        raise BackendError(f"no Ray cluster answers at {address or 'this machine'}: {text}") from None


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
