"""The same table from every executor, byte for byte."""

import hashlib
import io
import multiprocessing
import os
import signal
import sys
import tempfile
import types

import pytest
from under_mpiexec import under_mpiexec

from commsim.core.files.whole_files import write_tree
from commsim.sweep.executors import Serial, WorkerPool, open_pool, processors
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import read_table

pq = pytest.importorskip("pyarrow.parquet")


def fingerprint(directory):
    out = io.BytesIO()
    pq.write_table(read_table(directory), out)
    return hashlib.sha256(out.getvalue()).hexdigest()


def same(tree, tmp_path, executor, **options):
    run_sweep(tree, tmp_path / "serial", "serial")
    done = run_sweep(tree, tmp_path / "other", executor, **options)
    assert done.n_done == 24
    assert done.n_failed == 0
    return fingerprint(tmp_path / "serial") == fingerprint(tmp_path / "other")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no affinities")
def test_there_are_as_many_workers_as_processors_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert (processors(None), processors(5)) == (3, 5)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors(None) == 8


def test_two_processes_give_the_table_of_one(small, tmp_path):
    assert same(small, tmp_path, "process", jobs=2)


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.parametrize(("folder", "method"), [("/tmp", "forkserver"), (f"/tmp/{'x' * 71}", "spawn")])
def test_workers_are_not_forked_by_a_server_whose_socket_has_too_long_a_path(monkeypatch, folder, method):
    asked, context = [], multiprocessing.get_context("spawn")
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setattr(multiprocessing, "get_context", lambda name: asked.append(name) or context)
    with open_pool("process", 1):
        assert asked == [method]


def test_dask_on_loopback_gives_the_table_of_one_process(small, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(1, threads_per_worker=1, processes=False, host="127.0.0.1", protocol="tcp",
                                 dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
    ):  # fmt: skip
        assert same(small, tmp_path, cluster.scheduler_address.replace("tcp", "dask"))


def test_a_worker_has_one_thread_and_the_driver_what_it_had(small, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    from commsim.sweep.executors import open_pool

    with open_pool("process", 1) as pool:
        assert pool.executor.submit(os.getenv, "NUMBA_NUM_THREADS").result() == "1"
    assert "NUMBA_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(("waiting", "n"), [(0, 1), (3, 3)])
def test_a_pool_of_mpi_has_as_many_workers_as_wait_for_work(monkeypatch, waiting, n):
    futures = types.ModuleType("mpi4py.futures")
    futures.MPIPoolExecutor = lambda: types.SimpleNamespace(num_workers=waiting, shutdown=lambda **_: None)
    core = types.ModuleType("mpi4py.futures._core")
    core.SharedPool = object()
    for one in (types.ModuleType("mpi4py"), futures, core):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    with open_pool("mpi", None) as pool:
        assert pool.n_workers == n


@pytest.mark.mpi
def test_two_ranks_of_mpi_give_the_table_of_one_process(small, tmp_path):
    write_tree(tmp_path / "sweep.toml", small)
    command = ["-m", "mpi4py.futures", "-m", "commsim", "sweep"]
    done = under_mpiexec(2, *command, str(tmp_path / "sweep.toml"), "-o", str(tmp_path / "mpi"))
    assert done.returncode == 0, done.stderr
    assert "24 points" in done.stdout
    run_sweep(tmp_path / "sweep.toml", tmp_path / "serial", "serial")
    assert fingerprint(tmp_path / "mpi") == fingerprint(tmp_path / "serial")
    assert "commsim" in sys.modules


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_a_worker_starts_comes_when_it_is_known(number):
    """A worker that nobody knew of looked for semaphores that were gone, with a traceback on the terminal."""

    def interrupted(*_):
        raise KeyboardInterrupt

    class Starting(Serial):
        known = False

        def submit(self, fn, /, *args, **kwargs):
            os.kill(os.getpid(), number)
            self.known = True
            return super().submit(fn, *args, **kwargs)

    before, executor = signal.signal(number, interrupted), Starting()
    try:
        with pytest.raises(KeyboardInterrupt):
            WorkerPool("slow", None, 1, executor).submit(int)
        assert executor.known
        assert signal.getsignal(number) is interrupted
    finally:
        signal.signal(number, before)
