"""Kernels within kernels are linked: no machine code of their own, and the same answers, also from the disk."""

import re

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary

from commsim.core.compiling import kernel_libraries, notices
from commsim.core.compiling.kernel_libraries import Called, code_of, reached
from commsim.core.compiling.pipelines import PLAIN, pipelines
from commsim.core.jit import BORROWING, KERNEL, Kernel, _is_disabled, long_loops

pytestmark = pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")
ELF = b"\x7fELF"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pipelines()  # first, since it compiles two kernels of its own
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Kernel, "needed_soon", "")  # else another process may write the kernels of an engine there
    monkeypatch.setattr(notices, "_told", {"once"})
    return tmp_path


def square(x):
    if x < 0:
        raise ValueError("no root of ", x)
    return x * x


inner = Kernel(square, KERNEL)


def total(a):
    found = 0.0
    for x in a:
        found += inner(x)
    return found


def anew(monkeypatch):
    """Make both kernels as a new process has them."""
    fresh = Kernel(square, KERNEL)
    monkeypatch.setitem(total.__globals__, "inner", fresh)
    return fresh, Kernel(total, KERNEL)


def test_only_the_kernel_that_python_calls_has_machine_code(folder, monkeypatch):
    within, outer = anew(monkeypatch)
    assert outer(np.arange(4.0)) == 14.0
    has_code = {path.name.startswith("linked."): ELF in path.read_bytes() for path in folder.iterdir()}
    assert has_code == {True: False, False: True}
    assert not within.compiled.overloads


def test_a_kernel_can_be_linked_and_called(folder, monkeypatch):
    within, outer = anew(monkeypatch)
    assert outer(np.arange(4.0)) == within(2.0) + 10.0
    assert len(list(folder.iterdir())) == 3


def add(i, x):
    return i + x


joined = Kernel(add, KERNEL)


def mixed(small, large):
    """Call another kernel with two kinds of integers, and with constants."""
    return joined(small[0], 1.5) + joined(large[0], 1.5) + joined(1, 1.5) + joined(2, 1.5) + joined(1.0, 1.5)


def test_a_linked_kernel_is_compiled_once_for_all_signed_integers(folder):
    assert Kernel(mixed, KERNEL)(np.full(1, -7, np.int32), np.full(1, 2**40)) == 2**40 - 3 + 5 * 1.5
    assert {str(kinds[0]) for kinds in joined.linked.overloads} == {"int64", "float64"}


def test_unsigned_integers_are_compiled_as_they_are(folder):
    def wrap(x):
        return x * x

    within = Kernel(wrap, KERNEL)

    def outer(a):
        return within(a[0])

    assert Kernel(outer, KERNEL)(np.full(1, 2**63 + 1, np.uint64)) == 1
    assert [str(kinds[0]) for kinds in within.linked.overloads] == ["uint64"]


def test_what_is_linked_comes_from_the_disk(folder, monkeypatch):
    _, outer = anew(monkeypatch)
    assert outer(np.arange(4.0)) == 14.0
    for path in folder.iterdir():
        if not path.name.startswith("linked."):
            path.unlink()
    within, outer = anew(monkeypatch)
    assert outer(np.arange(5.0)) == 30.0
    assert sum(within.linked.stats.cache_hits.values()) == 1
    assert sum(outer.compiled.stats.cache_misses.values()) == 1


def middle(x):
    return inner(x) + inner(x + 1)


def sum_of_middle(a):
    found = 0.0
    for x in a:
        found += between(x)
    return found


between = Kernel(middle, KERNEL)


def test_what_is_linked_holds_its_own_code_and_each_kernel_below_it_once(folder, monkeypatch):
    """Two levels from the disk; in memory the one between is without the code of the innermost."""
    monkeypatch.setitem(total.__globals__, "inner", Kernel(square, KERNEL))
    for _ in range(2):
        monkeypatch.setitem(total.__globals__, "between", Kernel(middle, KERNEL))
        outer = Kernel(sum_of_middle, KERNEL)
        assert outer(np.arange(3.0)) == 19.0
        (compiled,) = total.__globals__["between"].linked.overloads.values()
        libraries = reached((compiled.library,))
        defined = [one.name for each in libraries for one in code_of(each).functions if not one.is_declaration]
        assert sum("middle" in name for name in defined) == sum("square" in name for name in defined) == 1
        assert not any("square" in one.name for one in compiled.library.own_code.functions if not one.is_declaration)
        for path in folder.iterdir():
            if not path.name.startswith("linked.") or "square" in path.name:  # all that is left is the one between
                path.unlink()
    assert sum(total.__globals__["between"].linked.stats.cache_hits.values()) == 1


