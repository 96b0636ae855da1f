import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.pages.figure_tables import Column, FigureTable, csv_text, in_order, number_column, unit_of, word_column

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
NUMBERS = st.floats(allow_nan=True, allow_infinity=False, width=64)


@pytest.mark.parametrize(
    ("name", "unit"), [("time_s", "s"), ("size_B", "B"), ("busbw_Bps", "B/s"), ("n_ranks", ""), ("bytes_on_wire", "B")]
)
def test_a_name_says_its_unit(name, unit):
    assert unit_of(name) == unit


def test_quantities_stand_in_the_order_of_their_sizes():
    assert in_order(["100Gbps", "25Gbps", "400Gbps"]) == ["25Gbps", "100Gbps", "400Gbps"]
    assert in_order(["1MiB", "4KiB"]) == ["4KiB", "1MiB"]
    assert in_order(["10", "9", "1.5"]) == ["1.5", "9", "10"]
    assert in_order(["ring", "10Gbps"]) == ["10Gbps", "ring"]


@given(st.lists(st.tuples(NUMBERS, st.one_of(st.none(), WORDS)), max_size=20))
def test_a_csv_file_reads_back_as_the_same_values(rows):
    table = FigureTable.of([number_column("time_s", [r[0] for r in rows]), word_column("name", [r[1] for r in rows])])
    head, *body = csv.reader(io.StringIO(csv_text(table), newline=""))
    assert head == ["time_s [s]", "name"]
    for (number, word), (a, b) in zip(rows, body, strict=True):
        assert (a == "") if np.isnan(number) else (float(a) == number)
        assert b == (word or "")


def test_columns_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="equal lengths"):
        FigureTable.of([number_column("a", [1.0]), number_column("b", [1.0, 2.0])])


def test_rows_are_taken_and_columns_replaced():
    table = FigureTable.of([number_column("a", [1.0, 2.0]), Column("w", np.array([0, -1]), "", ("x",))])
    assert table.take(np.array([False, True]))["w"].text() == [""]
    assert table.beside(number_column("a", [3.0, 4.0]))["a"].values.tolist() == [3.0, 4.0]
