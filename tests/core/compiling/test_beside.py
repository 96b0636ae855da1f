"""A second process compiles from the end what the first compiles from the begin, and ends with it."""

import importlib
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from commsim.core.compiling import beside, kernel_cache, notices
from commsim.core.jit import _is_disabled

pytestmark = pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")
# Tables as those of the engines: a row, a table within another, and kernels that call each other.
KERNELS = """
    from __future__ import annotations
    from typing import NamedTuple
    import numpy as np
    from commsim.core.jit import njit_norefcount
    Row = np.void

    class Inner(NamedTuple):
        weight: np.ndarray

    class Tables(NamedTuple):
        item: np.ndarray
        inner: Inner

    @njit_norefcount
    def first(tables: Tables, i: int, x: float) -> float:
        return tables.item[i]["x"] * x

    @njit_norefcount
    def of_row(item: Row, inner: Inner) -> float:
        return item["x"] + inner.weight[0]

    @njit_norefcount
    def last(tables: Tables, i: int) -> float:
        return of_row(tables.item[i], tables.inner)

    @njit_norefcount
    def whole(tables: Tables, n: int) -> float:
        found = 0.0
        for i in range(n):
            found += first(tables, i, 0.5)
            found += last(tables, i)
        return found

    @njit_norefcount
    def before(x: float) -> float:
        return x + 1.0

    def compile_before() -> None:
        before(1.0)

    def compile_whole() -> None:
        whole(Tables(np.array([(1.0,)], [("x", float)]), Inner(np.array([3.0]))), 1)
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A module of kernels that another process finds, an empty cache, and room for that process."""
    (tmp_path / "kernels_beside").mkdir()
    (tmp_path / "kernels_beside" / "kernels.py").write_text(textwrap.dedent(KERNELS))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(beside, "MANY", 3)
    monkeypatch.setattr(beside.Kernel, "needed_soon", "")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    for name in notices.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield importlib.import_module("kernels_beside.kernels")
    for name in ("kernels_beside", "kernels_beside.kernels"):
        del sys.modules[name]
    for function in list(beside._helpers):
        beside.end_beside(function)


def tables(kernels):
    return kernels.Tables(np.array([(1.0,), (2.0,)], [("x", float)]), kernels.Inner(np.array([3.0])))


def test_the_last_called_comes_first_and_each_after_what_it_calls(kernels):
    names = [function.__name__ for function in beside.from_end(kernels.whole.py_func)]
    assert names == ["of_row", "last", "first"]


def test_the_first_process_reads_what_the_second_has_compiled(kernels, monkeypatch):
    asked, wait = [], beside.start_beside
    load = kernel_cache.KernelCache.load_overload

    def loading(self, signature, context):
        found = load(self, signature, context)
        if "kernels_beside" in self.name:
            asked.append((self.function.__name__, found is not None))
        return found

    def start_and_wait(function, signature):
        wait(function, signature)
        assert beside._helpers[function].wait(timeout=300) == 0

    monkeypatch.setattr(kernel_cache.KernelCache, "load_overload", loading)
    monkeypatch.setattr(beside, "start_beside", start_and_wait)
    assert kernels.whole(tables(kernels), 2) == 1.5 + 9.0
    assert asked == [("whole", False), ("first", True), ("last", True)]  # which has `of_row` within it
    assert not beside._helpers


def test_a_second_process_that_is_done_with_a_large_kernel_compiles_what_comes_after(kernels, monkeypatch):
    """`switch simulate` compiled what checks its sums, a second of work, while the second process had nothing to do."""
    wait = beside.start_beside

    def start_and_wait(function, signature):
        wait(function, signature)
        assert beside._helpers[function].wait(timeout=300) == 0

    monkeypatch.setattr(beside, "start_beside", start_and_wait)
    monkeypatch.setattr(beside.Kernel, "needed_soon", "kernels_beside.kernels:compile_before")
    kernels.whole(tables(kernels), 2)
    assert beside.Kernel.needed_soon == ""
    assert kernels.before(1.0) == 2.0
    assert sum(kernels.before.compiled.stats.cache_hits.values()) == 1


def test_a_second_process_compiles_an_engine_while_the_first_compiles_what_comes_before(kernels, monkeypatch):
    """`run nccl` with a dead cable compiled routes, dependencies and the event engine one after the other."""
    place, asked = "kernels_beside.kernels:compile_whole", []
    load, start = kernel_cache.KernelCache.load_overload, beside._start

    def loading(self, signature, context):
        found = load(self, signature, context)
        if "kernels_beside" in self.name:
            asked.append((self.function.__name__, found is not None))
        return found

    def start_and_wait(*args):
        start(*args)
        assert beside._helpers[place].wait(timeout=300) == 0

    monkeypatch.setattr(kernel_cache.KernelCache, "load_overload", loading)
    monkeypatch.setattr(beside, "_start", start_and_wait)
    monkeypatch.setattr(beside, "MANY", 100)
    monkeypatch.setattr(beside.Kernel, "needed_soon", place)
    assert kernels.before(1.0) == 2.0
    assert kernels.whole(tables(kernels), 2) == 1.5 + 9.0
    assert asked == [("before", False), ("whole", True)]
    assert list(beside._helpers) == [place]
    beside.end_beside(place)


@pytest.mark.parametrize("why", ["one processor", "rank", "unwritable", "few kernels", "frozen"])
def test_no_second_process_where_it_would_not_help(kernels, monkeypatch, why, tmp_path):
    assert beside._has_room()
    monkeypatch.setattr(beside.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    if why == "one processor":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1}, raising=False)
    elif why == "rank":
        monkeypatch.setenv("PMI_RANK", "0")
    elif why == "unwritable":
        (tmp_path / "file").touch()
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    elif why == "few kernels":
        monkeypatch.setattr(beside, "MANY", 4)
    else:
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    beside.start_beside(kernels.whole.py_func, ())
    assert not beside._helpers
    assert beside._has_room() == (why == "few kernels")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no list of processes")
def test_the_second_process_ends_when_the_first_is_killed(kernels, tmp_path):
    (tmp_path / "kernels_beside" / "slow.py").write_text(
        "import time, pathlib, os\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n"
    )
    program = f"""if True:
        import sys, time
        sys.path.insert(0, {str(tmp_path)!r})
        from commsim.core.compiling import beside
        beside.MANY, beside._has_room = 0, lambda: True
        def whole(): pass
        whole.__module__ = "kernels_beside.slow"
        beside.start_beside(whole, ())
        time.sleep(600)"""
    first = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    pid = tmp_path / "pid"
    try:
        until(lambda: pid.exists() and pid.read_text())
    finally:
        first.kill()
        first.wait()
    until(lambda: not is_there(int(pid.read_text())))


def until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_there(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
        return state.rpartition(")")[2].split()[0] != "Z"  # nobody may be there to take note of its end
    except OSError:
        return False
