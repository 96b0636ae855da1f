"""Damaged stores of our own making: what is read is what was written, or the file is refused by name on one line."""

import contextlib
import random
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from fuzzing import ATTACKS, SEED, TIMES, in_time, mutated
from place_service import row

from commsim.cli import main
from commsim.core.compiling import notices
from commsim.core.compiling.pipelines import pipelines
from commsim.core.errors import InputError
from commsim.core.files.sweep_store import STORE
from commsim.core.jit import KERNEL, Kernel
from commsim.placement.service import job_store
from commsim.placement.service.job_store import JobStore
from commsim.sweep.table import read_table

SWEEP = """
[topology]
name = "star"
n_hosts = 8
bandwidth = ["100Gbps", "400Gbps"]
[collective]
name = ["ring_all_reduce", "halving_doubling_all_reduce"]
ranks = [4, 8]
size = { from = "1KiB", to = "1MiB", scale = "log", steps = 9 }
[engine]
name = "alpha-beta"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A sweep's folder."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "sweep.toml").write_text(SWEEP)
    words = ["sweep", "run", str(folder / "sweep.toml"), "-o", str(folder / "r"), "--executor", "serial"]
    assert main(words) in (0, None)
    return folder / "r"


def equal_or_refused(read, wanted, path):
    """Return whether what is read is what was written; if the file is refused, by its name, nothing is wrong."""
    try:
        with in_time(path):
            return read() == wanted
    except InputError as error:
        return str(path) in str(error)


def damages(area, data, times):
    """Yield damaged copies of some bytes."""
    rng = random.Random(f"{SEED} {area}")
    for _ in range(times * TIMES):
        ATTACKS["damaged stores"] += 1
        yield mutated(rng, data)


def test_results_of_a_sweep_are_read_as_written_or_refused(results):
    path, wanted = results / STORE, read_table(results).to_pylist()
    right = path.read_bytes()
    for damaged in damages("sweep", right, 40):
        path.write_bytes(damaged)
        assert equal_or_refused(lambda: read_table(results).to_pylist(), wanted, results)
    path.write_bytes(right)
    assert read_table(results).to_pylist() == wanted


def jobs_in(path):
    with contextlib.closing(JobStore(path)) as store:
        return store.jobs()


def test_jobs_of_the_placement_service_are_read_as_written_or_refused(tmp_path):
    path = tmp_path / "jobs"
    with contextlib.closing(JobStore(path)) as store:
        store.put([row(f"job{i}", 2, placement=["h0", "h1"]) for i in range(40)], 1)
    wanted = jobs_in(path)
    for damaged in damages("jobs", path.read_bytes(), 40):
        path.write_bytes(damaged or b"0")  # an empty file is a new store
        assert equal_or_refused(lambda: jobs_in(path), wanted, path)
        Path(f"{path}-journal").unlink(missing_ok=True)


def added(a):
    return 3.0 * a.sum()


def test_compiled_kernels_answer_as_before_whatever_stands_in_their_file(tmp_path, monkeypatch, capfd):
    pipelines()  # first, since it compiles two kernels of its own
    monkeypatch.setattr(notices, "LONG", 0.0)  # a line is printed at once
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Kernel, "needed_soon", "")  # else another process may write the kernels of an engine there
    assert Kernel(added, KERNEL).compiled(np.arange(4.0)) == 18.0
    (path,) = tmp_path.iterdir()
    for damaged in damages("kernels", path.read_bytes(), 5):
        path.write_bytes(damaged)
        notices._told.clear()
        capfd.readouterr()
        assert Kernel(added, KERNEL).compiled(np.arange(4.0)) == 18.0
        said = capfd.readouterr().err.splitlines()
        assert len(said) <= 1
        assert not said or f"{path} cannot be used" in said[0]


def test_rows_without_their_values_are_refused(results, tmp_path):
    """A page that rots may hold NULL where no statement could have put it."""
    (tmp_path / STORE).write_bytes((results / STORE).read_bytes())
    sound = "'text TEXT NOT NULL'"
    for statement in (f"replace(sql, {sound}, 'text TEXT')", "NULL", f"replace(sql, 'text TEXT', {sound})"):
        with contextlib.closing(sqlite3.connect(tmp_path / STORE, isolation_level=None)) as db:
            db.execute("PRAGMA writable_schema = ON")
            where = "description SET text" if statement == "NULL" else "sqlite_master SET sql"
            db.execute(f"UPDATE {where} = {statement}" + ("" if statement == "NULL" else " WHERE name = 'description'"))
    with pytest.raises(InputError, match="description of the sweep is damaged"):
        read_table(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs", isolation_level=None)) as db:
        db.execute(f"PRAGMA application_id = {job_store._APPLICATION}")
        db.execute("CREATE TABLE jobs (name, job, crc)")
        db.execute("INSERT INTO jobs VALUES (NULL, NULL, NULL)")
    with contextlib.closing(JobStore(tmp_path / "jobs")) as store, pytest.raises(InputError, match="'None' is damaged"):
        store.jobs()
