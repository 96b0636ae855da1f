"""Executors that break, answer in another order, or fail: no point is lost, none computed into two rows."""

import contextlib
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from threading import Timer

import pytest

from commsim.core.errors import BackendError, InputError
from commsim.sweep.chunk_retries import MAX_TRIES, RetriedChunks
from commsim.sweep.executors import WorkerPool, open_pool
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import read_table
from commsim.sweep.worker import Chunk, ChunkTime


class Fragile(Executor):
    """Breaks when it is given one of the deadly points, as a pool does whose worker was killed."""

    def __init__(self, deadly, draw):
        self.deadly, self.draw, self.broken, self.pending = deadly, draw, False, []

    def submit(self, _, /, *args):
        if self.broken:
            raise BrokenProcessPool("broken before")
        future = Future()
        if not args:
            future.set_result(1)
            return future
        chunk = args[0]
        self.pending.append((future, chunk))
        if self.deadly(chunk):
            self.broken = True
            for one, _ in self.pending:
                with contextlib.suppress(InvalidStateError):
                    one.set_exception(BrokenProcessPool("a worker died"))
        elif self.draw.random() < 0.5:
            self.answer()
        else:
            Timer(1e-3, self.answer).start()
        return future

    def answer(self):
        for one, held in self.pending:
            with contextlib.suppress(InvalidStateError):
                rows = [{"point": f"p{o}", "order": o, "seed": 0, "error": None} for o in held.orders]
                one.set_result((ChunkTime(0.01), [json.dumps(row).encode() for row in rows]))


def chunks(sizes):
    first = 0
    for size in sizes:
        orders = tuple(range(first, first + size))
        yield Chunk("v", "h", {}, orders, tuple(map(str, orders)), (0,) * size, ({},) * size)
        first += size


def driven(deadly, seed=0, sizes=(1, 5, 3, 8, 1, 2, 7)):
    draw, rows = random.Random(seed), []
    pool = WorkerPool("fragile", lambda: Fragile(deadly, draw), 2)
    RetriedChunks(pool, lambda _, lines: rows.extend(map(json.loads, lines))).run(chunks(sizes))
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_a_point_that_kills_its_worker_has_an_error_and_the_others_their_results(seed):
    deadly = set(random.Random(seed).sample(range(27), 3))
    rows = driven(lambda chunk: bool(deadly & set(chunk.orders)), seed)
    assert sorted(row["order"] for row in rows) == list(range(27))
    failed = {row["order"]: row["error"] for row in rows if row["error"]}
    assert set(failed) == deadly
    assert set(failed.values()) == {f"{MAX_TRIES} workers died while they computed only this point: "
                                    "BrokenProcessPool: a worker died"}  # fmt: skip


def test_a_point_is_computed_alone_as_often_as_its_error_says():
    alone = []

    def deadly(chunk):
        alone.extend([chunk.orders] if len(chunk) == 1 else [])
        return 0 in chunk.orders

    driven(deadly, sizes=(2,))
    assert sorted(alone) == [(0,)] * MAX_TRIES + [(1,)]


@pytest.mark.parametrize("seed", range(20))
def test_workers_that_are_killed_now_and_then_leave_no_errors(seed):
    draw, deaths = random.Random(seed), [0]

    def deadly(chunk):
        dies = deaths[0] < 8 and draw.random() < 0.3 and len(chunk) > 1
        deaths[0] += dies
        return dies

    rows = driven(deadly, seed)
    assert sorted(row["order"] for row in rows) == list(range(27))
    assert not any(row["error"] for row in rows)


def test_workers_that_never_start_are_an_error_not_rows():
    class Dead(Executor):
        def submit(self, *_):
            raise BrokenProcessPool("dead")

    with pytest.raises(BackendError, match="end as soon as they start; a script that runs a sweep needs"):
        RetriedChunks(WorkerPool("dead", Dead, 2), lambda *_: None).run(chunks([1]))


def test_an_executor_that_fails_in_its_own_way_ends_the_sweep():
    class Lost(Executor):
        def submit(self, _, /, *args):
            future = Future()
            future.set_result(1) if not args else future.set_exception(ConnectionError("scheduler\nis gone"))
            return future

    with pytest.raises(BackendError, match="the executor lost failed: ConnectionError: scheduler is gone"):
        RetriedChunks(WorkerPool("lost", Lost, 2), lambda *_: None).run(chunks([1]))


