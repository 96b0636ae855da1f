"""Plain njit where Numba's private classes are not as ours expect: one line, and the same answers."""

import importlib
import pkgutil

import numpy as np
import pytest
from numba import types
from numba.core import ir

from commsim.core import compiling
from commsim.core.compiling import faster_numba, kernel_cache, kernel_compiler, notices
from commsim.core.compiling.pipelines import PLAIN, pipelines
from commsim.core.jit import KERNEL, Kernel, _is_disabled

pytestmark = pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """Decide again, with an empty cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Kernel, "needed_soon", "")  # else another process may write the kernels of an engine there
    monkeypatch.setattr(notices, "_told", set())
    monkeypatch.setattr(notices, "LONG", 0.0)
    pipelines.cache_clear()
    yield monkeypatch
    pipelines.cache_clear()


def missing(patch):
    patch.delattr(kernel_compiler, "LinkedCompiler")


def other_arguments(patch):
    patch.setattr(kernel_compiler.Linked, "_optimize_functions", lambda _: None)  # as in Numba 0.61


def no_passes(patch):
    patch.setattr(kernel_compiler, "_passes", lambda *_: None)


def another_answer(patch):
    patch.setattr(kernel_compiler, "widened", lambda kinds: (*kinds[:-1], types.float32))


def a_quicker_function_is_wrong(patch):
    (owner, name, _), *others = faster_numba._OURS
    patch.setattr(faster_numba, "_OURS", ((owner, name, lambda *_: []), *others))


def share(i, x):
    if x < 0:
        raise ValueError("no share of ", x)
    return x / (i + 3)


inner = Kernel(share, KERNEL)


def summed(a, by):
    found = 0.0
    for i in range(a.shape[0]):
        found += inner(by[i], a[i])
    return found


VALUES, BY = np.random.default_rng(1).random(1000), np.arange(1000, dtype=np.int32)


def answers(patch):
    """Call both kernels as a new process would; return their values, bit by bit."""
    within, outer = Kernel(share, KERNEL), Kernel(summed, KERNEL)
    patch.setitem(summed.__globals__, "inner", within)
    with pytest.raises(ValueError, match="no share") as raised:
        outer(-VALUES, BY)
    assert raised.value.args == ("no share of ", -VALUES[0])
    return outer(VALUES, BY).hex(), within(BY[2], VALUES[2]).hex(), within(2.5, VALUES[2]).hex()


@pytest.mark.sample(2)
@pytest.mark.parametrize("change", [missing, other_arguments, no_passes, another_answer, a_quicker_function_is_wrong])
def test_plain_njit_takes_over_with_one_line_and_the_same_answers(anew, capfd, change):
    wanted = answers(anew)
    assert pipelines() is not PLAIN
    pipelines.cache_clear()
    for path in kernel_cache.cache_folder().iterdir():
        path.unlink()
    assert "compiling kernels, once" in capfd.readouterr().err
    change(anew)
    assert answers(anew) == wanted
    assert pipelines() is PLAIN
    assert ir.Inst._rec_list_vars is faster_numba._USUAL[0]
    (line,) = capfd.readouterr().err.splitlines()
    assert "is not as expected" in line
    assert line.endswith("kernels are compiled by plain njit, which takes twice as long")


def test_what_plain_njit_compiled_comes_from_the_disk(anew):
    missing(anew)
    first = answers(anew)
    assert answers(anew) == first
    again = Kernel(summed, KERNEL)
    again(VALUES, BY)
    assert sum(again.stats.cache_hits.values()) == 1


def test_our_compilers_are_taken_with_the_numba_that_is_installed(anew, capfd):
    assert pipelines().called == {"pipeline_class": kernel_compiler.CalledCompiler}
    assert capfd.readouterr().err == ""


def test_every_module_that_compiles_is_imported():
    """One that was not made every command fall back to plain njit, which takes twice as long."""
    for module in pkgutil.iter_modules(compiling.__path__, f"{compiling.__name__}."):
        importlib.import_module(module.name)
