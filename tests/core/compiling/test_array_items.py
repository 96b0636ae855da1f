"""Items of arrays are read and written where NumPy has them, in fewer instructions than Numba's."""

import numpy as np
import pytest

from commsim.core.compiling import notices
from commsim.core.compiling.pipelines import pipelines
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