def test_an_executor_that_was_handed_in_and_broke_is_said(small, tmp_path):
    with pytest.raises(BackendError, match="the executor Fragile is broken; run again with a new one"):
        run_sweep(small, tmp_path / "r", Fragile(lambda chunk: chunk.orders[0] > 0, random.Random(0)))


def test_no_more_chunks_are_in_flight_than_workers_can_hold(monkeypatch):
    seen = []

    class Counting(ThreadPoolExecutor):
        def submit(self, fn, /, *args):
            seen.append(self._work_queue.qsize())
            return super().submit(fn, *args)

    taken = []

    def watched():
        for chunk in chunks([1] * 200):
            taken.append(chunk)
            yield chunk

    with Counting(2) as executor:
        rows = []
        monkeypatch.setattr("commsim.sweep.chunk_retries.compute_chunk", lambda _: (ChunkTime(), []))
        RetriedChunks(WorkerPool("threads", None, 2, executor), lambda *_: rows.append(len(taken))).run(watched())
    assert len(rows) == 200
    assert max(seen) <= 4
    assert rows[0] == 1  # the first alone
    assert all(n_taken <= done + 5 for done, n_taken in enumerate(rows, 1))


@pytest.mark.parametrize("n", [1, 3])
def test_threads_of_ones_own_give_the_same_table(small, tmp_path, n):
    run_sweep(small, tmp_path / "serial", "serial")
    with ThreadPoolExecutor(n) as executor:
        run_sweep(small, tmp_path / "threads", executor, limit=8 * n)
    run_sweep(small, tmp_path / "threads", "serial")
    assert read_table(tmp_path / "threads").equals(read_table(tmp_path / "serial"), check_metadata=True)


@pytest.mark.parametrize(
    ("name", "jobs", "message"),
    [
        ("slurm", None, "unknown executor 'slurm'; known: process, serial, mpi, dask, dask://HOST:PORT"),
        ("mpi", None, "mpiexec -n N python -m mpi4py.futures -m commsim sweep"),
        ("dask:8786", None, "dask or dask://HOST:PORT"),
        ("serial", 0, "jobs must be 1 to 4096"),
    ],
)
def test_executors_that_are_not_there_are_refused(name, jobs, message):
    with pytest.raises(InputError, match=message), open_pool(name, jobs):
        pass


def test_a_pool_of_processes_is_a_process_pool():
    with open_pool(None, 3) as pool:
        assert isinstance(pool.executor, ProcessPoolExecutor)
        assert pool.n_workers == 3


def is_there(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_worker_that_is_killed_is_replaced():
    with open_pool("process", 1) as pool:
        first = pool.executor.submit(os.getpid).result()
        with pytest.raises(BrokenExecutor):
            pool.executor.submit(os.kill, first, signal.SIGKILL).result()
        pool.renew()
        assert pool.executor.submit(os.getpid).result() not in (first, os.getpid())


def test_a_name_of_earlier_versions_is_what_stands_for_it_now(small, tmp_path, capfd):
    with open_pool("loky", 1) as pool:
        assert pool.name == "process"
    done = run_sweep(small, tmp_path / "r", "loky", jobs=1, limit=1)
    assert done.remarks == ("--executor loky is now process, which replaces workers that die too",)
    assert capfd.readouterr() == ("", "")


OWNER = """
import os, sys
from commsim.sweep.executors import open_pool
with open_pool("process", 1) as pool:
    print(pool.executor.submit(os.getpid).result(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_with_a_driver_that_is_killed():
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        worker = int(owner.stdout.readline())
        assert is_there(worker)
        owner.kill()
    until = time.monotonic() + 60
    while is_there(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_there(worker)


def dies_in_the_middle_of_its_answer():
    """Begin an answer as a worker does, and be killed."""
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        frame = frame.f_back
    os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 1000) + b"the beginning")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_in_the_middle_of_its_answer_is_noticed():
    with open_pool("process", 2) as pool:
        lost = pool.executor.submit(dies_in_the_middle_of_its_answer)
        until = time.monotonic() + 60
        while not lost.done() and time.monotonic() < until:
            pool.end_if_cut_off()
            time.sleep(0.1)
        assert isinstance(lost.exception(timeout=0), BrokenExecutor)
        pool.renew()
        assert pool.executor.submit(os.getpid).result() > 0
