"""Where chunks run: processes of this machine, MPI, Dask, Ray, this process, or any ``concurrent.futures.Executor``."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

from commsim.core.errors import BackendError, InputError, unknown_name
from commsim.core.extras import needs
from commsim.core.files.socket_folders import has_room_for_socket
from commsim.core.interrupts import signals_held
from commsim.core.spec import is_whole

from .worker import THREADS, begin_worker

NAMES = ("process", "serial", "mpi", "dask", "dask://HOST:PORT", "ray", "ray://HOST:PORT")
# Names of earlier versions, and what stands for them now.
RENAMED = {"loky": "process"}
MAX_JOBS = 4096
SOCKET = f"pymp-{'x' * 8}/listener-{'x' * 8}"  # of a server that forks workers
# In which idle workers end; then they are killed.
SECONDS_TO_END = 20.0


class WorkerPool:
    """An executor, how many workers it has, and how to get another one when it is broken.

    Parameters
    ----------
    name : str
        Name used in messages.
    make : callable
        Returns a new executor; None for one that was handed in and cannot be made again.
    n_workers : int
        Chunks that run at once.
    executor : Executor, optional
        The one that was handed in.
    """

    def __init__(
        self, name: str, make: Callable[[], Executor] | None, n_workers: int, executor: Executor | None = None
    ) -> None:
        self.name, self.n_workers = name, n_workers
        self._make = make
        self._executor = executor

    @property
    def executor(self) -> Executor:
        """The one to submit to."""
        if self._executor is None:
            if self._make is None:
                raise BackendError(f"the executor {self.name} is broken; run again with a new one to continue")
            self._executor = self._make()
        return self._executor

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Submit a call; an interruption meanwhile comes after it, when the workers that it starts are known."""
        with signals_held():  # a worker whose start is interrupted is not known, and lives on without its work
            return self.executor.submit(fn, *args)

    def renew(self) -> None:
        """Forget an executor that is broken; the next one is made when it is needed.

        Raises
        ------
        BackendError
            If it cannot be made again.
        """
        broken, self._executor = self._executor, None
        if self._make is None:
            raise BackendError(f"the executor {self.name} is broken; run again with a new one to continue")
        if broken is not None:
            _end(broken)

    def end_if_cut_off(self) -> None:
        """End the workers when one has died and the executor does not notice.

        Python's pool reads an answer to its end before it looks at its workers, and holds the pipe open itself: it
        waits for ever for the rest of an answer if a worker was killed in the middle of it.
        """
        processes = getattr(self._executor, "_processes", None) or {}
        answers = getattr(getattr(self._executor, "_result_queue", None), "_writer", None)
        alive = [process.sentinel for process in processes.values()]
        if answers is not None and multiprocessing.connection.wait(alive, timeout=0):
            for process in processes.values():
                process.kill()
            answers.close()  # nobody else holds it now, so what is read comes to an end: the executor is broken

    def close(self, now: bool = False) -> None:
        """End the executor if it is ours; `now` also ends what runs."""
        if self._make is None or self._executor is None:
            return
        executor, self._executor = self._executor, None
        manager = getattr(executor, "_executor_manager_thread", None)
        if now:
            _end(executor)
        elif manager is None:
            executor.shutdown(wait=True)
        else:
            _end_idle(executor, manager)


