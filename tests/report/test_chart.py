"""Line charts: every point is where its axes say."""

import pytest

from benchmarks.validation.html_page import draw_scatter
from commsim.report.chart import Axis, Series, draw_chart
from commsim.report.picture import Disc, Label, Line


def test_points_stand_in_the_order_of_their_values() -> None:
    chart = draw_chart("t", Axis("x"), Axis("y"), [Series("a", ((1, 10), (2, 30), (3, 20)))])
    discs = [s for s in chart.shapes if isinstance(s, Disc)]
    assert [d.x for d in discs] == sorted(d.x for d in discs)
    assert discs[1].y < discs[2].y < discs[0].y


def test_equal_factors_take_equal_lengths_on_a_logarithmic_axis() -> None:
    chart = draw_chart("t", Axis("x", logarithmic=True), Axis("y"), [Series("a", ((1, 1), (10, 1), (100, 1)))])
    x = [s.x for s in chart.shapes if isinstance(s, Disc)]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1])


def test_points_that_a_logarithmic_axis_cannot_show_are_left_out() -> None:
    chart = draw_chart("t", Axis("x", logarithmic=True), Axis("y"), [Series("a", ((0, 1), (1, 1), (2, 2)))])
    assert len([s for s in chart.shapes if isinstance(s, Disc)]) == 2


def test_a_single_point_is_drawn() -> None:
    chart = draw_chart("t", Axis("x"), Axis("y"), [Series("a", ((5, 0),))])
    assert len([s for s in chart.shapes if isinstance(s, Disc)]) == 1


def test_bounds_are_dashed_and_named_in_the_legend() -> None:
    lines = [Series("measured", ((1, 1), (2, 2))), Series("bound", ((1, 3), (2, 3)), dashed=True)]
    chart = draw_chart("t", Axis("x"), Axis("y"), lines)
    assert {"measured", "bound"} <= {s.text for s in chart.shapes if isinstance(s, Label)}
    assert any(isinstance(s, Line) and s.dashed for s in chart.shapes)


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one point"):
        draw_chart("t", Axis("x", logarithmic=True), Axis("y"), [Series("a", ((0, 1),))])


def test_marks_lie_on_the_diagonal_where_both_are_equal_and_are_not_joined():
    found = draw_scatter("t", "measured", "predicted", {"flow": [(1, 1, "one"), (10, 10, "two"), (5, 2, "low")]})
    line = next(shape for shape in found.shapes if isinstance(shape, Line) and shape.dashed)
    (x0, y0), (x1, y1) = line.points
    marks = {shape.title: shape for shape in found.shapes if isinstance(shape, Disc) and shape.title}
    assert set(marks) == {"one", "two", "low"}
    for name in ("one", "two"):
        on = y0 + (marks[name].x - x0) / (x1 - x0) * (y1 - y0)
        assert marks[name].y == pytest.approx(on)
    assert marks["low"].y > y0 + (marks["low"].x - x0) / (x1 - x0) * (y1 - y0)  # below: downwards is positive
    assert not [shape for shape in found.shapes if isinstance(shape, Line) and shape.title == "flow"]


def test_what_has_no_logarithm_is_left_out_with_its_title():
    found = draw_scatter("t", "x", "y", {"a": [(0, 1, "zero"), (1, 2, "kept")], "b": [(3, -1, "negative")]})
    assert [shape.title for shape in found.shapes if isinstance(shape, Disc) and shape.title] == ["kept"]


def test_many_marks_are_all_drawn():
    found = draw_scatter("t", "x", "y", {"a": [(i, i, f"{i}") for i in range(1, 501)]})
    assert sum(isinstance(shape, Disc) and bool(shape.title) for shape in found.shapes) == 500


def test_a_scatter_without_a_point_is_refused():
    with pytest.raises(ValueError, match="at least one point"):
        draw_scatter("t", "x", "y", {"a": [(0, 1, "")]})
