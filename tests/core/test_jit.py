import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from commsim.core import jit
from commsim.core.jit import Kernel, compile_all, expected_work, kernel, njit_norefcount


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


def test_what_runs_many_cases_compiles_all(steps):
    compile_all()
    with expected_work(0):
        assert not jit._interpreting.get() or Kernel.steps_left == 0
    with expected_work(1):
        assert not jit._interpreting.get()


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
