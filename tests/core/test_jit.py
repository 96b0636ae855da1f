import copy
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from commsim.core import jit
from commsim.core.compiling import first_commands
from commsim.core.compiling.kernel_cache import KernelCache
from commsim.core.jit import Kernel, compile_all, expected_times, expected_work, kernel, njit_norefcount


@njit_norefcount
def add_one(a, i):
    a[i] += 1


@kernel
def add_ones(a):
    for i in range(a.shape[0]):
        add_one(a, i)
    return a.sum()


@kernel
def reciprocal(x):
    return 1.0 / x[0]


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.setattr(Kernel, "steps_left", 100)


def test_little_work_is_interpreted_and_much_is_not(steps, monkeypatch):
    calls = []
    interpreted = Kernel(lambda a: calls.append(a), {})
    interpreted.__dict__["compiled"] = lambda a: calls.append(-a)
    with expected_work(60):
        interpreted(1)
    with expected_work(60):  # together more than there is left
        interpreted(2)
    interpreted(3)
    with expected_work(40):
        interpreted(4)
        with expected_work(1):
            interpreted(5)
    assert calls == [1, -2, -3, 4, -5]


def test_work_that_counts_for_much_inside_of_little_is_compiled(steps):
    calls = []
    interpreted = Kernel(lambda a: calls.append(a), {})
    interpreted.__dict__["compiled"] = lambda a: calls.append(-a)
    with expected_work(1):
        with expected_work(1e9):
            interpreted(1)
        interpreted(2)
    assert calls == [-1, 2]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Kernel, "steps_left", 0)
    monkeypatch.setattr(Kernel, "patience", 100)
    monkeypatch.setattr(Kernel, "most_new", jit.MAX_NEW)  # another test may have had all compiled
    monkeypatch.setattr(Kernel, "most_untried", 150)
    for looked_up in (first_commands._known, first_commands._counted):
        looked_up.cache_clear()
    yield tmp_path
    for looked_up in (first_commands._known, first_commands._counted):
        looked_up.cache_clear()


def new_kernel(calls):
    made = Kernel(lambda a: calls.append(a), {})
    made.__dict__["compiled"] = lambda a: calls.append(-a)
    made.py_func.__qualname__ = "made"
    return made


@pytest.fixture
def clock(monkeypatch):
    """A clock on which an interpreted kernel takes as many steps as its argument says."""
    now = [0.0]
    monkeypatch.setattr(jit.time, "thread_time", lambda: now[0])
    return now


def timed_kernel(calls, clock):
    def run(steps):
        calls.append(steps)
        clock[0] += max(steps, 0) * jit.STEP

    made = Kernel(run, {})
    made.__dict__["compiled"] = lambda steps: calls.append(-steps)
    made.py_func.__qualname__ = "made"
    return made


def test_a_kernel_that_was_never_compiled_here_is_interpreted_for_as_long_as_that_takes(empty, monkeypatch, clock):
    monkeypatch.setattr(Kernel, "is_new", True)
    calls = []
    made = timed_kernel(calls, clock)
    with expected_work(60):
        made(60)
    with expected_work(60):  # together longer than its compilation
        made(60)
    with expected_work(40, first=True):
        made(20)
        made(20)  # of the same work
    made(1)
    assert calls == [60, -60, 20, 20, -1]


def test_a_new_kernel_waits_no_less_long_since_others_took_their_time(empty, monkeypatch, clock):
    monkeypatch.setattr(Kernel, "is_new", True)
    calls = []
    large, small = timed_kernel(calls, clock), timed_kernel(calls, clock)
    with expected_work(90):
        large(90)
        small(2)  # a small part of what is declared
    with expected_work(90):
        large(90)
        small(3)
    assert calls == [90, 2, -90, 3]


def test_a_new_kernel_that_would_be_compiled_at_a_later_time_is_so_at_the_first(empty, monkeypatch, clock):
    monkeypatch.setattr(Kernel, "is_new", True)
    calls = []
    large, small = timed_kernel(calls, clock), timed_kernel(calls, clock)
    for n in (1, 8):
        with expected_times(n), expected_work(20):
            large(20)
            small(1)
    assert calls == [20, 1, -20, 1]


def test_work_that_is_declared_too_large_is_not_tried(empty, monkeypatch, clock):
    monkeypatch.setattr(Kernel, "is_new", True)
    calls = []
    made, other = timed_kernel(calls, clock), timed_kernel(calls, clock)
    with expected_work(151):
        made(1)
    with expected_work(150):  # it may do little of the work
        other(1)
    assert calls == [-1, 1]


def test_the_longer_the_code_the_later_it_is_compiled():
    short, long = Kernel(add_one.py_func, {}), Kernel(add_ones.py_func, {})
    steps = jit.STEPS_PER_KERNEL + jit.STEPS_PER_BYTE * len(add_one.py_func.__code__.co_code)
    assert short.patience == steps
    with_add_one = len(add_ones.py_func.__code__.co_code) + len(add_one.py_func.__code__.co_code)
    assert long.patience == jit.STEPS_PER_KERNEL + jit.STEPS_PER_BYTE * with_add_one


