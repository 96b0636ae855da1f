import dataclasses

from commsim.pages.plots.chart import Bars, LineChart
from commsim.papers.paper import PaperRow
from commsim.papers.picture import draw_rows

ROW = PaperRow("own", "figure 1", "n=2", 10.0, 8.0, "Gb/s", "a text", "known", False, False, "", True, {"n": 2})


def swept(n, theirs, ours, **more):
    return dataclasses.replace(ROW, case=f"n={n}", theirs=theirs, ours=ours, swept={"n": n} | more)


def test_a_sweep_over_numbers_is_a_curve_with_the_published_numbers_as_marks_of_its_colour():
    (panel,) = draw_rows("own", [swept(2, 10.0, 8.0), swept(4, 20.0, 18.0), swept(8, 30.0, 31.0)]).panels
    assert isinstance(panel, LineChart)
    published, ours = panel.series
    assert published.points == ((2, 10), (4, 20), (8, 30))
    assert ours.points == ((2, 8), (4, 18), (8, 31))
    assert (published.joined, ours.joined) == (False, True)
    assert published.colour == ours.colour


def test_other_cases_are_bars_as_long_as_their_numbers():
    cases = [
        dataclasses.replace(ROW, case=name, swept={"case": name}, theirs=t) for name, t in (("a", 4.0), ("b", 8.0))
    ]
    (panel,) = draw_rows("own", cases).panels
    assert isinstance(panel, Bars)
    assert panel.cases == ("a", "b")
    assert panel.values == {"published": (4, 8), "ours": (8, 8)}


def test_figures_stand_one_below_the_other_and_other_swept_words_make_curves():
    one = [swept(n, n, n, link=link) for link in ("10G", "25G") for n in (1, 2, 4)]
    other = dataclasses.replace(ROW, figure="figure 2")
    above, below = draw_rows("own", [*one, other]).panels
    assert [line.name for line in above.series if line.joined] == ["link=10G ours", "link=25G ours"]
    assert isinstance(below, Bars)
