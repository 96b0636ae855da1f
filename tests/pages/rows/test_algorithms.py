import numpy as np
import pytest

from commsim.pages.figure import drawn_table
from commsim.pages.figure_tables import table_of_rows
from commsim.pages.figures_of_rows import busbw, cdf, choice, speedup
from commsim.pages.rows.algorithms import with_algorithms
from commsim.pages.study import RowSelection, make_study

SIZES = (1024, 4096)


def sweep(*specs, ratios=(1, 4)):
    """Rows as a sweep has them; each algorithm is slower than the one before it, and at higher ratios."""
    rows = [
        {"topology.ratio": ratio, "collective.name": spec, "collective.size": size, "error": None,
         "collective": spec.partition(":")[0], "operation": "all_reduce", "size_B": size, "n_ranks": 8,
         "time_s": 1e-6 * (1 + i) * ratio, "busbw_Bps": size / (1 + i) / ratio}
        for i, spec in enumerate(specs) for ratio in ratios for size in SIZES
    ]  # fmt: skip
    return table_of_rows(rows)


@pytest.mark.parametrize("figure", [busbw, cdf])
def test_values_of_a_column_and_algorithms_have_a_curve_each(figure):
    study = make_study("s", sweep("ring", "tree"), {}, RowSelection(by="topology.ratio"))
    table = drawn_table(figure(study))
    assert set(table["curve"].text()) == {f"ratio={n}, {name}" for n in (1, 4) for name in ("ring", "tree")}
    if figure is busbw:
        assert (table["rows"].values == 1).all()  # a median over algorithms would be of two


def test_a_column_without_several_algorithms_keeps_its_name():
    for rows in (sweep("ring"), sweep("ring", "ring")):
        assert make_study("s", rows, {}, RowSelection(by="topology.ratio")).series() == {"by": "topology.ratio"}
    assert make_study("s", sweep("ring", "tree"), {}, RowSelection(by="collective")).series() == {"by": "collective"}


def test_parameters_that_vary_tell_algorithms_apart():
    study = make_study("s", sweep("ring", "tree:n_chunks=2", "tree:n_chunks=8", ratios=(1,)), {})
    table = drawn_table(busbw(study))
    assert (table["rows"].values == 1).all()
    assert set(table["collective"].text()) == {"ring", "tree:n_chunks=2", "tree:n_chunks=8"}
    assert study.parameters == ("collective", "size_B")  # collective.name repeats the first
    assert set(drawn_table(choice(study))["collective"].text()) == {"ring"}
    assert set(drawn_table(speedup(study))["speedup"].values) == {1.0, 0.5, 1 / 3}


def test_parameters_in_columns_of_their_own_are_added_to_the_name():
    rows = table_of_rows(
        [{"collective": "tree", "collective.n_chunks": n, "collective.root": 1, "collective.size": n} for n in (2, 8)]
        + [{"collective": "ring", "collective.size": 2}]
    )
    assert with_algorithms(rows)["collective"].text() == ["tree:n_chunks=2", "tree:n_chunks=8", "ring"]
    assert np.array_equal(with_algorithms(rows)["collective.n_chunks"].values, [2, 8, np.nan], equal_nan=True)


def test_a_new_name_of_an_algorithm_is_that_of_its_curves():
    given = RowSelection(by="topology.ratio", rename=("ring=the ring",))
    study = make_study("s", sweep("ring", "tree"), {}, given)
    assert study.names["curve"] == {"ratio=1, ring": "ratio=1, the ring", "ratio=4, ring": "ratio=4, the ring"}


def test_maps_have_the_column_that_is_asked_for():
    study = make_study("s", sweep("ring", "tree"), {}, RowSelection(by="topology.ratio"))
    for figure in (speedup(study), choice(study)):
        assert (figure.roles["x"], figure.roles["y"]) == ("size_B", "topology.ratio")
