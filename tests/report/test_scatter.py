import pytest

from commsim.report.chart import draw_scatter
from commsim.report.picture import Disc, Line

pytestmark = pytest.mark.nojit


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


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one point"):
        draw_scatter("t", "x", "y", {"a": [(0, 1, "")]})
