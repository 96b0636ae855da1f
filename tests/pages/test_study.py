import numpy as np
import pytest

from commsim import predict
from commsim.pages.figure_tables import table_of_arrow, table_of_rows
from commsim.pages.study import constants_of, parameters_of


def test_rows_of_results_become_columns():
    rows = [
        predict("ring_all_reduce", "star:n_hosts=3", n, engine="closed-form", overhead="0us").row()
        for n in (1024, 4096)
    ]
    table = table_of_rows(rows)
    assert table["size_B"].values.tolist() == [1024, 4096]
    assert table["collective"].text() == ["ring_all_reduce"] * 2
    assert table["busbw_Bps"].unit == "B/s"
    assert "counters" not in table
    assert parameters_of(table) == ["size_B"]


def test_what_is_missing_is_no_number_and_no_word():
    table = table_of_rows([{"a": 1, "w": "x"}, {"a": None}, {"w": True}])
    assert np.isnan(table["a"].values).tolist() == [False, True, True]
    assert table["w"].text() == ["x", "", "true"]


def test_numbers_that_are_too_large_for_a_double_are_missing():
    table = table_of_rows([{"a": 10**400, "b": float("inf")}, {"a": 1, "b": 2.0}])
    assert np.isnan(table["a"].values).tolist() == np.isnan(table["b"].values).tolist() == [True, False]


def test_lists_and_tables_are_left_out():
    assert list(table_of_rows([{"a": [1], "b": {"c": 1}, "d": 1}])) == ["d"]


def test_of_a_sweep_only_what_stands_before_the_error_was_asked():
    rows = [
        {"point": f"{i}", "seed": i, "topology.k": 4 + i, "collective.ranks": 8 + i, "error": None,
         "collective": "ring", "n_ranks": 8 + i, "iteration_s": 0.1 * i}
        for i in range(3)
    ]  # fmt: skip
    assert parameters_of(table_of_rows(rows)) == ["n_ranks", "topology.k"]


def test_a_column_that_says_the_same_with_parameters_is_no_other_parameter():
    def parameters(specs):
        names = [spec.partition(":")[0] for spec in specs]
        return parameters_of(
            table_of_rows(
                [{"collective.name": s, "error": None, "collective": n} for s, n in zip(specs, names, strict=True)]
            )
        )

    assert parameters(["ring", "tree:n_chunks=8", "ring"]) == ["collective"]
    assert parameters(["tree:n_chunks=4", "tree:n_chunks=8", "ring"]) == ["collective", "collective.name"]


def test_what_is_the_same_in_all_rows_is_told_from_what_varies():
    rows = [
        {"collective": "ring", "size_B": 1024, "n_ranks": n, "time_s": 1.0, "topology.k": k}
        for n, k in ((2, 4), (4, 4))
    ]
    rows[0] |= {"half": 1}
    assert constants_of(table_of_rows(rows)) == ["collective", "size_B", "topology.k"]


def test_arrow_gives_the_same_table_with_its_units():
    pa = pytest.importorskip("pyarrow")
    fields = [pa.field("topology.bandwidth", pa.float64(), metadata={"unit": "B/s"}), pa.field("k", pa.int64())]
    fields += [pa.field("name", pa.dictionary(pa.int32(), pa.string())), pa.field("list", pa.list_(pa.int64()))]
    fields += [pa.field("on", pa.bool_())]
    columns = [[1.5, None], [3, None], ["b", "a"], [[1], None], [True, None]]
    table = table_of_arrow(
        pa.table([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=pa.schema(fields))
    )
    assert list(table) == ["topology.bandwidth", "k", "name", "on"]
    assert table["topology.bandwidth"].unit == "B/s"
    assert np.isnan(table["k"].values).tolist() == [False, True]
    assert table["name"].text() == ["b", "a"]
    assert table["name"].labels == ("a", "b")
    assert table["on"].text() == ["true", ""]