def test_a_kernel_that_is_compiled_in_this_process_is_not_interpreted_as_a_new_one(empty, monkeypatch):
    monkeypatch.setattr(Kernel, "is_new", True)
    compiles = SimpleNamespace(call=lambda function, _: lambda a: function(-a))
    monkeypatch.setattr(jit, "_pipelines", lambda: compiles)
    calls = []
    made = Kernel(lambda a: calls.append(a), {})
    with expected_work(1):
        made(1)
    made(2)
    with expected_work(1):
        made(3)
    assert calls == [1, -2, -3]


def test_a_kernel_whose_machine_code_is_kept_is_not_new(empty):
    assert Kernel(reciprocal.py_func, {}).is_new
    assert (empty / first_commands.COUNT).read_bytes() == b"."
    first_commands._known.cache_clear()
    (empty / f"{KernelCache(reciprocal.py_func, {}).name}{'0' * 40}.nbc").touch()
    assert not Kernel(reciprocal.py_func, {}).is_new


def test_only_the_first_commands_interpret_more(empty):
    for _ in range(first_commands.MOST):
        first_commands._counted.cache_clear()
        assert Kernel(reciprocal.py_func, {}).is_new
    first_commands._counted.cache_clear()
    assert not Kernel(reciprocal.py_func, {}).is_new
    assert len((empty / first_commands.COUNT).read_bytes()) == first_commands.MOST


def test_what_a_new_kernel_calls_is_interpreted_with_it(empty, monkeypatch):
    monkeypatch.setattr(Kernel, "is_new", property(lambda self: self.py_func.__name__ == "outer"))
    calls = []
    within = new_kernel(calls)

    def outer(a):
        within(a)

    with expected_work(1, first=True):
        Kernel(outer, {})(1)
        within(2)
    assert calls == [1, -2]


def test_what_may_wait_for_the_compiler_says_nothing_within_little_work(steps):
    calls = []
    made = new_kernel(calls)
    with expected_work(1), expected_work(1e9, first=True):
        made(1)
    assert calls == [1]


FIRST = """
import sys
from commsim.cli import main
for line in sys.argv[1:]:
    main(line.split())
print("numba" in sys.modules)
"""
LINES = [
    "switch simulate --workers 4 --size 16KiB --json -",
    "run ring_all_reduce --topology star:n_hosts=4 --engine packet -b 16K -e 16K --json -",
    "advise --topology star:n_hosts=4 --size 1MiB --json -",
]


@pytest.mark.parametrize("line", LINES)
def test_first_commands_on_an_empty_cache_do_not_wait_for_the_compiler(line, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    out = subprocess.run(
        [sys.executable, "-c", FIRST, line], capture_output=True, text=True, check=True, env=environment
    )
    assert out.stdout.splitlines()[-1] == "False"
    assert "compiling" not in out.stderr


def test_what_runs_many_cases_compiles_all(steps, monkeypatch):
    monkeypatch.setattr(Kernel, "most_new", 100)
    monkeypatch.setattr(Kernel, "most_untried", 100)
    monkeypatch.setattr(Kernel, "is_new", True)
    compile_all()
    calls = []
    made = new_kernel(calls)
    with expected_work(1):
        made(1)
    with expected_work(1, first=True):
        made(2)
    assert calls == [-1, -2]


def test_a_kernel_calls_others_whether_it_is_compiled_or_not(steps):
    with expected_work(10):
        assert add_ones(np.zeros(4)) == 4.0
    assert add_ones(np.zeros(4)) == 4.0


def test_division_by_zero_is_infinite_either_way(steps):
    with expected_work(1):
        assert reciprocal(np.zeros(1)) == np.inf
    assert reciprocal(np.zeros(1)) == np.inf


def test_a_kernel_is_pickled_and_copied_by_its_name():
    assert copy.copy(jit.kernel) is jit.kernel
    from commsim.routing.routing_kernel import walk_routes

    assert pickle.loads(pickle.dumps(walk_routes)) is walk_routes
    assert copy.deepcopy(walk_routes) is walk_routes


PROGRAM = """
import sys
import commsim as cs
star = "star:n_hosts={},bandwidth=100Gbps,latency=1us"
times = [cs.predict("ring_all_reduce", star.format(n), 2**20).time.hex() for n in (8, 1024)]
print("numba" in sys.modules, *times)
from commsim.core.jit import compile_all
compile_all()
print("numba" in sys.modules, *(cs.predict("ring_all_reduce", star.format(n), 2**20).time.hex() for n in (8, 1024)))
"""


def test_a_short_prediction_needs_no_compiler_and_gives_the_same_numbers():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    first, second = (line.split() for line in out.splitlines())
    assert first[1:] == second[1:]
    assert first[0] == "False"
