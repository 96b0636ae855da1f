"""Named tuples of arrays go to kernels by their address: the same answers, and one argument each."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from commsim.core.compiling import tables_type
from commsim.core.jit import BORROWING, KERNEL, Kernel, _is_disabled

pytestmark = pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")
ROW = np.dtype([("x", np.float64), ("k", np.int32)], align=True)


class Inside(NamedTuple):
    weight: Any
    is_on: bool


class State(NamedTuple):
    row: Any
    counter: Any
    inside: Inside
    factor: float


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    """Tuples of this module are taken for those of the packages."""
    monkeypatch.setattr(tables_type, "PACKAGES", (__name__.partition(".")[0],))


def state(is_on=True):
    row, counter = np.zeros(4, ROW), np.zeros((), ROW)[()]
    row["x"] = np.arange(4)
    return State(row, np.zeros(1, ROW)[0], Inside(np.arange(4.0) + counter["x"], is_on), 0.5)


def add(state, inside, i):
    state.counter["k"] += 1
    state.row[i]["k"] = i
    return state.row[i]["x"] * inside.weight[i] * state.factor if inside.is_on else 0.0


borrowing, counting = Kernel(add, BORROWING), Kernel(add, KERNEL)


def with_borrowed(state):
    found = 0.0
    for i in range(len(state.row)):
        found += borrowing(state, state.inside, i)
    return found


def with_counted(state):
    found = 0.0
    for i in range(len(state.row)):
        found += counting(state, state.inside, i)
    return found


@pytest.mark.parametrize(("function", "options"), [(with_borrowed, BORROWING), (with_counted, KERNEL)])
def test_fields_are_read_and_written_where_python_has_them(function, options):
    for is_on, right in ((True, 7.0), (False, 0.0)):
        given = state(is_on)
        assert Kernel(function, options)(given) == right
        assert given.row["k"].tolist() == [0, 1, 2, 3]
        assert given.counter["k"] == 4


def test_a_tuple_is_one_argument_with_a_short_name(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel = Kernel(with_borrowed, BORROWING)
    kernel(state())
    (code,) = kernel.compiled.inspect_llvm().values()
    head = next(line for line in code.splitlines() if line.startswith("define") and "with_borrowed" in line)
    assert head.count(",") <= 3
    assert len(head) < 700


def test_a_field_that_is_missing_and_a_value_of_another_kind_are_refused():
    errors = pytest.importorskip("numba.core.errors")

    def wrong(state):
        return state.rows[0]["x"]

    with pytest.raises(errors.TypingError, match="rows"):
        Kernel(wrong, KERNEL)(state())
    with pytest.raises(errors.TypingError, match="State"):
        Kernel(with_borrowed, BORROWING)(state()._replace(factor=object()))
