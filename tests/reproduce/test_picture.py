import dataclasses

from commsim.report.picture import Disc, Line, Rectangle
from commsim.reproduce.paper import Row
from commsim.reproduce.picture import draw_rows

ROW = Row("own", "figure 1", "n=2", 10.0, 8.0, "Gb/s", "a text", "known", False, False, "", {"n": 2})


def swept(n, theirs, ours, **more):
    return dataclasses.replace(ROW, case=f"n={n}", theirs=theirs, ours=ours, swept={"n": n} | more)


def test_a_sweep_over_numbers_is_a_curve_with_the_published_numbers_as_marks_of_its_colour():
    picture = draw_rows("own", [swept(2, 10.0, 8.0), swept(4, 20.0, 18.0), swept(8, 30.0, 31.0)])
    marks = [shape for shape in picture.shapes if isinstance(shape, Disc) and shape.title]
    (curve,) = (shape for shape in picture.shapes if isinstance(shape, Line) and shape.title == "ours")
    assert [mark.title for mark in marks] == ["published: 2, 10", "published: 4, 20", "published: 8, 30"]
    assert [mark.fill for mark in marks] == [curve.colour] * 3
    heights = [y for _, y in curve.points]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] > marks[0].y  # ours is less than theirs, so it stands lower
    assert heights[2] < marks[2].y


def test_other_cases_are_bars_as_long_as_their_numbers():
    cases = [
        dataclasses.replace(ROW, case=name, swept={"case": name}, theirs=t) for name, t in (("a", 4.0), ("b", 8.0))
    ]
    bars = [shape for shape in draw_rows("own", cases).shapes if isinstance(shape, Rectangle) and shape.title]
    assert [bar.title for bar in bars] == ["published, a: 4", "ours, a: 8", "published, b: 8", "ours, b: 8"]
    assert [round(bar.width / bars[0].width, 6) for bar in bars] == [1, 2, 2, 2]


def test_figures_stand_one_below_the_other_and_other_swept_words_make_curves():
    one = [swept(n, n, n, link=link) for link in ("10G", "25G") for n in (1, 2, 4)]
    other = dataclasses.replace(ROW, figure="figure 2")
    picture = draw_rows("own", [*one, other])
    curves = [shape.title for shape in picture.shapes if isinstance(shape, Line) and "ours" in shape.title]
    assert curves == ["link=10G ours", "link=25G ours"]
    (top,) = (
        shape.y for shape in picture.shapes if isinstance(shape, Rectangle) and shape.title.startswith("published")
    )
    assert 400 < top < picture.height
