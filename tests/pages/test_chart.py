"""Charts of lines and bars: every value is where its axes say."""

import numpy as np
import pytest

from benchmarks.validation.html_page import draw_scatter
from commsim.core.errors import InputError
from commsim.pages.pictures.paint import write_picture
from commsim.pages.plots.chart import ChartAxis, Series, draw_bars, draw_chart, stacked


def drawn(panel):
    """Axes of matplotlib with a panel."""
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    panel.draw(axes)
    return axes


def lines(chart):
    axes = drawn(chart.panels[0])
    return axes, {line.get_label(): line for line in axes.lines}


def test_points_are_drawn_with_their_values():
    _, made = lines(draw_chart("t", ChartAxis("x"), ChartAxis("y"), [Series("a", ((1, 10), (2, 30), (3, 20)))]))
    np.testing.assert_array_equal(made["a"].get_xydata(), [(1, 10), (2, 30), (3, 20)])
    assert made["a"].get_marker() == "o"


def test_axes_are_named_and_logarithmic_where_asked_and_a_linear_y_begins_at_0():
    axes, _ = lines(draw_chart("t", ChartAxis("size", True), ChartAxis("rate"), [Series("a", ((1, 1), (10, 2)))]))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size", "rate")
    assert axes.get_ylim()[0] == 0


def test_points_that_a_logarithmic_axis_cannot_show_are_left_out():
    chart = draw_chart(
        "t", ChartAxis("x", True), ChartAxis("y"), [Series("a", ((0, 1), (1, 1), (2, float("nan")), (4, 2)))]
    )
    assert chart.panels[0].series[0].points == ((1, 1), (4, 2))


def test_bounds_are_dashed_without_marks_and_named_in_the_legend():
    both = [Series("measured", ((1, 1), (2, 2))), Series("bound", ((1, 3), (2, 3)), dashed=True)]
    axes, made = lines(draw_chart("t", ChartAxis("x"), ChartAxis("y"), both))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["measured", "bound"]
    assert made["bound"].get_linestyle() == "--"
    assert made["bound"].get_marker() in ("", "None")


def test_a_bound_of_one_point_has_a_mark():
    both = [Series("measured", ((1, 1),)), Series("bound", ((1, 3),), dashed=True)]
    _, made = lines(draw_chart("t", ChartAxis("x"), ChartAxis("y"), both))
    assert made["bound"].get_marker() not in ("", "None", made["measured"].get_marker())


@pytest.mark.parametrize("most", [1, 0.05])
def test_ticks_of_logarithmic_axes_are_numbers_and_no_formulas(most):
    """An axis within a decade has its numbers between the powers of 10."""
    axes, _ = lines(draw_chart("t", ChartAxis("x", True), ChartAxis("y", True), [Series("a", ((0.01, 1), (most, 9)))]))
    for axis in (axes.xaxis, axes.yaxis):
        axes.figure.canvas.draw()
        names = [text.get_text() for which in ("major", "minor") for text in axis.get_ticklabels(which=which)]
        assert any(names)
        assert all(float(name) > 0 for name in names if name)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one point"):
        draw_chart("t", ChartAxis("x", logarithmic=True), ChartAxis("y"), [Series("a", ((0, 1),))])


def test_bars_are_as_long_as_their_numbers_and_say_them():
    axes = drawn(draw_bars("t", "Gb/s", ["a", "b"], {"theirs": [4, 8], "ours": [5, 7]}).panels[0])
    assert [bar.get_width() for bar in axes.patches] == [4, 8, 5, 7]
    assert [text.get_text() for text in axes.texts] == ["4", "8", "5", "7"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["theirs", "ours"]


def test_charts_stand_one_below_the_other():
    one = draw_chart("above", ChartAxis("x"), ChartAxis("y"), [Series("a", ((5, 0),))])
    two = draw_bars("below", "s", ["a"], {"a": [1.0]})
    assert [panel.title for panel in stacked("both", [one, two]).panels] == ["above", "below"]


def test_a_chart_is_written_as_svg_and_png_with_the_same_bytes_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    chart = draw_chart("t", ChartAxis("x"), ChartAxis("y"), [Series("a <b>", ((1, 10), (2, 30)))])
    for suffix in ("svg", "png"):
        for name in ("a", "b"):
            write_picture(chart, tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    with pytest.raises(InputError, match=r"ends with \.svg, \.png or \.pdf"):
        write_picture(chart, tmp_path / "a.gif")


def test_charts_without_matplotlib_are_refused_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    chart = draw_chart("t", ChartAxis("x"), ChartAxis("y"), [Series("a", ((1, 10),))])
    with pytest.raises(InputError, match=r"^charts need matplotlib: pip install 'commsim\[plot\]'$"):
        write_picture(chart, tmp_path / "a.svg")


def test_a_scatter_has_marks_without_lines_over_the_diagonal():
    _, made = lines(draw_scatter("t", "measured", "predicted", {"flow": [(1, 1), (10, 10), (5, 2), (0, 1)]}))
    np.testing.assert_array_equal(made["flow"].get_xydata(), [(1, 1), (10, 10), (5, 2)])
    assert made["flow"].get_linestyle() == "None"
    np.testing.assert_array_equal(made["equal"].get_xydata(), [(1, 1), (10, 10)])


def test_a_scatter_without_a_point_is_refused():
    with pytest.raises(ValueError, match="at least one point"):
        draw_scatter("t", "x", "y", {"a": [(0, 1)]})
