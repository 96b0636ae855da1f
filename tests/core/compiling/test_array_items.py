"""Items of arrays are read and written where NumPy has them, in fewer instructions than Numba's."""

import importlib
import pkgutil

import numpy as np
import pytest
from front_indices import looked_at

from commsim.core.compiling import notices
from commsim.core.compiling.pipelines import FROM_FRONT, pipelines
from commsim.core.jit import BORROWING, KERNEL, Kernel, _is_disabled

pytestmark = pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")
ROW = np.dtype([("time", np.float64), ("flow", np.int32)], align=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    pipelines()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(notices, "_told", {"once"})


def exchange(a, i, j):
    """Read and write by integers, from the front and the end."""
    a[i], a[j] = a[j], a[i]
    a[-1] += 2 * a[0]


def in_table(a, i, j):
    a[i, j], a[-1, j] = a[j, -1], a[i, j]
    a[1][j] = a[i][0]


def of_rows(a, i, j):
    a[i]["time"], a["flow"][j] = a["time"][j], a[i]["flow"] + 7
    a[j] = a[i]


@pytest.mark.parametrize("options", [BORROWING, KERNEL])
@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint32])
@pytest.mark.parametrize("values", [np.arange(9), np.arange(18, dtype=np.int16)[::2], np.arange(9.0)[::-1]])
def test_items_of_a_row(options, index, values):
    mine, theirs = values.copy() if values.flags.c_contiguous else np.repeat(values, 2)[::2], values.copy()
    for i, j in ((1, 3), (8, 0), *(((-2, 4), (-9, -1)) if index is not np.uint32 else ())):
        Kernel(exchange, options)(mine, index(i), index(j))
        exchange(theirs, i, j)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("order", ["C", "F"])
def test_items_of_a_table(order):
    mine = np.asarray(np.arange(20.0).reshape(5, 4), order=order)
    theirs = mine.copy()
    for i, j in ((1, 3), (4, 0), (-2, -4)):
        Kernel(in_table, KERNEL)(mine, i, j)
        in_table(theirs, i, j)
        np.testing.assert_array_equal(mine, theirs)


def test_rows_with_names():
    mine = np.zeros(4, ROW)
    mine["time"], mine["flow"] = np.arange(4) + 0.5, np.arange(4) * 3
    theirs = mine.copy()
    Kernel(of_rows, BORROWING)(mine, 1, -1)
    of_rows(theirs, 1, -1)
    np.testing.assert_array_equal(mine, theirs)


def test_a_part_is_still_a_view():
    def halve(a):
        b = a[2:]
        b[0] = 0.5
        return a[1:3].sum() + b.shape[0]

    values = np.arange(4.0)
    assert Kernel(halve, KERNEL)(values) == 3.5
    assert list(values) == [0.0, 1.0, 0.5, 3.0]


def test_an_index_out_of_bounds_is_found_where_numba_is_asked_to_look(monkeypatch):
    checked = Kernel(exchange, {**KERNEL, "boundscheck": True})
    with pytest.raises(IndexError):
        checked(np.arange(4), 1, 4)


def test_an_item_takes_few_instructions():
    def pick(a, i):
        return a[i]

    from numba.core import codegen

    sizes = []
    add = codegen.CPUCodeLibrary.add_ir_module
    patch = pytest.MonkeyPatch()
    patch.setattr(codegen.CPUCodeLibrary, "add_ir_module", lambda self, m: (sizes.append(str(m)), add(self, m))[1])
    try:
        assert Kernel(pick, BORROWING)(np.arange(4), 2) == 2
    finally:
        patch.undo()
    (body,) = [text for text in sizes if "define" in text and "pick" in text][:1]
    assert body.count("extractvalue") <= 3


def swap(a, i, j):
    a[i], a[j] = a[j], a[i]


def swap_in_table(a, i, j):
    a[i, j], a[j, i] = a[j, i], a[i, j]


NOT_NEGATIVE = {**BORROWING, FROM_FRONT: True}


def within_another(function, options):
    """Return a kernel that calls one with these options: only a kernel within another is not looked at."""
    inner = Kernel(function, options)

    def outer(a, i, j):
        inner(a, i, j)

    return Kernel(outer, KERNEL)


@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint32])
def test_items_by_indices_that_are_not_negative(index):
    values, table = np.arange(9), np.arange(81).reshape(9, 9)
    for i, j in ((1, 3), (8, 0)):
        for function, array in ((swap, values), (swap_in_table, table)):
            theirs = array.copy()
            within_another(function, NOT_NEGATIVE)(array, index(i), index(j))
            function(theirs, i, j)
            np.testing.assert_array_equal(array, theirs)


def test_a_negative_index_is_out_of_bounds_where_none_may_be():
    values = np.arange(4)
    within_another(swap, {**BORROWING, "boundscheck": True})(values, 1, -1)
    assert list(values) == [0, 3, 2, 1]
    with pytest.raises(IndexError):
        within_another(swap, {**NOT_NEGATIVE, "boundscheck": True})(values, 1, -1)


def test_a_negative_index_is_found_in_plain_python():
    values = np.arange(4.0)
    looked_at(swap)(values, np.int32(1), 3)
    assert list(values) == [0.0, 3.0, 2.0, 1.0]
    for run in (
        lambda: looked_at(swap)(values, 1, np.int32(-4)),
        lambda: looked_at(swap_in_table)(np.zeros((5, 5)), 1, -2),
        lambda: looked_at(exchange)(values, 1, 2),
        lambda: looked_at(in_table)(np.zeros((5, 4)), 1, 2),
        lambda: looked_at(of_rows)(np.zeros(4, ROW), 1, -1),
    ):
        with pytest.raises(IndexError, match="is negative"):
            run()


@pytest.mark.parametrize("name", ["commsim.engine", "commsim.packets"])
def test_kernels_of_these_packages_look_at_no_index(name):
    package = importlib.import_module(name)
    found = [one.name for one in pkgutil.walk_packages(package.__path__, f"{name}.") if one.name.endswith("_kernel")]
    objects = [(module, value) for module in found for value in vars(importlib.import_module(module)).values()]
    kernels = [one for module, one in objects if isinstance(one, Kernel) and one.py_func.__module__ == module]
    within = [one for one in kernels if one.options.get("_nrt") is False]
    assert len(within) > 50
    assert all(one.options[FROM_FRONT] for one in within)