class Serial(Executor):
    """Runs what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn`, and return its answer as a future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextlib.contextmanager
def open_pool(executor: str | Executor | None, jobs: int | None) -> Iterator[WorkerPool]:
    """Make the executor that was asked for; what is made here is ended here.

    Parameters
    ----------
    executor : str, Executor or None
        A name of ``NAMES``, or an executor; by default MPI's if started by ``-m mpi4py.futures``, else processes.
    jobs : int, optional
        Workers; by default one for each processor that this process may use.

    Raises
    ------
    InputError
        If the name is unknown, or what it needs is not installed.
    """
    n = processors(jobs)
    pool = None
    with _one_thread_each():
        try:
            pool = _pool(executor, n)
            yield pool
        except BaseException:
            if pool is not None:
                pool.close(now=True)
            raise
        pool.close()


def processors(jobs: int | None) -> int:
    """Return how many workers there are: as many as asked for, or one for each processor that this process may use.

    Raises
    ------
    InputError
        If the number asked for is out of range.
    """
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= jobs <= MAX_JOBS:
        raise InputError(f"jobs must be 1 to {MAX_JOBS}, got {jobs}")
    return jobs


def _is_under_mpi() -> bool:
    """Whether this process was started by ``mpiexec -n N python -m mpi4py.futures``, and others wait for work."""
    core = sys.modules.get("mpi4py.futures._core")
    return core is not None and core.SharedPool is not None


def _pool(executor: str | Executor | None, n: int) -> WorkerPool:
    if isinstance(executor, Executor):
        return WorkerPool(type(executor).__name__, None, _workers_of(executor, n), executor)
    name = RENAMED.get(executor or "", executor) or ("mpi" if _is_under_mpi() else "process")
    if name.startswith("dask"):
        return _dask(name, n)
    if name == "ray" or name.startswith("ray://"):
        return _ray(name, n)
    known: dict[str, Callable[[int], WorkerPool]] = {"process": _process, "serial": _serial, "mpi": _mpi}
    if name not in known:
        raise unknown_name("executor", name, NAMES)
    return known[name](n)


def about_renamed(executor: str | Executor | None) -> tuple[str, ...]:
    """Describe what stands for the name of an executor of an earlier version."""
    if not isinstance(executor, str) or executor not in RENAMED:
        return ()
    return (f"--executor {executor} is now {RENAMED[executor]}, which replaces workers that die too",)


def _serial(n: int) -> WorkerPool:  # noqa: ARG001 - one, whatever was asked for
    return WorkerPool("serial", Serial, 1)


def _process(n: int) -> WorkerPool:
    from concurrent.futures import ProcessPoolExecutor

    methods = multiprocessing.get_all_start_methods()
    may_fork = "forkserver" in methods and has_room_for_socket(tempfile.gettempdir(), SOCKET)
    context = multiprocessing.get_context("forkserver" if may_fork else "spawn")
    return WorkerPool("process", lambda: ProcessPoolExecutor(n, mp_context=context, initializer=begin_worker), n)


def _mpi(n: int) -> WorkerPool:  # noqa: ARG001 - mpiexec said how many
    try:
        from mpi4py.futures import MPIPoolExecutor
    except ImportError:
        raise InputError(needs("--executor mpi needs mpi4py", "mpi")) from None
    if not _is_under_mpi():
        raise InputError("--executor mpi: start with `mpiexec -n N python -m mpi4py.futures -m commsim sweep ...`")
    executor = MPIPoolExecutor()
    return WorkerPool("mpi", lambda: executor, max(1, executor.num_workers))


def _dask(name: str, n: int) -> WorkerPool:
    try:
        import distributed
    except ImportError:
        raise InputError(needs(f"--executor {name} needs Dask", "dask")) from None
    dask: Any = distributed
    if name != "dask":
        address = name.removeprefix("dask://")
        if address == name or not is_whole(address.rpartition(":")[2], 5):
            raise InputError(f"--executor for Dask is dask or dask://HOST:PORT, got {name!r}")
        try:
            client = dask.Client(f"tcp://{address}", timeout=10, set_as_default=False)
        except OSError as error:
            raise BackendError(f"no Dask scheduler answers at {address}: {str(error).splitlines()[0]}") from None
        n = max(1, len(client.nthreads()))
    else:
        cluster = dask.LocalCluster(
            n, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
        )
        client = dask.Client(cluster, set_as_default=False)
    return _DaskPool(client, n)


def _ray(name: str, n: int) -> WorkerPool:
    from .ray_cluster import RayExecutor

    if name != "ray" and not is_whole(name.rpartition(":")[2], 5):
        raise InputError(f"--executor for Ray is ray or ray://HOST:PORT, got {name!r}")
    executor = RayExecutor(None if name == "ray" else name, n)
    return WorkerPool("ray", lambda: executor, executor.num_workers, executor)


class _DaskPool(WorkerPool):
    """A client of a Dask cluster; a local cluster ends with it."""

    def __init__(self, client: Any, n_workers: int) -> None:
        executor = client.get_executor(pure=False)
        super().__init__("dask", lambda: executor, n_workers)
        self._client = client

    def close(self, now: bool = False) -> None:
        super().close(now)
        self._client.close()
        if self._client.cluster is not None:
            self._client.cluster.close()


def _workers_of(executor: Executor, n: int) -> int:
    for name in ("_max_workers", "num_workers", "max_workers"):
        workers = getattr(executor, name, None)
        if isinstance(workers, int) and workers > 0:
            return workers
    return n


def _end_idle(executor: Executor, manager: threading.Thread) -> None:
    """End Python's pool of processes, in which nothing runs any more; by force if it does not end by itself.

    Where a worker died last, the pool may wait for ever for the thread that sends to workers: this process holds the
    other end of that pipe open itself.
    """
    processes = list((getattr(executor, "_processes", None) or {}).values())
    calls = getattr(getattr(executor, "_call_queue", None), "_reader", None)
    executor.shutdown(wait=False)
    manager.join(SECONDS_TO_END)
    if manager.is_alive():
        for process in processes:
            process.kill()
        if isinstance(calls, multiprocessing.connection.Connection):
            calls.close()
        manager.join(SECONDS_TO_END)


def _end(executor: Executor) -> None:
    """End an executor without waiting for what runs in it."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.kill()  # first, since one that has only begun would look for semaphores that are gone
    executor.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let the processes that are started here start no threads of their own."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update({name: "1" for name, value in before.items() if value is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
