import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.pages.figure import Figure, drawn_table, medians, summarised
from commsim.pages.figure_tables import FigureTable, number_column, word_column

ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(1, 3), st.one_of(st.just(np.nan), st.floats(0, 9))),
    max_size=30,
)


def table_of(rows):
    return FigureTable.of([
        word_column("w", [r[0] for r in rows]),
        number_column("x", [r[1] for r in rows]),
        number_column("v", [r[2] for r in rows]),
    ])  # fmt: skip


@given(ROWS)
def test_medians_are_those_of_the_obvious_loop(rows):
    wanted = {}
    for word, x, value in rows:
        if word is not None and not np.isnan(value):
            wanted.setdefault((word, x), []).append(value)
    got = summarised(table_of(rows), ["w", "x"], "v")
    keys = list(zip(got["w"].text(), got["x"].values.tolist(), strict=True))
    assert keys == sorted(wanted)
    for i, key in enumerate(keys):
        assert got["v"].values[i] == pytest.approx(statistics.median(wanted[key]))
        assert got["least_v"].values[i] == min(wanted[key])
        assert got["greatest_v"].values[i] == max(wanted[key])
        assert got["rows"].values[i] == len(wanted[key])


@given(ROWS)
def test_a_choice_is_the_algorithm_with_the_least_median(rows):
    figure = Figure("choice", "choice", "", "", table_of(rows), {"x": "x", "y": "x", "by": "w", "value": "v"})
    each = summarised(table_of(rows), ["x", "w"], "v")
    best = {}
    for x, word, value in zip(each["x"].values.tolist(), each["w"].text(), each["v"].values.tolist(), strict=True):
        best.setdefault(x, []).append((value, word))
    out = drawn_table(figure)
    assert out["x"].values.tolist() == sorted(best)
    for x, word, value, lead in zip(
        out["x"].values.tolist(), out["w"].text(), out["v"].values, out["times_best_of_second"].values, strict=True
    ):
        ranked = sorted(best[x])
        assert (value, word) == ranked[0]
        if len(ranked) > 1 and value > 0:
            with np.errstate(over="ignore"):
                ratio = ranked[1][0] / value
            assert lead == pytest.approx(ratio if np.isfinite(ratio) else np.nan, nan_ok=True)


@given(ROWS)
def test_shares_rise_to_one_for_each_series(rows):
    out = drawn_table(Figure("cdf", "cdf", "", "", table_of(rows), {"x": "v", "by": "w"}))
    for word in set(out["w"].text()):
        mine = np.array([w == word for w in out["w"].text()])
        n = mine.sum()
        np.testing.assert_allclose(out["share"].values[mine], np.arange(1, n + 1) / n)
        assert (np.diff(out["v"].values[mine]) >= 0).all()


def test_curves_have_the_spread_of_the_columns_that_say_it():
    table = FigureTable.of(
        [number_column(n, v) for n, v in {"x": [1, 1], "y": [2, 4], "lo": [1, 3], "hi": [5, 9]}.items()]
    )
    out = drawn_table(Figure("f", "curves", "", "", table, {"x": "x", "y": "y", "low": "lo", "high": "hi"}))
    assert [out[n].values.tolist() for n in ("y", "least_y", "greatest_y")] == [[3], [1], [9]]


def test_the_median_of_the_largest_numbers_is_finite():
    large = np.array([1.7e308, 1.6e308, 3.0])
    np.testing.assert_allclose(medians(np.array([0, 0, 1]), large, 2), [1.65e308, 3.0])