def test_a_linked_kernel_raises_with_its_values(folder, monkeypatch):
    for _ in range(2):  # compiled, and read
        _, outer = anew(monkeypatch)
        with pytest.raises(ValueError, match="no root") as raised:
            outer(np.array([1.0, -3.0]))
        assert raised.value.args == ("no root of ", -3.0)


def test_functions_of_numpy_within_a_kernel_are_linked_only_and_serve_plain_njit_too(folder, monkeypatch):
    made = []
    finalize = JITCodeLibrary._finalize_specific

    def noting(self):
        made.append((type(self).__name__, self.name))
        finalize(self)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", noting)

    def largest(a):
        b = np.full(a.shape[0], 2.5)
        for i in range(a.shape[0]):
            b[i] = max(b[i], a[i])
        return b[0] + b[4]

    values = np.arange(5.0)
    assert Kernel(largest, KERNEL)(values) == largest(values)
    assert "Called" in {kind for kind, _ in made}
    assert not [name for kind, name in made if kind != "Called" and "<locals>" in name]  # such as ol_max.<locals>.impl
    assert numba.njit(**KERNEL)(largest)(values) == largest(values)


def test_what_numba_calls_within_a_function_of_numpy_is_linked_only(folder, monkeypatch):
    made = []
    finalize = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda self: (made.append(type(self)), finalize(self)))

    def sorted_by(a):
        return np.argsort(a, kind="mergesort")

    values = np.array([3.0, 1.0, 2.0, 1.0])
    assert list(Kernel(sorted_by, KERNEL)(values)) == [1, 3, 2, 0]
    assert made == [Called]
    assert list(numba.njit(sorted_by)(values)) == [1, 3, 2, 0]


def twice(x):
    return 2 * x


def add_to_each(a, by):
    for i in range(len(a)):
        a[i] += by


@pytest.mark.parametrize("options", [BORROWING, KERNEL])
def test_only_long_loops_are_unrolled_and_vectorized(folder, options):
    code, values = {}, {}
    for name, one in (("usual", Kernel(add_to_each, options)), ("long", long_loops(Kernel(add_to_each, options)))):
        values[name] = np.arange(100.0)
        one(values[name], 0.3)
        (code[name],) = one.inspect_llvm().values()
    assert values["usual"].tobytes() == values["long"].tobytes()
    assert " x double>" in code["long"]
    assert " x double>" not in code["usual"]
    assert code["usual"].count("fadd") == 1 < code["long"].count("fadd")


@pytest.mark.parametrize(("make", "marks"), [(Kernel, True), (long_loops, True), (Kernel, False)])
def test_a_kernel_whose_functions_are_marked_is_one_function_without_passes_over_its_module(
    folder, monkeypatch, make, marks
):
    """With marked functions inlined LLVM has nothing to decide; short ones, as an item of a tuple, are inlined too.

    llvmlite before 0.48, which Numba 0.62 to 0.64 have, marks what a function returns: then LLVM decides.
    """
    if not marks:
        monkeypatch.setattr(llvm.ValueRef, "add_function_attribute", lambda *_: None)
    monkeypatch.setattr(kernel_libraries, "_marks_functions", kernel_libraries._marks_functions.__wrapped__)
    orders, usual = [], llvm.PassBuilder.getModulePassManager
    monkeypatch.setattr(llvm.PassBuilder, "getModulePassManager", lambda self: (orders.append(1), usual(self))[1])
    pair, within = (3.0, 7.0), Kernel(twice, BORROWING)

    def add_items(a):
        for i in range(len(a)):
            a[i] += pair[i % 2] * within(a[i])

    outer = Kernel(add_items, BORROWING)
    if make is long_loops:
        long_loops(outer)
    values = np.arange(5.0)
    outer(values)
    assert list(values) == [0.0, 15.0, 14.0, 45.0, 28.0]
    assert len(orders) == (make is long_loops or not kernel_libraries._marks_functions())
    assert marks or orders
    (code,) = outer.inspect_llvm().values()
    defined = re.findall(r'^define .*@"?([\w.$]+)', code, re.MULTILINE)
    assert len([name for name in defined if "add_items" in name]) == 2, defined  # itself, and what Python calls
    assert len(defined) == 2, defined


def test_plain_njit_does_not_get_our_own_option(folder, monkeypatch):
    monkeypatch.setattr("commsim.core.jit._pipelines", lambda: PLAIN)
    values = np.arange(4.0)
    long_loops(Kernel(add_to_each, KERNEL))(values, 1.0)
    assert list(values) == [1.0, 2.0, 3.0, 4.0]
