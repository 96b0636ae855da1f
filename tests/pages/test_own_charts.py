"""Charts of one's own numbers: what they hold, how they show themselves, what they refuse."""

import re
import sys

import pytest

import commsim as cs

TIMES = {"ring": {64: 6.5, 1: 0.2}, "bound": {1: 0.1, 64: 6.0}}


def test_lines_hold_their_points_in_the_order_of_x():
    (panel,) = cs.line_chart("t", "size (MiB)", "time (ms)", TIMES, logarithmic="y", dashed=["bound"]).panels
    assert [(line.name, line.points, line.dashed) for line in panel.series] == [
        ("ring", ((1, 0.2), (64, 6.5)), False), ("bound", ((1, 0.1), (64, 6.0)), True),
    ]  # fmt: skip
    assert (panel.x.logarithmic, panel.y.logarithmic) == (False, True)


def test_a_few_whole_numbers_get_a_tick_each_and_others_none():
    assert cs.line_chart("t", "machines", "y", TIMES).panels[0].x.ticks == (1, 64)
    assert cs.line_chart("t", "x", "y", {"a": {0.5: 1, 1: 1}}).panels[0].x.ticks == ()
    assert cs.line_chart("t", "x", "y", {"a": dict.fromkeys(range(13), 1)}).panels[0].x.ticks == ()


def test_bars_are_groups_by_case():
    (panel,) = cs.bar_chart("t", "s", {"tp 8": {"step": 2, "bubble": 0}, "tp 4": {"step": 3, "bubble": 1}}).panels
    assert (panel.cases, panel.values) == (("tp 8", "tp 4"), {"step": (2, 3), "bubble": (0, 1)})


def test_a_chart_shows_its_picture_in_a_notebook_and_a_line_as_text():
    pytest.importorskip("matplotlib")
    chart = cs.line_chart("All-reduce", "machines", "y", TIMES, logarithmic="x")
    assert repr(chart) == "Chart(All-reduce, 2 lines)"
    shown = chart._repr_html_()
    assert shown.startswith("<svg")
    assert re.findall(r"<!-- (\d+) -->", shown)[:2] == ["1", "64"]  # the ticks of x, without others between them
    assert chart.svg().endswith(shown)


def test_without_matplotlib_a_notebook_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = cs.line_chart("t", "x", "y", TIMES)._repr_html_()
    assert shown == "<pre>charts need matplotlib: pip install &#x27;commsim[plot]&#x27;</pre>"


@pytest.mark.parametrize(("wrong", "message"), [
    ({"lines": [1]}, "lines must be a dict of lines by name"),
    ({"lines": {"a": [1, 2]}}, "lines must be a dict of lines by name"),
    ({"lines": {"a": {}}}, "a chart needs at least one point"),
    ({"logarithmic": "z"}, "logarithmic must be x, y or xy, got 'z'"),
    ({"dashed": ["rnig"]}, "dashed must name lines, got 'rnig'; known: ring, bound"),
])  # fmt: skip
def test_what_no_chart_can_be_made_of_is_refused(wrong, message):
    with pytest.raises(cs.InputError, match=message):
        cs.line_chart("t", "x", "y", **({"lines": TIMES} | wrong))


@pytest.mark.parametrize("values", [{}, {"a": {}}, {"a": {"b": 1}, "c": {"d": 1}}])
def test_groups_of_bars_have_the_same_names(values):
    with pytest.raises(cs.InputError, match="at least one group, and the same names of bars in all groups"):
        cs.bar_chart("t", "s", values)
